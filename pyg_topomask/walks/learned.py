r"""Walks that hand gradients on to edge weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from pyg_topomask.graphs.graph import Graph
from pyg_topomask.graphs.sparse_pattern import SparsePattern
from pyg_topomask.utils.random import counter_uniform
from pyg_topomask.walks.features import WalkFeatures
from pyg_topomask.walks.settings import WalkSettings
from pyg_topomask.walks.transitions import Transitions, order_of_edges
from pyg_topomask.walks.walk import Hop, crossed, loads_of


@dataclass(frozen=True)
class CrossedEdges:
    r"""The walks of :func:`~pyg_topomask.walks.walk.sample_walks`, by the edges that they cross.

    Args:
        order (torch.Tensor): The edges in the order in which hops name them, :obj:`[E]`.
        inverse (torch.Tensor): The inverse probability of each edge in this order, :obj:`[E]`.
        hops (list): The edges that the walkers cross.
        features (WalkFeatures): The positions of the loads.
        slot (torch.Tensor): The place of each visit among them.
    """

    order: Tensor
    inverse: Tensor
    hops: Sequence[Hop]
    features: WalkFeatures
    slot: Tensor


def learned_walks(graph: Graph, settings: WalkSettings, seed: int, keep: bool = False) -> WalkFeatures:
    r"""Returns the walks of :func:`~pyg_topomask.walks.walk.sample_walks`, with loads that hand gradients on to the edge
    weights. The walks and the probabilities that drew them count as fixed, so that the gradient of a mask that is linear in
    the loads is unbiased. Graphs that differ in their weights alone may :obj:`keep` walks that do not depend on weights.
    """
    make = partial(_crossed, graph, settings, seed)
    fixed = keep and settings.transition == 'uniform' and not graph.cached_of_edges('parallel', partial(_has_parallel, graph))
    walks = graph.cached_of_edges(('walks', settings, seed), make) if fixed else make()
    weight = graph.normalized_weight(settings.normalization, settings.flow).to(graph.weight_dtype)
    load = loads_of(walks.hops, weight.index_select(0, walks.order) * walks.inverse, settings, graph.num_nodes)
    return walks.features.with_loads(load.new_zeros(walks.features.nnz).index_add(0, walks.slot, load))


@torch.no_grad()
def _crossed(graph: Graph, settings: WalkSettings, seed: int) -> CrossedEdges:
    transitions = Transitions.of(graph, settings.normalization, settings.transition, settings.flow)
    uniform = counter_uniform(seed, graph.segments.position, settings.num_walks, 0)
    start, visited, length, hops = crossed(transitions, settings, uniform, range(graph.num_nodes))
    longest = settings.max_walk_length
    ones = torch.ones(start.numel(), dtype=graph.weight_dtype, device=graph.device)
    features = WalkFeatures.from_visits(start, visited, length, ones, graph.num_nodes, longest)
    _ = features.pattern  # copies share it
    of_visits, of_entries = (
        (first.long() * graph.num_nodes + last) * (longest + 1) + number
        for first, last, number in ((start, visited, length), (features.start, features.visited, features.length))
    )
    order = order_of_edges(graph, settings.flow)
    if settings.transition == 'uniform':
        row = graph.row_and_col(settings.flow)[0].index_select(0, order)
        inverse = transitions.first[:, 1].index_select(0, row).to(graph.weight_dtype)
    else:
        weight = graph.normalized_weight(settings.normalization, settings.flow).to(graph.weight_dtype).index_select(0, order)
        inverse = transitions.factor.to(weight.dtype) / weight.masked_fill(weight == 0, 1.0)
    return CrossedEdges(order, inverse, hops, features, torch.searchsorted(of_entries, of_visits))


def _has_parallel(graph: Graph) -> bool:
    source, target = graph.edge_index.long()
    return (source << 32 | target).unique().numel() < graph.num_edges


@dataclass(frozen=True)
class Meetings:
    r"""The meetings of the walks of queries and keys: which products of features the entries of a mask add up.

    Args:
        pattern (SparsePattern): The positions of the entries.
        slot (torch.Tensor): The entry of each meeting.
        query (torch.Tensor): The feature of the query in each meeting.
        key (torch.Tensor): The feature of the key in each meeting.
    """

    pattern: SparsePattern
    slot: Tensor
    query: Tensor
    key: Tensor

    @classmethod
    def of(cls, query: SparsePattern, key: SparsePattern) -> Meetings:
        r"""Returns the meetings in nodes that both visit, given the positions of the features."""
        visited, first = query.col.long(), key.rowptr_t.long()
        count = first.diff().index_select(0, visited)
        of_query = torch.arange(query.nnz, device=count.device).repeat_interleave(count)
        place = torch.arange(of_query.numel(), device=count.device) + (first[visited] - (count.cumsum(0) - count))[of_query]
        pattern, slot = SparsePattern.from_pairs(query.row[of_query], key.col_t[place], query.num_rows, key.num_rows)
        return cls(pattern, slot, of_query, key.perm_t[place].long())

    def entries(self, query: Tensor, key: Tensor) -> Tensor:
        r"""Returns the entries, :obj:`[H, nnz]`, for the features of queries and keys, in the same shape."""
        products = query.t().index_select(0, self.query) * key.t().index_select(0, self.key)
        return products.new_zeros(self.pattern.nnz, products.size(1)).index_add(0, self.slot, products).t().contiguous()
