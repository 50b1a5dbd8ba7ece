r"""Random walks from the nodes of one process over a graph that several processes hold, and the pairs whose walks meet."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor
from torch_geometric.utils import lexsort

from pyg_topomask.distributed.halo import ExtendedGraph, Halo, ShardEntries
from pyg_topomask.distributed.operators import rows_of_shard
from pyg_topomask.distributed.shard import Shard
from pyg_topomask.distributed.storage import blocks, blocks_of_rows
from pyg_topomask.graphs.edges import inverse_degree
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.operators.base import MaskOperator
from pyg_topomask.operators.forms import Entries, SparseEntries
from pyg_topomask.operators.sparse import Sparse
from pyg_topomask.utils.random import draw_seed, seeds_of_ensembles
from pyg_topomask.walks import WalkSettings
from pyg_topomask.walks.features import WalkFeatures
from pyg_topomask.walks.pairs import PairedWalks, paired_walks
from pyg_topomask.walks.steps import Transitions, weighted_transitions
from pyg_topomask.walks.walk import walks_from


@dataclass
class ShardWalks(WalkFeatures):
    r"""The walks from the nodes of this process. Features refer to extended nodes. The halo contains the visited nodes of other
    processes.
    """

    halo: Halo

    def operator(self, graph: Graph, value: Tensor, heads: int) -> MaskOperator:
        assert isinstance(graph, Shard)
        return rows_of_shard(graph, self.halo, Sparse(value, self.pattern, heads=heads))


def shard_walks(graph: Shard, settings: WalkSettings, seed: int, again: bool) -> tuple[ShardWalks, ShardWalks]:
    r"""Samples walks from the nodes of this process. One process samples the same walks with
    :func:`~pyg_topomask.walks.walk.sample_ensembles`. Returns the walks of the queries and of the keys, one object if they are
    the same. If walks follow :obj:`again`, the graph keeps the transitions of all nodes, in the memory of each process or in
    its folder.
    """
    if again:
        key = 'transitions', settings.normalization, settings.transition, settings.flow
        transitions = graph.cached(key, lambda: _transitions(graph, settings))
    else:
        transitions = _transitions(graph, settings)
    of_queries, of_keys = seeds_of_ensembles(seed)
    query = _walk(graph, settings, transitions, of_queries)
    return query, _walk(graph, settings, transitions, of_keys) if settings.independent_ensembles else query


def _walk(graph: Shard, settings: WalkSettings, transitions: Transitions, seed: int) -> ShardWalks:
    nodes = range(graph.first, graph.first + graph.num_nodes)
    start, visited, length, load = graph.group.together(
        lambda: walks_from(nodes, graph.segments.position, transitions, settings, seed)
    )
    visited = visited.long()
    halo = Halo.of_columns(graph.group, graph.offsets, visited)
    longest = settings.max_walk_length
    walks = WalkFeatures.from_visits(start.long() - graph.first, halo.extended(visited), length, load, halo.size, longest)
    return ShardWalks(*walks.visits(), halo.size, longest, halo)


@torch.no_grad()
def _transitions(graph: Shard, settings: WalkSettings) -> Transitions:
    r"""Returns the transitions at all nodes. Each process computes the rows of its nodes, block by block."""
    extended, group, storage = graph.extended(settings.flow), graph.group, graph.storage
    row, col = extended.row_and_col(settings.flow)
    ids = extended.halo.ids()
    original, counts = graph.original(ids), group.gather(row.numel())
    size, first_edge = sum(counts), sum(counts[: group.rank])
    degree = torch.bincount(row, minlength=graph.num_nodes)
    start = degree.cumsum(0) - degree
    normalized = _normalized_weights(extended, settings)
    small = max(graph.total_nodes, size) < 2**31
    index = torch.int32 if small else torch.int64
    bits = torch.int32 if small and extended.weight_dtype == torch.float32 else torch.int64
    edges = storage.table('edges', (size, 4), bits, group, row.device)
    weighted = settings.transition == 'weight'
    cumulative = storage.table('cumulative', (size,), torch.float64, group, row.device) if weighted else None
    local = slice(first_edge, first_edge + row.numel())
    for nodes, block in blocks_of_rows(degree):
        pair = row[block] * graph.total_nodes + original[col[block]]
        order = lexsort([pair] if extended.edge_weight is None else [extended.edge_weight[block], pair])
        weight, position = normalized(block)[order], row[block] - nodes.start
        if cumulative is None:
            factor = weight * degree[nodes].to(weight.dtype)[position]
        else:
            factor, degree[nodes], within = weighted_transitions(weight, position, start[nodes] - block.start, degree[nodes])
            cumulative[local][block] = row[block] + graph.first + within
        edges[local][block, 0] = ids[col[block]][order].to(bits)
        edges[local][block, 3] = factor.view(bits) if bits == torch.int32 else factor.double().view(bits)
    first = storage.table('first', (graph.total_nodes, 2), index, group, row.device)
    first[graph.first : graph.first + graph.num_nodes] = torch.stack([start + first_edge, degree], dim=1).to(index)
    storage.complete(first, graph.sizes, group)
    for block in blocks(row.numel()):
        edges[local][block, 1:3] = first[edges[local][block, 0].long()].to(bits)
    storage.complete(edges, counts, group)
    if cumulative is not None:
        storage.complete(cumulative, counts, group)
    return Transitions(first, edges, cumulative)


def _normalized_weights(graph: ExtendedGraph, settings: WalkSettings) -> Callable[[slice], Tensor]:
    r"""Returns a function that computes :meth:`~pyg_topomask.graphs.Graph.normalized_weight` for a block of edges."""
    row, col = graph.row_and_col(settings.flow)
    ends = {'sym': (row, col), 'rw': (row,), None: ()}[settings.normalization]

    def weight(block: slice) -> Tensor:
        return row.new_ones(block.stop - block.start) if graph.edge_weight is None else graph.edge_weight[block]

    def scale(end: Tensor) -> Tensor:
        degree = torch.zeros(graph.num_nodes, dtype=torch.float64, device=end.device)
        for block in blocks(end.numel()):
            degree.index_add_(0, end[block], weight(block).double().abs())
        return inverse_degree(graph.halo.gather(graph.halo.scatter(degree)), settings.normalization or '')

    scales = [scale(end) for end in ends]

    def normalized(block: slice) -> Tensor:
        factors = [each[end[block]] for each, end in zip(scales, ends, strict=True)]
        product = weight(block).double() * math.prod(factors, start=torch.ones((), dtype=torch.float64))
        return product.to(graph.weight_dtype)

    return normalized


#: The number of meetings per visit, up to which a mask lists its entries.
MOST = 16


@dataclass(frozen=True)
class Meetings:
    r"""The halo of the keys whose walks meet those of the queries of this process, both walks on its extended nodes, and the
    number of meetings.
    """

    halo: Halo
    walks: PairedWalks
    count: int


@dataclass
class ShardEnsembles(PairedWalks):
    r"""The walks of the queries and of the keys of this process, which may be the same."""

    query: ShardWalks
    key: ShardWalks
    graph: Shard = field(kw_only=True)

    def listed(self, make: Callable[[PairedWalks], Entries], estimated: bool = False) -> SparseEntries | None:
        meetings = self.meetings
        if meetings is None:
            return None
        return ShardEntries(lambda: make(meetings.walks), meetings.count, halo=meetings.halo, union=self.graph.union)

    @cached_property
    def meetings(self) -> Meetings | None:
        r"""The meetings of the walks of this process with the walks of all processes. It is :obj:`None` in all processes if
        walks meet more than :obj:`MOST` times per visit, as on graphs with hubs. All processes call this.
        """
        with torch.inference_mode(False):  # kept, and possibly used in training later
            return _meet(self.graph, self.query, self.key)


@paired_walks.register
def paired_walks_on_shard(
    graph: Shard,
    settings: WalkSettings,
    seed: int | None,
    generator: torch.Generator | None,
    again: bool,
    learned: bool = False,
) -> ShardEnsembles:
    graph.refuse_learned('a mask of walks')
    # Process 0 draws the seed of new walks.
    seed = graph.group.gather(draw_seed(generator))[0] if seed is None else seed
    return ShardEnsembles(*shard_walks(graph, settings, seed, again), graph=graph)


@torch.no_grad()
def _meet(graph: Shard, query: ShardWalks, key: ShardWalks) -> Meetings | None:
    group = graph.group
    visits = key.halo.scatter(torch.bincount(key.visited, minlength=key.halo.size))
    count = query.halo.gather(visits)[query.visited].sum()
    total, most = group.sum(torch.stack([count, count.new_tensor(MOST * (query.nnz + key.nnz))])).tolist()
    if total > most:
        return None
    # Each process collects the visits to its nodes. The others then read the visits to the nodes that their queries visit.
    visited = key.halo.ids()[key.visited]
    owner = torch.searchsorted(graph.offsets, visited, right=True) - 1
    visited, *visit = group.exchange_any([visited, key.start.long() + graph.first, key.length, key.load], owner)
    visited, order = (visited - graph.first).sort(stable=True)
    visit = [each[order] for each in visit]
    degree, remote = query.halo.rows(visits, visit)
    others = torch.arange(graph.num_nodes, query.halo.size, device=visited.device)
    visited = torch.cat([visited, others.repeat_interleave(degree)])
    start, length, load = (torch.cat(both) for both in zip(visit, remote, strict=True))
    # Walks visit their start, so visited nodes are among the starts.
    halo = Halo.of_columns(group, graph.offsets, start)
    place, longest = halo.extended(query.halo.ids()), query.max_walk_length
    queries = WalkFeatures(query.start, place[query.visited].to(query.visited), query.length, query.load, halo.size, longest)
    keys = WalkFeatures.from_visits(halo.extended(start), place[visited], length, load, halo.size, longest)
    return Meetings(halo, PairedWalks(queries, keys), int(count))
