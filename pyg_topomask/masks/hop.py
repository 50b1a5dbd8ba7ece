r"""Masks of the shortest-path distance."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.edges import check_flow
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.graphs.segments import Segments
from pyg_topomask.graphs.shortest_paths import Hops, LastSteps, pairs_within
from pyg_topomask.graphs.sparse_pattern import SparsePattern
from pyg_topomask.graphs.stored import StoredBlocks
from pyg_topomask.machine.backend import kernel
from pyg_topomask.masks.base.kinds import LogarithmicMask
from pyg_topomask.masks.base.series import decaying, nested_balls, one_hop_per_head, resolve_positive, series_parameter
from pyg_topomask.operators.base import MaskOperator
from pyg_topomask.operators.forms import Entries, PreparedBlocks, SparseEntries
from pyg_topomask.operators.sparse import lazy_sparse
from pyg_topomask.utils.checks import check_choice, check_size
from pyg_topomask.utils.functorch import outside_transforms, readable
from pyg_topomask.utils.precision import widened


@dataclass(frozen=True)
class StoredHops:
    r"""The pairs of nodes within :obj:`max_hops` edges, given a label of each pair of nodes of the same graph in int16,
    :obj:`[1, num_pairs]`: one more than the distance, or 0 beyond. They are listed when they are called for.
    """

    label: Tensor
    segments: Segments

    @cached_property
    def nnz(self) -> int:
        if self.label.device.type == 'cpu':
            return int(np.count_nonzero(self.label.numpy()))  # takes a third of torch's time
        return int(self.label.count_nonzero())

    @cached_property
    @outside_transforms
    def _pairs(self) -> Hops:
        with torch.inference_mode(False):  # kept, and possibly used in training later
            return Hops(*self._listed(), self.segments.num_nodes)

    def _listed(self) -> tuple[Tensor, Tensor, Tensor]:
        if compiled := kernel('patterns.labelled_pairs', self.label.device):
            pairs: tuple[Tensor, Tensor, Tensor] = compiled(self.label, self.segments.ptr, self.nnz)
            return pairs
        place, size = self.label[0].nonzero().squeeze(1), self.segments.sizes[self.segments.index]
        ends = size.cumsum(0)  # of the pairs of each node
        start = torch.searchsorted(ends, place, right=True)
        visited = place - (ends - size - self.segments.first)[start]
        return start.int(), visited.int(), self.label[0, place].int() - 1

    @property
    def pattern(self) -> SparsePattern:
        return self._pairs.pattern

    @property
    def distance(self) -> Tensor:
        return self._pairs.distance

    def labels(self, segments: Segments) -> Tensor:
        return self.label


@dataclass(frozen=True)
class WeightedHops:
    r"""Listed pairs of nodes, and what the weights of the edges between them make of their entries, :obj:`[nnz]`."""

    hops: Hops | StoredHops
    weight: Tensor


#: What becomes of the weights of the edges on shortest paths.
PATH_WEIGHTS = ('mean', 'max')
#: Initial values by name, called with the number of heads and of distances.
STARTS = {'balls': nested_balls, 'hops': one_hop_per_head, 'decay': decaying}
# The logarithm of the largest number of a geometric f, so that sums of large features stay finite.
_LARGEST = 64.0
# The largest product of the weights on a path.
_LARGEST_PRODUCT = 2.0**32


class HopMask(LogarithmicMask):
    r"""A learnable function of the shortest-path distance between two nodes, and 0 beyond :math:`K` edges:

    .. math::
        M_{ij} = \begin{cases} f_{d(i, j)} & \text{if } d(i, j) \le K \\ 0 & \text{otherwise} \end{cases}

    :math:`d(i, j)` counts the edges on the shortest path from :math:`j` to :math:`i`, and ignores edge weights. This is the
    mask :math:`f(\mathrm{dist}(i, j))` of `"From block-Toeplitz matrices to differential equations on graphs"
    <https://arxiv.org/abs/2107.07999>`_ (Sec. 3) for a function that vanishes beyond :math:`K` edges, on any graph. Unlike
    powers of the adjacency matrix, it does not count walks that return. It suits sparse graphs and few hops. It lists the pairs
    of nodes within :math:`K` edges once per graph, and a product takes :math:`O(\text{pairs})`. A scaled
    :class:`~pyg_topomask.masks.PackingMask` adds a weight for all other pairs, as in
    :obj:`HopMask(4) + PackingMask() * torch.nn.Parameter(torch.tensor(0.1))`.

    By default, edge weights have no effect. With :obj:`path_weights`, entries are :math:`f_{d(i, j)} \, g_{ij}`, where
    :math:`g_{ij}` is the mean, or the maximum, over all shortest paths from :math:`j` to :math:`i`, of the product of the
    weights of their edges. This extension is our own. Distances still count edges. With weights of 1, :math:`g_{ij} = 1`.
    Parallel edges are on different paths. Gradients reach the weights, such as those that
    :class:`~pyg_topomask.nn.EdgeWeights` learns.

    Edges are followed: a node attends to nodes from which edges lead to it. :obj:`flow` reverses this.

    Args:
        heads (int): The number of heads, each with its own function. (default: that of the layer, or :obj:`1`)
        max_hops (int): The largest distance :math:`K \ge 0`. (default: :obj:`2`)
        f (torch.Tensor or str): The initial :math:`f`, :obj:`[K + 1]` or :obj:`[heads, K + 1]`, or a name. With
            :obj:`"balls"`, heads start with nested neighborhoods: :math:`f_d = 1` for :math:`d \le \lfloor K (h + 1) / H
            \rfloor` in head :math:`h` of :math:`H`. With :obj:`"hops"`, they start at different hops: :math:`f_d = 1` for
            :math:`d = h \bmod (K + 1)`. All other entries start at 0.02. With :obj:`"decay"`, all heads start with
            :math:`f_d = 2^{-d}`. Balls are clearly the best on two tasks on trees, and close to the best on meshes
            (:obj:`benchmarks/results/accuracy_trees.md`, :obj:`accuracy_lookup.md`, :obj:`accuracy_meshes.md`). With
            :obj:`"geometric"`, a head learns two numbers in place of :math:`f`, for :math:`f_d = \min(c \, r^d, e^{64})`. It
            starts with :math:`c = 1` and a ratio :math:`r` from 1/2 to 2, and continues to distances that training has not
            seen. With :obj:`sums=True`, the layer then reads distances, the best of what was tried on them
            (:obj:`benchmarks/results/graph_properties.md`).
            (default: :obj:`"balls"`)
        learnable (bool): Learn :math:`f`. (default: :obj:`True`)
        positive (bool, optional): Learn the logarithm of :math:`f`, see :class:`~pyg_topomask.masks.PowerSeriesMask`.
            (default: :obj:`None`)
        flow (str): With :obj:`"source_to_target"`, paths to node :math:`i` follow the edges, see
            :class:`~pyg_topomask.masks.AdjacencyMask`. (default: :obj:`"source_to_target"`)
        path_weights (str, optional): Multiplies entries by the :obj:`"mean"` over shortest paths of the product of edge
            weights, or by the largest product, :obj:`"max"`, for weights of at least 0. :obj:`None` reads no weights.
            (default: :obj:`None`)

    Raises:
        ValueError: If an argument is outside its range, more than :math:`2^{26}` pairs of nodes are within :math:`K` edges, or
            a product of weights exceeds :math:`2^{32}`.

    Shapes:
        - **input:** graphs with :math:`|\mathcal{V}|` nodes and edges
        - **output:** a mask operator :math:`(H, |\mathcal{V}|, |\mathcal{V}|)`
        - **parameters:** :obj:`raw_f` :math:`(H, K + 1)`, or :math:`(H, 2)` with :obj:`f="geometric"`

    Example:
        >>> from torch_geometric.data import Data
        >>> mask = HopMask(max_hops=1, f=torch.tensor([1.0, 0.5]))
        >>> mask(Data(edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), num_nodes=3)).to_dense().detach()
        tensor([[[1.0000, 0.5000, 0.0000],
                 [0.5000, 1.0000, 0.5000],
                 [0.0000, 0.5000, 1.0000]]])
    """

    form = 'sparse'
    renumbers = 'graph'
    direction = 'followed'
    weights_by_head = True
    shown = ('max_hops',)
    reads_weights_by = 'path_weights="mean"'

    def __init__(
        self,
        heads: int = 1,
        max_hops: int = 2,
        f: Tensor | str = 'balls',
        learnable: bool = True,
        positive: bool | None = None,
        flow: str = 'source_to_target',
        path_weights: str | None = None,
    ) -> None:
        super().__init__(heads)
        check_size(0, max_hops=max_hops)
        check_flow(flow)
        if path_weights is not None:
            check_choice(PATH_WEIGHTS, path_weights=path_weights)
        self.max_hops = max_hops
        self.flow = flow
        self.path_weights = path_weights
        if isinstance(f, str):
            check_choice((*STARTS, 'geometric'), f=f)
        self.geometric = isinstance(f, str) and f == 'geometric'
        if self.geometric:
            if positive is False:
                raise ArgumentError('positive', 'False with f="geometric", whose numbers are positive', 'None and True')
            initial = torch.stack([torch.ones(heads), torch.linspace(0.5, 2.0, heads)], dim=1)
        else:
            given = STARTS[f](heads, max_hops + 1) if isinstance(f, str) else f
            initial = series_parameter('f', given, heads, max_hops + 1, each='number of hops')
        self._begin(initial, self.geometric or resolve_positive('f', initial, positive))
        self.raw_f = torch.nn.Parameter(torch.empty_like(initial), requires_grad=learnable)
        self.reset_parameters()

    @property
    def f(self) -> Tensor:
        r""":math:`f`, :obj:`[heads, K + 1]`."""
        if not self.geometric:
            return self._numbers(self.raw_f)
        logarithm, slope = widened(self.raw_f).split(1, dim=1)
        hops = torch.arange(self.max_hops + 1, dtype=slope.dtype, device=slope.device)
        return (logarithm + slope * hops).clamp(max=_LARGEST).exp()

    def extra_repr(self) -> str:
        return super().extra_repr() + (', f=geometric' if self.geometric else '')

    def get_extra_state(self) -> Tensor:
        return torch.tensor(2 if self.geometric else int(self.positive))

    def set_extra_state(self, state: Tensor) -> None:
        geometric = round(float(state)) == 2
        if geometric != self.geometric:
            given = f'a state dictionary {"with" if geometric else "without"} f="geometric"'
            raise ArgumentError('f', f'{given} for a mask {"without" if geometric else "with"} it', 'equal kinds of f')
        super().set_extra_state(state)

    @property
    def weighted(self) -> bool:  # type: ignore[override]
        return self.path_weights is not None

    def settings(self) -> Hashable:
        return type(self), self.max_hops, self.flow, self.path_weights

    @property
    def stored_blocks(self) -> StoredBlocks:
        few = self.max_hops < torch.iinfo(torch.uint8).max
        return StoredBlocks('hop', (self.max_hops, self.flow), torch.uint8 if few else torch.int16)

    def prepare(self, graph: Graph, generator: torch.Generator | None = None) -> Hops | StoredHops | WeightedHops:
        hops = graph.cached_of_edges(('hops', self.max_hops, self.flow), partial(self._hops, graph))
        return hops if self.path_weights is None else self.weighted_hops(graph, hops)

    def _hops(self, graph: Graph) -> Hops | StoredHops:
        if (labels := self.stored_blocks.load(graph)) is not None:
            return StoredHops(labels.to(torch.int16), graph.segments)
        return self.listed(graph)

    def listed(self, graph: Graph) -> Hops:
        r"""Lists the pairs of nodes within :math:`K` edges."""
        row, col = graph.row_and_col(self.flow)
        pattern, _ = SparsePattern.from_pairs(row, col, graph.num_nodes, graph.num_nodes)
        row, col, distance = pairs_within(pattern.tensors, self.max_hops)
        return Hops(row, col, distance, graph.num_nodes)

    def weighted_hops(self, graph: Graph, hops: Hops | StoredHops) -> WeightedHops:
        r"""Multiplies the weights of the edges along shortest paths."""
        weight, largest = graph.weight.to(graph.weight_dtype), self.path_weights == 'max'
        key = 'last steps', self.max_hops, self.flow, weight.dtype
        ends = graph.row_and_col(self.flow)
        steps = graph.cached_of_edges(key, lambda: LastSteps.of(hops.pattern, hops.distance, *ends, weight.dtype))
        if largest and readable(weight) and bool((weight < 0).any()):
            given = f'{float(weight.min())} for the largest product on shortest paths'
            raise ArgumentError('edge_weight', given, 'weights of at least 0, or path_weights="mean"')
        products = steps.products(weight, largest)
        if readable(products) and not bool((products.abs() <= _LARGEST_PRODUCT).all()):
            given = f'weights up to {float(weight.abs().max()):g}, and shortest paths with a product above {_LARGEST_PRODUCT:g}'
            raise ArgumentError('edge_weight', given, 'smaller weights, or fewer hops')
        return WeightedHops(hops, products)

    def bind(self, graph: Graph, state: Hops | StoredHops | WeightedHops) -> MaskOperator:
        f = self.f
        # They are not formed where blocks serve instead.
        if isinstance(state, WeightedHops):
            hops, weight = state.hops, state.weight
            weighted = SparseEntries(lambda: Entries(hops.pattern, f.index_select(1, hops.distance) * weight), hops.nnz)
            return lazy_sparse(graph.segments, self.heads, weighted)
        entries = SparseEntries(lambda: Entries(state.pattern, f, state.distance), state.nnz)
        return lazy_sparse(graph.segments, self.heads, entries, self._blocks(graph, state, f))

    def _blocks(self, graph: Graph, state: Hops | StoredHops, f: Tensor) -> PreparedBlocks | None:
        r"""Returns the blocks of the graphs as functions of the number of hops."""
        if self.max_hops >= torch.iinfo(torch.int16).max:
            return None

        cache: dict[Hashable, Any] = graph.cached(('labels', self.settings()), dict)
        # Label 0 is that of pairs at larger distances.
        return PreparedBlocks(pad(f, (1, 0)), lambda segments, _: state.labels(segments), cache, graph.num_nodes, labels=1)
