r"""Attention over the entries of a sparse mask, with coefficients that can be looked at."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.nn.conv import MessagePassing
from torch_geometric.nn.dense import Linear

from pyg_topomask.feature_maps import FeatureMap
from pyg_topomask.graph import Graph
from pyg_topomask.masks import GRFMask, Mask
from pyg_topomask.nn.masked_linear_attention import resolve_feature_map
from pyg_topomask.operators import Entries
from pyg_topomask.ops import attend_softmax, masked_linear_attention, masked_softmax_attention, sddmm
from pyg_topomask.ops.normalize import inverse_weight
from pyg_topomask.walks import WalkLength

__all__ = ['AsymmetricGRFAttention', 'ExplicitAttention', 'GRFSoftmaxAttention', 'MaskedSoftmaxAttention']


class ExplicitAttention(MessagePassing, ABC):
    r"""Base class of multi-head attention over the entries of a sparse mask: node :math:`i` attends to the nodes :math:`j` with
    an entry :math:`M_{ij}`, and the coefficients are tensors, which :obj:`return_attention_weights` returns and
    :class:`torch_geometric.explain.AttentionExplainer` finds.

    Args:
        channels (int): Size of each input sample; :obj:`-1` is inferred at the first call, and needs :obj:`out_channels`.
        heads (int): The number of heads.
        mask (Mask): A mask with sparse entries, with as many heads or one that all share.
        dropout (float): Dropout probability of the output. (default: :obj:`0.0`)
        bias (bool): Learn additive biases in the four projections. (default: :obj:`True`)
        out_channels (int, optional): Size of each output sample. (default: :obj:`channels`)

    Raises:
        ValueError: If the heads do not divide the channels or do not fit the mask.
    """

    def __init__(
        self,
        channels: int,
        heads: int,
        mask: Mask,
        dropout: float = 0.0,
        bias: bool = True,
        out_channels: int | None = None,
    ) -> None:
        super().__init__(aggr='add', flow='target_to_source', node_dim=0)  # the source of an edge attends to its target
        out_channels = channels if out_channels is None else out_channels
        if channels == -1 and out_channels == -1:
            raise ValueError('out_channels: got None for channels=-1; accepted is a number of output channels')
        if heads < 1 or out_channels < 1 or out_channels % heads != 0:
            raise ValueError(f'heads: got {heads} for {out_channels} channels; accepted are divisors of the channels')
        if not 0.0 <= dropout <= 1.0:
            raise ValueError(f'dropout: got {dropout}; accepted are probabilities in [0, 1]')
        if mask.heads not in (1, heads):
            raise ValueError(f'mask: got a mask of {mask.heads} heads for heads={heads}; accepted are 1 and {heads}')
        self.channels = channels
        self.out_channels = out_channels
        self.heads = heads
        self.dropout = dropout
        self.mask = mask
        self.lin_q = Linear(channels, out_channels, bias=bias)
        self.lin_k = Linear(channels, out_channels, bias=bias)
        self.lin_v = Linear(channels, out_channels, bias=bias)
        self.lin_out = Linear(out_channels, out_channels, bias=bias)

    def reset_parameters(self) -> None:
        r"""Resets all learnable parameters."""
        super().reset_parameters()
        for module in (self.lin_q, self.lin_k, self.lin_v, self.lin_out, self.mask):
            module.reset_parameters()

    @abstractmethod
    def attend(self, q: Tensor, k: Tensor, v: Tensor, graph: Graph, generator: torch.Generator | None) -> Tensor:
        r"""Returns the output of all heads, :obj:`[N, H, d]`, without keeping coefficients where that is cheaper."""

    @abstractmethod
    def coefficients(self, q: Tensor, k: Tensor, v: Tensor, graph: Graph, entries: Entries) -> Tensor:
        r"""Returns the coefficients :math:`\alpha_{ij}` at the entries of the mask, :obj:`[H, nnz]`."""

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor,
        edge_weight: Tensor | None = None,
        batch: Tensor | None = None,
        graph: Graph | Data | None = None,
        generator: torch.Generator | None = None,
        return_attention_weights: bool | None = None,
    ) -> Any:
        r"""Runs the forward pass.

        Args:
            x (torch.Tensor): The node features, :obj:`[N, channels]`.
            edge_index (torch.Tensor): The edge indices, :obj:`[2, E]`.
            edge_weight (torch.Tensor, optional): The edge weights, :obj:`[E]`. (default: :obj:`None`)
            batch (torch.Tensor, optional): The graph of each node, ascending, :obj:`[N]`. (default: :obj:`None`)
            graph (Graph or torch_geometric.data.Data, optional): The same connectivity in place of the three arguments above.
                (default: :obj:`None`)
            generator (torch.Generator, optional): The source of random numbers of masks that draw any.
                (default: :obj:`None`)
            return_attention_weights (bool, optional): If :obj:`True`, also returns :obj:`(edge_index, alpha)`: the pairs
                :obj:`(j, i)` of the entries, from source to target of the attention, :obj:`[2, nnz]`, and
                :math:`\alpha_{ij}`, :obj:`[nnz, heads]`. (default: :obj:`None`)
        """
        if graph is None:
            graph = Graph.from_tensors(edge_index, x.size(0), edge_weight, batch)
        elif not isinstance(graph, Graph):
            graph = Graph.from_data(graph)
        if x.dim() != 2 or x.size(0) != graph.num_nodes:
            raise ValueError(f'x: got shape {tuple(x.shape)}; accepted is [{graph.num_nodes}, channels]')
        q, k, v = (lin(x).view(-1, self.heads, self.out_channels // self.heads) for lin in (self.lin_q, self.lin_k, self.lin_v))
        looked_at = return_attention_weights or len(self._message_forward_hooks) > 0 or self.explain
        if not looked_at:
            out = self.attend(q, k, v, graph, generator)
            return torch.nn.functional.dropout(self.lin_out(out.flatten(1)), self.dropout, self.training)
        operator = self.mask(graph, generator)
        if operator.entries is None:
            raise ValueError(f'mask: got {self.mask}, which has no sparse entries; accepted are sparse masks')
        entries = operator.entries()
        alpha = self.coefficients(q, k, v, graph, entries).t()
        pairs = torch.stack([entries.pattern.col, entries.pattern.row]).long()
        # An explainer reads off what belongs to the edges in their order: they go first, the other pairs follow.
        first, rest = _split(pairs, graph.edge_index)
        order = torch.cat([first.clamp(min=0), rest])
        shown = alpha[order] * torch.cat([(first >= 0).to(alpha.dtype), alpha.new_ones(rest.numel())]).unsqueeze(1)
        ends = torch.cat([graph.edge_index.long(), pairs[:, rest].flip(0)], dim=1)
        out = self.propagate(ends, alpha=shown, v=v, size=(graph.num_nodes, graph.num_nodes)).to(v.dtype)
        out = torch.nn.functional.dropout(self.lin_out(out.flatten(1)), self.dropout, self.training)
        return (out, (pairs, alpha)) if return_attention_weights else out

    def message(self, v_j: Tensor, alpha: Tensor) -> Tensor:
        return alpha.unsqueeze(-1) * v_j

    def __repr__(self) -> str:
        return f'{type(self).__name__}({self.channels}, {self.out_channels}, heads={self.heads}, mask={self.mask})'


def _split(pairs: Tensor, edge_index: Tensor) -> tuple[Tensor, Tensor]:
    r"""Returns the entry that each edge stands for, -1 for none or where an equal edge came before, and the other entries."""
    if pairs.size(1) == 0:
        return pairs.new_full((edge_index.size(1),), -1), pairs.new_empty(0)
    size = int(pairs.max()) + 1 if edge_index.numel() == 0 else int(torch.maximum(pairs.max(), edge_index.max())) + 1
    keys = pairs[1] * size + pairs[0]  # ascending: entries are in order of row and column
    wanted = edge_index[0].long() * size + edge_index[1].long()
    place = torch.searchsorted(keys, wanted).clamp(max=keys.numel() - 1)
    _, inverse = wanted.unique(return_inverse=True)
    order = torch.arange(wanted.numel(), device=keys.device)
    earliest = order.new_full((wanted.numel(),), wanted.numel()).scatter_reduce_(0, inverse, order, 'amin')
    found = (keys[place] == wanted) & (earliest[inverse] == order)
    taken = torch.zeros_like(keys, dtype=torch.bool)
    taken[place[found]] = True
    return torch.where(found, place, -1), (~taken).nonzero().squeeze(1)


class MaskedSoftmaxAttention(ExplicitAttention):
    r"""Multi-head softmax attention with the logarithm of a sparse mask as bias, from `"Linear Transformer Topological Masking
    with Graph Random Features" <https://arxiv.org/abs/2410.03462>`_ (Sec. 2, App. C.4), see
    :func:`~pyg_topomask.ops.masked_softmax_attention`. Time and memory are linear in the number of entries.

    Args:
        channels (int): Size of each input sample; :obj:`-1` is inferred at the first call, and needs :obj:`out_channels`.
        heads (int): The number of heads.
        mask (Mask): A mask with sparse entries of which none is negative.
        dropout (float): Dropout probability of the output. (default: :obj:`0.0`)
        bias (bool): Learn additive biases in the four projections. (default: :obj:`True`)
        out_channels (int, optional): Size of each output sample. (default: :obj:`channels`)
        attention_dropout (float): Dropout probability of the coefficients. (default: :obj:`0.0`)

    Shapes:
        - **input:** node features :math:`(|\mathcal{V}|, F)`, edge indices :math:`(2, |\mathcal{E}|)`, edge weights
          :math:`(|\mathcal{E}|)` *(optional)*, batch vector :math:`(|\mathcal{V}|)` *(optional)*
        - **output:** node features :math:`(|\mathcal{V}|, F_{out})`, or with :obj:`return_attention_weights=True`
          :math:`((|\mathcal{V}|, F_{out}), ((2, nnz), (nnz, H)))`

    Example:
        >>> from pyg_topomask.masks import AdjacencyMask
        >>> attention = MaskedSoftmaxAttention(16, heads=4, mask=AdjacencyMask())
        >>> attention(torch.randn(3, 16), torch.tensor([[0, 1], [1, 0]])).shape
        torch.Size([3, 16])
    """

    def __init__(
        self,
        channels: int,
        heads: int,
        mask: Mask,
        dropout: float = 0.0,
        bias: bool = True,
        out_channels: int | None = None,
        attention_dropout: float = 0.0,
    ) -> None:
        super().__init__(channels, heads, mask, dropout, bias, out_channels)
        if not 0.0 <= attention_dropout <= 1.0:
            raise ValueError(f'attention_dropout: got {attention_dropout}; accepted are probabilities in [0, 1]')
        self.attention_dropout = attention_dropout

    def attend(self, q: Tensor, k: Tensor, v: Tensor, graph: Graph, generator: torch.Generator | None) -> Tensor:
        dropout = self.attention_dropout if self.training else 0.0
        return masked_softmax_attention(q, k, v, self.mask(graph, generator), dropout)

    def coefficients(self, q: Tensor, k: Tensor, v: Tensor, graph: Graph, entries: Entries) -> Tensor:
        _, alpha = attend_softmax(q, k, v, entries)
        return torch.nn.functional.dropout(alpha, self.attention_dropout, self.training)


class GRFSoftmaxAttention(MaskedSoftmaxAttention):
    r"""Softmax attention masked by graph random features, from `"Linear Transformer Topological Masking with Graph Random
    Features" <https://arxiv.org/abs/2410.03462>`_ (App. C.4): a node attends to the nodes that its walks have in common with,
    or, with :obj:`asymmetric=True`, to those that its walks visit. The modulation is learned as its logarithm, so that the mask
    stays positive; edge weights have to be.

    Args:
        channels (int): Size of each input sample; :obj:`-1` is inferred at the first call, and needs :obj:`out_channels`.
        heads (int): The number of heads. (default: :obj:`1`)
        num_walks (int): Walks per node and ensemble. (default: :obj:`4`)
        p_halt (float): The probability that a walk halts before a hop. (default: :obj:`0.5`)
        max_walk_length (int): The largest number of hops. (default: :obj:`4`)
        modulation (torch.Tensor or str, optional): The initial :math:`f`, or a kernel. (default: :obj:`None`)
        asymmetric (bool): Keys do not walk. (default: :obj:`False`)
        sampler (str): How walkers depend on each other. (default: :obj:`"iid"`)
        transition (str): Which hops walkers prefer. (default: :obj:`"uniform"`)
        normalization (str, optional): How :math:`\mathbf{W}` is made of the edge weights. (default: :obj:`"sym"`)
        resample (str): :obj:`"never"` or :obj:`"forward"`. (default: :obj:`"never"`)
        seed (int): The seed of walks that are not drawn anew. (default: :obj:`0`)
        walk_length (WalkLength or str, optional): The distribution of lengths in place of the geometric one.
            (default: :obj:`None`)
        dropout (float): Dropout probability of the output. (default: :obj:`0.0`)
        attention_dropout (float): Dropout probability of the coefficients. (default: :obj:`0.0`)
        bias (bool): Learn additive biases. (default: :obj:`True`)
        out_channels (int, optional): Size of each output sample. (default: :obj:`channels`)

    Example:
        >>> attention = GRFSoftmaxAttention(16, heads=4)
        >>> attention(torch.randn(3, 16), torch.tensor([[0, 1], [1, 0]])).shape
        torch.Size([3, 16])
    """

    def __init__(
        self,
        channels: int,
        heads: int = 1,
        num_walks: int = 4,
        p_halt: float = 0.5,
        max_walk_length: int = 4,
        modulation: Tensor | str | None = None,
        asymmetric: bool = False,
        sampler: str = 'iid',
        transition: str = 'uniform',
        normalization: str | None = 'sym',
        resample: str = 'never',
        seed: int = 0,
        walk_length: WalkLength | str | None = None,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        bias: bool = True,
        out_channels: int | None = None,
    ) -> None:
        mask = GRFMask(
            heads,
            num_walks,
            p_halt,
            max_walk_length,
            modulation,
            asymmetric=asymmetric,
            sampler=sampler,
            transition=transition,
            normalization=normalization,
            resample=resample,
            seed=seed,
            walk_length=walk_length,
            positive=True,
        )
        super().__init__(channels, heads, mask, dropout, bias, out_channels, attention_dropout)


class AsymmetricGRFAttention(ExplicitAttention):
    r"""Linear attention of every node to the nodes that its random walks visit, from `"Linear Transformer Topological Masking
    with Graph Random Features" <https://arxiv.org/abs/2410.03462>`_ (App. D, Algorithm 2, without the factor :math:`n` of
    line 11, which cancels): :class:`~pyg_topomask.masks.GRFMask` with :obj:`asymmetric=True`, with coefficients that can be
    looked at.

    Args:
        channels (int): Size of each input sample; :obj:`-1` is inferred at the first call, and needs :obj:`out_channels`.
        heads (int): The number of heads. (default: :obj:`1`)
        num_walks (int): Walks per node. (default: :obj:`4`)
        p_halt (float): The probability that a walk halts before a hop. (default: :obj:`0.5`)
        max_walk_length (int): The largest number of hops. (default: :obj:`4`)
        modulation (torch.Tensor or str, optional): The initial :math:`f`, or a kernel. (default: :obj:`None`)
        sampler (str): How walkers depend on each other. (default: :obj:`"iid"`)
        transition (str): Which hops walkers prefer. (default: :obj:`"uniform"`)
        normalization (str, optional): How :math:`\mathbf{W}` is made of the edge weights. (default: :obj:`"sym"`)
        resample (str): :obj:`"never"` or :obj:`"forward"`. (default: :obj:`"never"`)
        seed (int): The seed of walks that are not drawn anew. (default: :obj:`0`)
        walk_length (WalkLength or str, optional): The distribution of lengths in place of the geometric one.
            (default: :obj:`None`)
        feature_map (str or FeatureMap): See :class:`~pyg_topomask.nn.MaskedLinearAttention`. (default: :obj:`"relu"`)
        dropout (float): Dropout probability of the output. (default: :obj:`0.0`)
        bias (bool): Learn additive biases. (default: :obj:`True`)
        out_channels (int, optional): Size of each output sample. (default: :obj:`channels`)

    Example:
        >>> attention = AsymmetricGRFAttention(16, heads=4)
        >>> attention(torch.randn(3, 16), torch.tensor([[0, 1], [1, 0]])).shape
        torch.Size([3, 16])
    """

    def __init__(
        self,
        channels: int,
        heads: int = 1,
        num_walks: int = 4,
        p_halt: float = 0.5,
        max_walk_length: int = 4,
        modulation: Tensor | str | None = None,
        sampler: str = 'iid',
        transition: str = 'uniform',
        normalization: str | None = 'sym',
        resample: str = 'never',
        seed: int = 0,
        walk_length: WalkLength | str | None = None,
        feature_map: str | FeatureMap = 'relu',
        dropout: float = 0.0,
        bias: bool = True,
        out_channels: int | None = None,
    ) -> None:
        mask = GRFMask(
            heads,
            num_walks,
            p_halt,
            max_walk_length,
            modulation,
            asymmetric=True,
            sampler=sampler,
            transition=transition,
            normalization=normalization,
            resample=resample,
            seed=seed,
            walk_length=walk_length,
        )
        super().__init__(channels, heads, mask, dropout, bias, out_channels)
        self.feature_map = resolve_feature_map(feature_map, self.out_channels // heads)

    def reset_parameters(self) -> None:
        super().reset_parameters()
        self.feature_map.reset_parameters()

    def attend(self, q: Tensor, k: Tensor, v: Tensor, graph: Graph, generator: torch.Generator | None) -> Tensor:
        q, k = self.feature_map(q, k, graph.batch, graph.num_graphs)
        return masked_linear_attention(q, k, v, self.mask(graph, generator), route='edges')

    def coefficients(self, q: Tensor, k: Tensor, v: Tensor, graph: Graph, entries: Entries) -> Tensor:
        q, k = self.feature_map(q, k, graph.batch, graph.num_graphs)
        dtype = torch.promote_types(torch.promote_types(q.dtype, v.dtype), torch.float32)
        weight = sddmm(entries.pattern, q.to(dtype), k.to(dtype)) * entries.value.to(dtype)
        row = entries.pattern.row.long()
        total = weight.new_zeros(self.heads, graph.num_nodes).index_add(1, row, weight)
        size = weight.detach().new_zeros(self.heads, graph.num_nodes).index_add(1, row, weight.detach().abs())
        empty = inverse_weight(total.detach(), size) == 0
        return (weight / total.masked_fill(empty, 1.0)[:, row]).masked_fill(empty[:, row], 0.0)
