r"""How each mask is prepared and bound on a sharded graph.

A mask on a :class:`~pyg_topomask.distributed.ShardedGraph` is a :class:`~pyg_topomask.operators.MaskOperator` whose
products communicate. The algebra of operators and every layer then work as on one process.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from torch import Tensor
from torch_geometric.data import Data

from pyg_topomask import masks
from pyg_topomask.distributed.halo import Halo
from pyg_topomask.distributed.operators import HaloRows, ShardColumns, ShardPolynomial, ShardPrefixSum, rows_of_shard
from pyg_topomask.distributed.shard import Shard, reporting
from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.edges import row_and_col
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.graphs.shortest_paths import Hops
from pyg_topomask.graphs.sparse_pattern import SparsePattern
from pyg_topomask.masks.adjacency import AdjacencyMask, AdjacencyState
from pyg_topomask.masks.base.mask import ComposedMask, bind_on
from pyg_topomask.masks.expander import expander_edges
from pyg_topomask.masks.heat_kernel import HeatKernelMask, HeatState
from pyg_topomask.masks.hop import WeightedHops
from pyg_topomask.operators.base import Hadamard, MaskOperator
from pyg_topomask.operators.composed import Chain
from pyg_topomask.operators.exponential import GlobalReductions
from pyg_topomask.operators.sparse import Sparse
from pyg_topomask.operators.sparse_matmul import multiply
from pyg_topomask.walks.expected import gram_of_powers


class ShardReductions(GlobalReductions):
    r"""Reductions over all nodes for a heat kernel, from the rows of this process on its extended nodes."""

    def __init__(self, graph: Shard, halo: Halo, pattern: SparsePattern) -> None:
        super().__init__(pattern)
        self.graph = graph
        self.halo = halo

    def degree(self, weight: Tensor) -> Tensor:
        return self.halo.gather(self.halo.scatter(super().degree(weight)))  # sums those of all processes

    def asymmetric(self, weight: Tensor) -> tuple[int, int] | None:
        ids, num_nodes = self.halo.ids(), self.graph.total_nodes
        local = self.row < self.graph.num_nodes
        row, col, value = ids[self.row[local]], ids[self.col[local]], weight[local]
        owner = torch.searchsorted(self.graph.offsets, col, right=True) - 1
        mirrored_row, mirrored_col, mirrored = self.graph.group.exchange_any([col, row, value], owner)
        # Every process has its diagonal entries, so that there are some.
        keys, order = (mirrored_row * num_nodes + mirrored_col).sort()
        found = self._difference(row * num_nodes + col, value, keys, mirrored[order])
        pair = None if found is None else tuple(self.graph.original(torch.stack([row[found], col[found]])).tolist())
        return next((each for each in self.graph.group.gather(pair) if each is not None), None)

    def components(self) -> tuple[Tensor, int]:
        # Components of each shard, then of what edges between shards join.
        group, size = self.graph.group, self.graph.num_nodes
        local, count = super().components()
        counts = group.gather(count)
        offset = sum(counts[: group.rank])
        # The halo nodes of a process are extended nodes of its components, and nodes of another.
        label = local + offset
        of_owner = self.halo.gather(label[:size])
        pairs = torch.stack([label, of_owner])[:, size:].unique(dim=1)
        joined = torch.cat(group.gather(pairs.t())).numpy()
        total = sum(counts)
        matrix = coo_array((np.ones(len(joined)), (joined[:, 0], joined[:, 1])), shape=(total, total))
        number, component = connected_components(matrix, directed=False)
        return torch.from_numpy(component).long()[label], int(number)

    def product(self, weight: Tensor, vector: Tensor) -> Tensor:
        rows = multiply(self.pattern.rowptr, self.pattern.col, weight, vector)
        return self.halo.gather(rows[: self.graph.num_nodes])

    def sums(self, x: Tensor, component: Tensor, count: int) -> Tensor:
        size = self.graph.num_nodes
        return self.graph.group.sum(super().sums(x[:size], component[:size], count))

    def largest(self, x: Tensor) -> Tensor:
        return self.graph.group.maximum(x)

    def smallest(self, x: Tensor) -> Tensor:
        return self.graph.group.minimum(x)


def prepare_heat(mask: HeatKernelMask, graph: Shard, generator: torch.Generator | None) -> tuple[Halo, HeatState]:
    extended = graph.extended(mask.flow)
    adjacency = AdjacencyMask(1, 1.0, None, mask.flow).prepare(extended)
    state = mask.prepare_on(adjacency, ShardReductions(graph, extended.halo, adjacency.pattern))
    return extended.halo, state


def bind_heat(mask: HeatKernelMask, graph: Shard, state: Any) -> MaskOperator:
    halo, heat = state
    coefficients, method = mask.coefficients(heat)
    value = heat.value.to(mask.lam.dtype).unsqueeze(0)
    return ShardPolynomial(
        coefficients.to(mask.lam.dtype),
        HaloRows(Sparse(value, heat.pattern), halo.number),
        graph.number,
        method,
        mask.tolerance,
        segments=graph.segments,
        heads=mask.heads,
    )


Generator = torch.Generator | None


@dataclass(frozen=True)
class HaloState:
    r"""The prepared state of a mask on a graph of the extended nodes."""

    graph: Graph
    halo: Halo
    state: Any


class _Steps(NamedTuple):
    prepare: Callable[[Any, Shard, Generator], Any]
    bind: Callable[[Any, Shard, Any], MaskOperator]


def prepare_mask(mask: masks.Mask, graph: Shard, generator: Generator) -> Any:
    r"""Prepares a mask, which must be supported, and equal in all processes."""
    graph.group.check_equal('mask', f'{mask} {mask.settings() if mask.settings() is not mask else ""}')
    return _steps(mask).prepare(mask, graph, generator)


@bind_on.register
@reporting
def bind_mask(graph: Shard, mask: masks.Mask, state: Any) -> MaskOperator:
    r"""Binds a mask to a state from :func:`prepare_mask`."""
    return mask.bind(graph, state) if isinstance(mask, ComposedMask) else _steps(mask).bind(mask, graph, state)


def _steps(mask: masks.Mask) -> _Steps:
    if type(mask) not in _STEPS:
        names = ', '.join(sorted(kind.__name__ for kind in [*_STEPS, *ComposedMask.__subclasses__()]))
        raise ArgumentError('mask', f'{type(mask).__name__} on a sharded graph', names)
    return _STEPS[type(mask)]


# Low-rank masks have the factors of the nodes of this process.


def _prepare_as_is(mask: masks.Mask, graph: Shard, generator: Generator) -> Any:
    return graph.group.together(lambda: mask.prepare(graph, generator))


def _bind_as_is(mask: masks.Mask, graph: Shard, state: Any) -> MaskOperator:
    return mask.bind(graph, state)


def _prepare_degrees(mask: masks.SinDegreeMask, graph: Shard, generator: Generator) -> Tensor:
    if mask.degree_attr is not None:
        return _prepare_as_is(mask, graph, generator)
    extended = graph.extended(mask.flow or 'source_to_target')
    return extended.halo.scatter(mask.prepare(extended))


# Sparse masks on the graph of the extended nodes are correct in the rows of this process.


def _prepare_adjacency(mask: masks.AdjacencyMask, graph: Shard, generator: Generator) -> HaloState:
    extended = graph.extended(mask.flow)
    return HaloState(extended, extended.halo, mask.prepare(extended))


def _bind_on_halo(mask: masks.Mask, graph: Shard, state: HaloState) -> MaskOperator:
    return rows_of_shard(graph, state.halo, mask.bind(state.graph, state.state))


def _prepare_expander(mask: masks.ExpanderMask, graph: Shard, generator: Generator) -> HaloState:
    # The random graph depends on all nodes. Each process creates it, and keeps its rows.
    whole = _without_edges(graph.total_nodes, graph.device)
    row, col = graph.ids(expander_edges(whole, mask.degree, mask.seed))
    kept = (row >= graph.first) & (row < graph.first + graph.num_nodes)
    nodes = torch.arange(graph.num_nodes, device=graph.device)
    rows, cols, weight = [nodes, row[kept] - graph.first], [nodes + graph.first, col[kept]], torch.empty(0)
    if mask.input_edges:
        extended = graph.extended(mask.flow)
        row, col = extended.row_and_col(mask.flow)
        weight = extended.weight.to(extended.weight_dtype)
        rows.append(row)
        cols.append(extended.halo.ids()[col])
    ids = torch.cat(cols)
    halo = Halo.of_columns(graph.group, graph.offsets, ids)
    pattern, slot = SparsePattern.from_pairs(torch.cat(rows), halo.extended(ids), halo.size, halo.size)
    return HaloState(_without_edges(halo.size, graph.device), halo, mask.state_of(pattern, slot, weight))


def _prepare_hops(mask: masks.HopMask, graph: Shard, generator: Generator) -> HaloState:
    # All shortest paths of a node lie within its neighborhood.
    halo, row, col, weight = graph.neighborhood(mask.flow, mask.max_hops)
    subgraph = Graph(torch.stack(row_and_col(torch.stack([row, col]), mask.flow)), halo.size, weight)

    def prepare() -> tuple[Hops, WeightedHops | None]:
        pairs = mask.listed(subgraph)
        return pairs, None if mask.path_weights is None else mask.weighted_hops(subgraph, pairs)

    pairs, weighted = graph.group.together(prepare)
    kept = pairs.row < graph.num_nodes
    local = Hops(pairs.row[kept], pairs.col[kept], pairs.distance[kept], halo.size)
    state = local if weighted is None else WeightedHops(local, weighted.weight[kept])
    return HaloState(_without_edges(halo.size, graph.device), halo, state)


def _without_edges(num_nodes: int, device: torch.device, data: Data | None = None) -> Graph:
    return Graph(torch.empty(2, 0, dtype=torch.long, device=device), num_nodes, data=data)


# Series of sparse masks.


def _series(graph: Shard, state: HaloState, coefficients: Tensor, dtype: torch.dtype) -> ShardPolynomial:
    adjacency: AdjacencyState = state.state
    matrix = HaloRows(Sparse(adjacency.weight.to(dtype).unsqueeze(0), adjacency.pattern), state.halo.number)
    return ShardPolynomial(coefficients, matrix, graph.number, segments=graph.segments, heads=coefficients.size(0))


def _bind_series(mask: masks.PowerSeriesMask, graph: Shard, state: HaloState) -> MaskOperator:
    alpha = mask.alpha
    return _series(graph, state, alpha, torch.promote_types(state.graph.weight_dtype, alpha.dtype))


# Masks of random walks: those of this process, as on a whole graph, and exact expectations.


def _prepare_rwgnk(mask: masks.RWGNKMask, graph: Shard, generator: Generator) -> Any:
    if not mask.exact:
        return mask.prepare(graph, generator)
    flow, hops = mask.flow, mask.walk_settings.max_walk_length
    weighted = mask.walk_settings.transition == 'weight'
    extended = graph.extended(flow)
    weight = extended.weight.abs() if weighted else torch.ones_like(extended.weight)
    graph_of_hops = extended.with_weights(weight)
    steps = masks.AdjacencyMask(1, None, 'rw', flow)
    state = HaloState(graph_of_hops, extended.halo, steps.prepare(graph_of_hops))
    if mask.alpha == 0:
        return state, None
    # Norms of rows of the powers: all walks of a node lie within its neighborhood.
    halo, row, col, weight = graph.neighborhood(flow, hops)
    weight = weight.abs() if weighted else torch.ones_like(weight)
    subgraph = Graph(torch.stack(row_and_col(torch.stack([row, col]), flow)), halo.size, weight)
    transitions = steps.prepare(subgraph)
    return state, gram_of_powers(transitions.weight, transitions.pattern, hops, graph.num_nodes)


def _bind_rwgnk(mask: masks.RWGNKMask, graph: Shard, state: Any) -> MaskOperator:
    if not mask.exact:
        return mask.bind(graph, state)
    discounts, (hops, gram) = mask.discounts, state
    series = discounts * mask.walk_settings.survival.to(discounts)
    forward = _series(graph, hops, series, discounts.dtype)
    product: MaskOperator = Chain((forward, forward.T))
    if gram is not None:
        scale = mask.expected_scale(series, gram).unsqueeze(-1)
        product = Hadamard(scale, scale, product)
    return product


# Masks of an order or a grid.


def _prepare_causal(mask: masks.CausalMask, graph: Shard, generator: Generator) -> tuple[Tensor, ...]:
    local = _without_edges(graph.num_nodes, graph.device, graph.data)
    layouts: tuple[Tensor, ...] = graph.group.together(lambda: mask.prepare(local))
    value = graph.nodes if mask.order is None else graph.attribute(mask.order, 'order').view(-1)
    bounds = graph.group.gather((value.min().item(), value.max().item()))
    for rank, (before, after) in enumerate(pairwise(bounds)):
        if not before[1] < after[0]:
            raise ArgumentError(
                'order',
                f'{before[1]} in process {rank} and {after[0]} in process {rank + 1}',
                'shards in ascending order, without equal numbers in two of them',
            )
    return layouts


def _bind_causal(mask: masks.CausalMask, graph: Shard, state: tuple[Tensor, ...]) -> MaskOperator:
    inner = mask.bind(graph, state)
    return ShardPrefixSum(inner, graph.number, segments=graph.segments, heads=mask.heads)


def _prepare_grid(mask: masks.ToeplitzMask, graph: Shard, generator: Generator) -> tuple[Graph, Any]:
    whole = _without_edges(graph.total_nodes, graph.device, graph.data)
    return whole, graph.group.together(lambda: mask.prepare(whole))


def _bind_grid(mask: masks.ToeplitzMask, graph: Shard, state: tuple[Graph, Any]) -> MaskOperator:
    inner = mask.bind(*state)
    return ShardColumns(inner, graph.number, segments=graph.segments, heads=mask.heads)


_LOW_RANK = _Steps(_prepare_as_is, _bind_as_is)

#: Masks that a sharded graph supports, each as itself: a subclass may prepare something else.
_STEPS: dict[type[masks.Mask], _Steps] = {
    masks.PackingMask: _LOW_RANK,
    masks.LowRankMask: _LOW_RANK,
    masks.LearnedFeaturesMask: _LOW_RANK,
    masks.PaddingMask: _LOW_RANK,
    masks.StochasticRPEMask: _LOW_RANK,
    masks.SinDegreeMask: _Steps(_prepare_degrees, _bind_as_is),
    masks.AdjacencyMask: _Steps(_prepare_adjacency, _bind_on_halo),
    masks.ExpanderMask: _Steps(_prepare_expander, _bind_on_halo),
    masks.HopMask: _Steps(_prepare_hops, _bind_on_halo),
    # Its state is that of the adjacency matrix, which is prepared as above.
    masks.PowerSeriesMask: _Steps(masks.PowerSeriesMask.prepare, _bind_series),
    masks.HeatKernelMask: _Steps(prepare_heat, bind_heat),
    masks.GRFMask: _Steps(masks.GRFMask.prepare, masks.GRFMask.bind),
    masks.RWGNKMask: _Steps(_prepare_rwgnk, _bind_rwgnk),
    masks.CausalMask: _Steps(_prepare_causal, _bind_causal),
    masks.ToeplitzMask: _Steps(_prepare_grid, _bind_grid),
}
