r"""Masks of the degrees of two nodes, by the sine of their learned centralities."""

from __future__ import annotations

import math
from collections.abc import Hashable

import torch
import torch.nn.functional as F
from torch import Tensor

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.edges import FLOWS
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks.base.mask import Mask
from pyg_topomask.operators.base import MaskOperator, low_rank_operator
from pyg_topomask.utils.checks import check_choice, check_size, described
from pyg_topomask.utils.precision import wide_dtype

# Buckets above `max_degree` double in width, enough for any 64-bit degree.
_BUCKETS = 63


class SinDegreeMask(Mask):
    r"""The relative degree centrality, the sine of learned centralities of two nodes, from `"Masked Graph Transformer for
    Large-Scale Recommendation" <https://doi.org/10.1145/3626772.3657971>`_ (Eq. 10 and 11). The mask is exact. It has rank 2
    and entries in :math:`(0, 1]`:

    .. math::
        M_{ij} = \sin \left( \tfrac{\pi}{4} (z_i + z_j) \right) = \sin \tfrac{\pi z_i}{4} \cos \tfrac{\pi z_j}{4}
        + \cos \tfrac{\pi z_i}{4} \sin \tfrac{\pi z_j}{4}, \qquad z_i = \sigma(\mathbf{w}^{\top} \mathbf{e}_{\deg(i)})

    with a learned embedding :math:`\mathbf{e}` of each degree, which all heads share, and a projection :math:`\mathbf{w}` for
    each head. As in the paper, each degree up to :obj:`max_degree` has an embedding. Larger degrees share an embedding per
    bucket, and buckets double in width. A product takes :math:`O(N)`.

    The mask learns the offset of each embedding from its initial value, to which weight decay pulls it back. The degrees
    :attr:`seen` are those with a nonzero offset, of all processes in distributed training. In evaluation after training, other
    degrees use the embedding of the nearest seen degree (of a bucket, its nearest degree counts), and of the smaller one in a
    tie.

    Attention follows no edge. The degrees count incoming edges, and :obj:`flow` changes this. With :obj:`degree_attr`, the mask
    ignores edges.

    Args:
        heads (int): The number of heads. (default: that of the layer, or :obj:`1`)
        max_degree (int): The largest degree with a separate embedding. (default: :obj:`512`)
        embedding_dim (int): Size of the embeddings. (default: :obj:`16`)
        flow (str, optional): The edges that count as the degree of a node: incoming edges with :obj:`"source_to_target"`,
            outgoing edges with :obj:`"target_to_source"`, or both with :obj:`None`, which doubles the degrees on undirected
            graphs. Edge weights are ignored. (default: :obj:`"source_to_target"`)
        degree_attr (str, optional): The node attribute with the degrees. Without it, the mask computes them. Subgraphs
            sampled by a loader need it. (default: :obj:`None`)

    Raises:
        ValueError: If an argument is outside its range, or the attribute is missing or does not contain nonnegative integers.

    Shapes:
        - **input:** graphs with :math:`|\mathcal{V}|` nodes and edges
        - **output:** a mask operator :math:`(H, |\mathcal{V}|, |\mathcal{V}|)`
        - **parameters:** :obj:`offset` :math:`(R, D)` for :math:`R` degrees and buckets, and embeddings of size :math:`D`,
          :obj:`weight` :math:`(H, D)`

    Example:
        >>> from torch_geometric.data import Data
        >>> SinDegreeMask(heads=2)(Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=3)).to_dense().shape
        torch.Size([2, 3, 3])
    """

    form = 'low_rank'
    weighted = False
    local = False

    bounds: Tensor
    initial: Tensor

    def __init__(
        self,
        heads: int = 1,
        max_degree: int = 512,
        embedding_dim: int = 16,
        flow: str | None = 'source_to_target',
        degree_attr: str | None = None,
    ) -> None:
        super().__init__(heads)
        check_size(0, max_degree=max_degree)
        check_size(embedding_dim=embedding_dim)
        check_choice((*FLOWS, None), flow=flow)
        self.max_degree = int(max_degree)
        self.flow = flow
        self.degree_attr = degree_attr
        self.register_buffer('bounds', self._bounds(), persistent=False)
        rows = self.max_degree + 1 + self.bounds.numel()
        self.register_buffer('initial', torch.empty(rows, embedding_dim))
        self.offset = torch.nn.Parameter(torch.empty(rows, embedding_dim))
        self.weight = torch.nn.Parameter(torch.empty(heads, embedding_dim))
        self.reset_parameters()

    def _bounds(self) -> Tensor:
        bounds = [(self.max_degree + 1) << bucket for bucket in range(_BUCKETS)]
        return torch.tensor([bound for bound in bounds if bound <= torch.iinfo(torch.long).max])

    def reset_parameters(self) -> None:
        self.bounds.copy_(self._bounds())  # that Module.to_empty loses
        torch.nn.init.normal_(self.initial)
        torch.nn.init.zeros_(self.offset)
        torch.nn.init.uniform_(self.weight, -(self.weight.size(1) ** -0.5), self.weight.size(1) ** -0.5)

    @property
    def embedding(self) -> Tensor:
        r"""The embeddings :math:`\mathbf{e}`, one row for each degree up to :obj:`max_degree` and then for each bucket."""
        return self.initial + self.offset

    @property
    def seen(self) -> Tensor:
        r"""Whether a training step has changed an embedding, for each row of :attr:`embedding`."""
        return self.offset.detach().ne(0).any(1)

    @property
    def direction(self) -> str:  # type: ignore[override]
        return 'counted' if self.degree_attr is None else 'unused'

    def settings(self) -> Hashable:
        return type(self), self.flow, self.degree_attr

    def prepare(self, graph: Graph, generator: torch.Generator | None = None) -> Tensor:
        if self.degree_attr is not None:
            return self._given(graph, self.degree_attr)
        row = graph.edge_index.flatten() if self.flow is None else graph.row_and_col(self.flow)[0]
        degree = torch.zeros(graph.num_nodes, dtype=torch.long, device=graph.device)
        return degree.index_add_(0, row, torch.ones_like(row, dtype=torch.long))

    def bind(self, graph: Graph, state: Tensor) -> MaskOperator:
        # Sines of the table, which has fewer rows than there are nodes.
        angles = self._angles()
        table = torch.cat([angles.sin(), angles.cos()], dim=1)
        left = F.embedding(self._row(state), table).view(-1, 2, self.heads).transpose(1, 2)
        return low_rank_operator(graph, left, left.flip(-1))

    def centrality(self, degree: Tensor) -> Tensor:
        r"""Returns :math:`z \in (0, 1)`, :obj:`[..., heads]`, of degrees :obj:`[...]`. Raises a :class:`ValueError` unless
        these are nonnegative integers.
        """
        _check_degree('degree', degree)
        return self._angles()[self._row(degree.long())] * (4 / math.pi)

    def _angles(self) -> Tensor:
        r"""Returns :math:`\pi z / 4` for every row of the embedding and every head."""
        dtype = wide_dtype(self.offset)
        with torch.autocast(device_type=self.offset.device.type, enabled=False):
            return (self.embedding.to(dtype) @ self.weight.to(dtype).t()).sigmoid() * (math.pi / 4)

    def _row(self, degree: Tensor) -> Tensor:
        r"""Returns the embedding row of each degree. In evaluation, it is the row of the nearest degree seen in training."""
        row = degree.clamp(max=self.max_degree) + torch.bucketize(degree, self.bounds, right=True)
        if self.training:
            return row
        seen = self.seen
        rows = torch.arange(seen.numel(), device=seen.device)
        last = rows[-1]
        # The last seen row up to each row and the first from it on, by running extrema, outside the table if there is none.
        below = torch.where(seen, rows, -1).cummax(0).values[row]
        above = torch.where(seen, rows, last + 1).flip(0).cummin(0).values.flip(0)[row]
        smallest = torch.cat([rows[: self.max_degree + 1], self.bounds])
        largest = torch.cat([smallest[1:] - 1, smallest.new_full((1,), torch.iinfo(torch.long).max)])
        nearer = degree - largest[below.clamp(min=0)] <= smallest[above.clamp(max=last)] - degree
        nearest = torch.where((below >= 0) & (nearer | (above > last)), below, above)
        return torch.where(seen.any(), nearest, row)

    def _given(self, graph: Graph, name: str) -> Tensor:
        degree = graph.attribute(name, 'degree_attr')
        if not isinstance(degree, Tensor) or degree.shape != (graph.num_nodes,):
            given = f'{name!r} with {described(degree)}'
            raise ArgumentError('degree_attr', given, f'a tensor of integers of shape [{graph.num_nodes}]')
        _check_degree('degree_attr', degree)
        return degree.long()

    def extra_repr(self) -> str:
        return f'heads={self.heads}{self._changed()}, embedding_dim={self.offset.size(1)}{self._directed()}'


def _check_degree(name: str, degree: Tensor) -> None:
    if degree.is_floating_point() or degree.is_complex():
        raise ArgumentError(name, f'degrees of {degree.dtype}', 'integers from 0')
    if degree.numel() > 0 and int(degree.min()) < 0:
        raise ArgumentError(name, f'degree {int(degree.min())}', 'integers from 0')
