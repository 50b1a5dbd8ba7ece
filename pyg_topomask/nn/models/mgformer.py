r"""The masked graph Transformer for recommendation."""

from __future__ import annotations

from functools import partial
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Data

from pyg_topomask.errors import ArgumentError
from pyg_topomask.feature_maps.feature_map import FeatureMap
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks.adjacency import AdjacencyMask
from pyg_topomask.masks.base.mask import Mask
from pyg_topomask.masks.low_rank import PackingMask
from pyg_topomask.masks.sin_degree import SinDegreeMask
from pyg_topomask.nn.inputs import check_heads, fit_mask
from pyg_topomask.nn.masked_linear_attention import resolve_feature_map
from pyg_topomask.ops import masked_linear_attention
from pyg_topomask.utils.checks import MAX_NODES, check_nodes, check_probability, check_size, check_whole, is_whole


class MGFormer(torch.nn.Module):
    r"""The masked graph Transformer of `"Masked Graph Transformer for Large-Scale Recommendation"
    <https://doi.org/10.1145/3626772.3657971>`_ (Sec. 3.2). Every user and every item is a token that attends to all tokens, in
    time and memory linear in their number:

    .. math::
        \mathbf{X} = [\mathbf{E}, \mathbf{P}], \qquad \mathbf{h}_i =
        \frac{\sum_j M_{ij} \, \phi(\mathbf{W}_Q \mathbf{x}_i)^{\top} \phi(\mathbf{W}_K \mathbf{x}_j) \, \mathbf{x}_j}
        {\sum_j M_{ij} \, \phi(\mathbf{W}_Q \mathbf{x}_i)^{\top} \phi(\mathbf{W}_K \mathbf{x}_j)}

    The model learns an embedding :math:`\mathbf{E}` of each id. :class:`~pyg_topomask.transforms.AddSVDEncoding` stores the
    structural encodings :math:`\mathbf{P}`. A residual connection follows. Values are not projected (Eq. 5). Inner products
    of the outputs rank the items.

    Nodes 0 to :obj:`num_users - 1` are the users, and the items follow. The edges are the training interactions, each of them
    in both directions: :obj:`torch.cat([edge_index, edge_index.flip(0)], dim=1)`. The transform also accepts one direction. The
    model checks its edges once for each :class:`~pyg_topomask.graphs.Graph`, but not under ``torch.compile``.

    Args:
        num_users (int): The number of users.
        num_items (int): The number of items.
        embedding_dim (int): Size of the embeddings. (default: :obj:`64`)
        svd_dim (int, optional): Size of the structural encodings; :obj:`0` for none. (default: :obj:`embedding_dim`)
        heads (int): The number of heads; divides :obj:`embedding_dim + svd_dim`. (default: :obj:`1`)
        layers (int): The number of layers. (default: :obj:`1`)
        feature_map (str or FeatureMap): :math:`\phi`, see :class:`~pyg_topomask.nn.MaskedLinearAttention`. All layers share a
            given module. (default: :obj:`"simplex"`)
        mask (str or Mask, optional): :obj:`"sin_degree"`, :obj:`"adjacency"` (with learned self-loops), :obj:`None` for
            unmasked attention, or any mask. All layers share a given mask. (default: :obj:`"sin_degree"`)
        max_degree (int): The largest degree with a separate embedding in the mask :obj:`"sin_degree"`. (default: :obj:`512`)
        residual (bool): Add the input of each layer to its output. Eq. 12 has no such connection. Without it, every output is
            an average over all nodes, and nearly equal for all nodes until the scores differ. Training is then very slow.
            (default: :obj:`True`)
        dropout (float): Dropout probability of the input. (default: :obj:`0.0`)
        sign_flip (bool): In each training step, multiply every pair of singular vectors in the structural encodings by a
            random sign, because their signs are arbitrary, from `"Global Self-Attention as a Replacement for Graph
            Convolution" <https://arxiv.org/abs/2108.03348>`_. (default: :obj:`False`)
        route (str): How to apply the mask, see :func:`~pyg_topomask.ops.masked_linear_attention`.
            (default: :obj:`"auto"`)

    Shapes:
        - **input:** a graph with :math:`U + I` nodes, edge indices :math:`(2, |\mathcal{E}|)`, and unless
          :obj:`svd_dim` is 0 :obj:`svd_encoding` :math:`(U + I, \text{svd\_dim})`
        - **output:** users :math:`(U, F)` and items :math:`(I, F)` with :math:`F` = :obj:`embedding_dim + svd_dim`

    Example:
        >>> data = Data(edge_index=torch.tensor([[0, 1, 2, 3], [2, 3, 0, 1]]), num_nodes=5)
        >>> users, items = MGFormer(num_users=2, num_items=3, embedding_dim=8, svd_dim=0)(data)
        >>> (users @ items.t()).shape
        torch.Size([2, 3])
    """

    def __init__(
        self,
        num_users: int,
        num_items: int,
        embedding_dim: int = 64,
        svd_dim: int | None = None,
        heads: int = 1,
        layers: int = 1,
        feature_map: str | FeatureMap = 'simplex',
        mask: str | Mask | None = 'sin_degree',
        max_degree: int = 512,
        residual: bool = True,
        dropout: float = 0.0,
        sign_flip: bool = False,
        route: str = 'auto',
    ) -> None:
        super().__init__()
        svd_dim = embedding_dim if svd_dim is None else svd_dim
        check_size(embedding_dim=embedding_dim, layers=layers)
        check_whole(0, MAX_NODES, num_users=num_users, num_items=num_items)
        check_size(0, svd_dim=svd_dim)
        channels = embedding_dim + svd_dim
        check_heads(heads, channels)
        check_probability(dropout=dropout)
        self.num_users = num_users
        self.num_items = num_items
        self.embedding_dim = embedding_dim
        self.svd_dim = svd_dim
        self.channels = channels
        self.dropout = dropout
        self.sign_flip = sign_flip
        self.residual = residual
        self.embedding = torch.nn.Parameter(torch.empty(num_users + num_items, embedding_dim))
        self.layers = torch.nn.ModuleList(
            _KernelAttention(channels, heads, _resolve_mask(mask, heads, max_degree), feature_map, route) for _ in range(layers)
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        r"""Resets all learnable parameters, and redraws random features."""
        torch.nn.init.xavier_normal_(self.embedding)
        for layer in self._attentions:
            layer.reset_parameters()

    def forward(self, graph: Graph | Data, nodes: Tensor | None = None) -> tuple[Tensor, Tensor] | Tensor:
        r"""Returns the embeddings of users, :obj:`[U, F]`, and items, :obj:`[I, F]`, or of some nodes.

        Args:
            graph (Graph or torch_geometric.data.Data): The interactions. A reused
                :class:`~pyg_topomask.graphs.Graph` checks the edges and counts degrees only once.
            nodes (torch.Tensor, optional): Return only the embeddings of these nodes, as one tensor :obj:`[n, F]`, such as
                the nodes of a batch of interactions, :obj:`torch.cat([users, num_users + items])`. With a low-rank mask, the
                last layer then computes only their queries. (default: :obj:`None`)
        """
        graph = Graph.of(graph)
        if graph.num_nodes != self.num_users + self.num_items:
            raise ArgumentError('graph', f'{graph.num_nodes} nodes', f'{self.num_users} users and then {self.num_items} items')
        if not torch.compiler.is_compiling():
            graph.cached(('interactions', self.num_users), partial(_check_interactions, graph, self.num_users))
        if nodes is not None:
            check_nodes(graph.num_nodes, nodes=nodes)
        x: Tensor = self.embedding
        if self.svd_dim > 0:
            encoding = self._encoding(graph).to(x)
            if self.training and self.sign_flip:
                encoding = encoding * (2.0 * torch.randint(2, (self.svd_dim,), dtype=x.dtype, device=x.device) - 1.0)
            x = torch.cat([x, encoding], dim=1)
        x = F.dropout(x, self.dropout, self.training)
        *layers, last = self._attentions
        for layer in layers:
            x = x + layer(x, graph) if self.residual else layer(x, graph)
        out: Tensor = last(x, graph, nodes)
        if self.residual:
            out = out + (x if nodes is None else x.index_select(0, nodes))
        return out if nodes is not None else (out[: self.num_users], out[self.num_users :])

    @property
    def _attentions(self) -> list[_KernelAttention]:
        return cast('list[_KernelAttention]', list(self.layers))

    def _encoding(self, graph: Graph) -> Tensor:
        encoding = graph.get('svd_encoding')
        shape = (graph.num_nodes, self.svd_dim)
        if not isinstance(encoding, Tensor) or encoding.shape != shape:
            got = 'data without a tensor svd_encoding'
            if isinstance(encoding, Tensor):
                got = f'svd_encoding of shape {tuple(encoding.shape)}'
            raise ArgumentError(
                'svd_dim',
                f'{self.svd_dim} for {got}',
                f'one of shape {list(shape)}, which AddSVDEncoding(rank={self.svd_dim}, num_users={self.num_users}) stores, '
                'and svd_dim=0',
            )
        return encoding

    def __repr__(self) -> str:
        return (
            f'{type(self).__name__}({self.num_users}, {self.num_items}, embedding_dim={self.embedding_dim}, '
            f'svd_dim={self.svd_dim}, layers={len(self.layers)})'
        )


class _KernelAttention(torch.nn.Module):
    r"""Masked linear attention that projects queries and keys, but not values (Eq. 5)."""

    def __init__(self, channels: int, heads: int, mask: Mask, feature_map: str | FeatureMap, route: str) -> None:
        super().__init__()
        fit_mask(mask, heads)
        self.heads = heads
        self.route = route
        self.mask = mask
        self.feature_map = resolve_feature_map(feature_map, channels // heads)
        self.lin_q = torch.nn.Linear(channels, channels, bias=False)
        self.lin_k = torch.nn.Linear(channels, channels, bias=False)

    def reset_parameters(self) -> None:
        for module in (self.lin_q, self.lin_k, self.feature_map, self.mask):
            module.reset_parameters()

    def forward(self, x: Tensor, graph: Graph, nodes: Tensor | None = None) -> Tensor:
        mask = self.mask(graph)
        # With other masks, some rows cost as much as all rows.
        low_rank = mask.is_low_rank and graph.num_graphs == 1 and self.route in ('auto', 'low_rank')
        low_rank = low_rank and not self.feature_map.reads_all_nodes
        rows = nodes if low_rank else None
        queries = x if rows is None else x.index_select(0, rows)
        q, k, v = (projected.unflatten(1, (self.heads, -1)) for projected in (self.lin_q(queries), self.lin_k(x), x))
        q, k = self.feature_map(q, k, graph.segments)
        out = masked_linear_attention(q, k, v, mask, self.route, rows).flatten(1)
        return out if nodes is None or low_rank else out.index_select(0, nodes)


def _check_interactions(graph: Graph, num_users: int) -> None:
    r"""Raises an error unless every graph has this number of users, and all edges join users and items in both directions."""
    users = graph.get('num_users')
    if (is_whole(users) or isinstance(users, Tensor)) and bool((torch.as_tensor(users) != num_users).any()):
        given = users.tolist() if isinstance(users, Tensor) else users
        accepted = f'{num_users} users and then {graph.num_nodes - num_users} items'
        raise ArgumentError('graph', f'num_users = {given}', accepted)
    source, target = graph.edge_index.long()
    from_user = source < num_users
    alike = from_user == (target < num_users)
    if bool(alike.any()):
        ends = graph.edge_index[:, alike.nonzero()[0, 0]].tolist()
        raise ArgumentError('graph', f'an edge between {ends}, two users or two items', 'edges between users and items')
    there, back = source * graph.num_nodes + target, target * graph.num_nodes + source
    if not torch.equal(there[from_user].sort().values, back[~from_user].sort().values):
        remedy = 'torch.cat([edge_index, edge_index.flip(0)], dim=1) adds the other direction'
        raise ArgumentError('graph', 'edges without their reverse', 'each interaction in both directions', remedy)


def _resolve_mask(mask: str | Mask | None, heads: int, max_degree: int) -> Mask:
    if mask is None:
        return PackingMask()
    if isinstance(mask, Mask):
        return mask
    if mask == 'sin_degree':
        return SinDegreeMask(heads, max_degree)
    if mask == 'adjacency':
        return AdjacencyMask(heads)
    raise ArgumentError('mask', repr(mask), "'sin_degree', 'adjacency', None and Mask modules")
