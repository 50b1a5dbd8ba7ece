r"""Masks of the degrees of both ends, by the sine of their learned centralities."""

from __future__ import annotations

import math
from collections.abc import Hashable

import torch
import torch.nn.functional as F
from torch import Tensor

from pyg_topomask.graph import Graph
from pyg_topomask.masks.base import Mask
from pyg_topomask.masks.low_rank import low_rank_operator
from pyg_topomask.operators import MaskOperator

__all__ = ['DIRECTIONS', 'SinDegreeMask']

DIRECTIONS = ('out', 'in', 'both')

# Buckets that double in width above `max_degree`, enough for any 64-bit number of edges.
_BUCKETS = 63


class SinDegreeMask(Mask):
    r"""The relative degree centrality of `"Masked Graph Transformer for Large-Scale Recommendation"
    <https://doi.org/10.1145/3626772.3657971>`_ (Eq. 10 and 11), an exact mask of rank 2 with entries in :math:`(0, 1]`:

    .. math::
        M_{ij} = \sin \left( \tfrac{\pi}{4} (z_i + z_j) \right) = \sin \tfrac{\pi z_i}{4} \cos \tfrac{\pi z_j}{4}
        + \cos \tfrac{\pi z_i}{4} \sin \tfrac{\pi z_j}{4}, \qquad z_i = \sigma(\mathbf{w}^{\top} \mathbf{e}_{\deg(i)})

    with a learned embedding :math:`\mathbf{e}` of each degree, which heads share, and a projection :math:`\mathbf{w}` of each
    head. Degrees up to :obj:`max_degree` have an embedding each, as in the paper; above, buckets that double in width share
    one, so that the parameters do not grow with the data.

    A degree that no training step has seen has an embedding, but one that means nothing yet: in evaluation, it takes that of
    the nearest degree seen in training (of two, the smaller), which :attr:`seen` keeps with the parameters. A mask that was
    never trained takes every degree's own.

    Args:
        heads (int): The number of heads. (default: :obj:`1`)
        max_degree (int): The largest degree with an embedding of its own. (default: :obj:`512`)
        embedding_dim (int): Size of the embeddings. (default: :obj:`16`)
        direction (str): Which edges of a node count: :obj:`"out"`, those it attends along, as rows of a mask are the sources
            of edges; :obj:`"in"`; or :obj:`"both"`. The three agree on undirected graphs, but that :obj:`"both"` doubles.
            Each edge counts one, whatever its weight. (default: :obj:`"out"`)
        degree_attr (str, optional): The node attribute of the data that holds the degrees in place of those counted, which
            the sampled subgraphs of a loader need. (default: :obj:`None`)

    Raises:
        ValueError: If an argument is outside its range, or the attribute is missing or holds other than integers from 0.

    Example:
        >>> from torch_geometric.data import Data
        >>> SinDegreeMask(heads=2)(Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=3)).to_dense().shape
        torch.Size([2, 3, 3])
    """

    seen: Tensor
    bounds: Tensor

    def __init__(
        self,
        heads: int = 1,
        max_degree: int = 512,
        embedding_dim: int = 16,
        direction: str = 'out',
        degree_attr: str | None = None,
    ) -> None:
        super().__init__(heads)
        if max_degree < 0:
            raise ValueError(f'max_degree: got {max_degree}; accepted are numbers from 0')
        if embedding_dim < 1:
            raise ValueError(f'embedding_dim: got {embedding_dim}; accepted are numbers from 1')
        if direction not in DIRECTIONS:
            raise ValueError(f'direction: got {direction!r}; accepted are {list(DIRECTIONS)}')
        self.max_degree = max_degree
        self.direction = direction
        self.degree_attr = degree_attr
        limit = torch.iinfo(torch.long).max
        bounds = [(max_degree + 1) << bucket for bucket in range(_BUCKETS)]
        self.register_buffer('bounds', torch.tensor([bound for bound in bounds if bound <= limit]), persistent=False)
        rows = max_degree + 1 + self.bounds.numel()
        self.embedding = torch.nn.Parameter(torch.empty(rows, embedding_dim))
        self.weight = torch.nn.Parameter(torch.empty(heads, embedding_dim))
        self.register_buffer('seen', torch.zeros(rows, dtype=torch.bool))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        torch.nn.init.normal_(self.embedding)
        torch.nn.init.uniform_(self.weight, -(self.weight.size(1) ** -0.5), self.weight.size(1) ** -0.5)
        self.seen.zero_()

    def settings(self) -> Hashable:
        return type(self).__name__, self.direction, self.degree_attr

    def prepare(self, graph: Graph, generator: torch.Generator | None = None) -> Tensor:
        if self.degree_attr is not None:
            return self._given(graph, self.degree_attr)
        source, target = graph.edge_index.long()
        ends = {'out': source, 'in': target, 'both': torch.cat([source, target])}[self.direction]
        return torch.bincount(ends, minlength=graph.num_nodes)

    def bind(self, graph: Graph, state: Tensor) -> MaskOperator:
        row = state.clamp(max=self.max_degree) + torch.bucketize(state, self.bounds, right=True)
        table = self._angles()
        if self.training and torch.is_grad_enabled():
            self.seen[row] = True
        elif not self.training:
            table = table.index_select(0, self._nearest())
        # Sines of the table: there are fewer degrees than nodes.
        table = torch.cat([table.sin(), table.cos()], dim=1)
        left = F.embedding(row, table).view(-1, 2, self.heads).transpose(1, 2)
        return low_rank_operator(graph, left, left.flip(-1))

    def centrality(self, degree: Tensor) -> Tensor:
        r"""Returns :math:`z \in (0, 1)` of degrees.

        Args:
            degree (torch.Tensor): Degrees, :obj:`[...]`.

        Returns:
            torch.Tensor: :obj:`[..., heads]`.
        """
        row = degree.clamp(max=self.max_degree) + torch.bucketize(degree, self.bounds, right=True)
        row = row if self.training else self._nearest()[row]
        return self._angles()[row] * (4 / math.pi)

    def _angles(self) -> Tensor:
        r"""Returns :math:`\pi z / 4` of every row of the embedding and every head."""
        dtype = torch.promote_types(self.embedding.dtype, torch.float32)
        with torch.autocast(device_type=self.embedding.device.type, enabled=False):
            return (self.embedding.to(dtype) @ self.weight.to(dtype).t()).sigmoid() * (math.pi / 4)

    def _nearest(self) -> Tensor:
        r"""Returns, for each row of the embedding, the nearest one seen in training."""
        rows = torch.arange(self.seen.numel(), device=self.seen.device)
        # The last row seen below and the first above, by running extrema; without either, far away.
        far = 4 * rows.numel()
        below = torch.where(self.seen, rows, -far).cummax(0).values
        above = torch.where(self.seen, rows, far).flip(0).cummin(0).values.flip(0)
        nearest = torch.where(rows - below <= above - rows, below, above)
        return torch.where(self.seen.any(), nearest, rows)

    def _given(self, graph: Graph, name: str) -> Tensor:
        degree: Tensor | None = getattr(graph.data, name, None)
        if degree is None:
            raise ValueError(f'degree_attr: got {name!r}, which the data lacks; accepted are its node attributes')
        if degree.shape != (graph.num_nodes,) or degree.is_floating_point() or degree.is_complex():
            raise ValueError(
                f'degree_attr: got {name!r} of shape {tuple(degree.shape)} and {degree.dtype}; accepted are integers of shape '
                f'[{graph.num_nodes}]'
            )
        if degree.numel() > 0 and int(degree.min()) < 0:
            raise ValueError(f'degree_attr: got {name!r} with degree {int(degree.min())}; accepted are degrees from 0')
        return degree.long()

    def extra_repr(self) -> str:
        return f'heads={self.heads}, max_degree={self.max_degree}, embedding_dim={self.embedding.size(1)}'
