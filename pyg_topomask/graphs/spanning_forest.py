r"""Spanning forests of graphs."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy
import torch
from numpy.typing import NDArray
from torch import Tensor

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.forest import Forest
from pyg_topomask.utils.checks import check_choice

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

# The first radius of clusters, in median lengths of edges, and its growth, which is AKPW's base of the classes of lengths.
_RADIUS = 2.0
_GROWTH = 4.0


def spanning_forests(
    edge_index: Tensor, edge_weight: Tensor | None, num_nodes: int, method: str, num_trees: int, seed: int
) -> list[Tensor]:
    r"""Returns the edges of spanning forests, :obj:`[2, N - components]` each. They depend on the seed and on the graph, and
    not on the order of its edges. The arguments are those of :class:`~pyg_topomask.transforms.AddSpanningForest`.
    """
    check_choice(METHODS, method=method)
    if edge_weight is not None and method == 'low_stretch' and bool((edge_weight < 0).any()):
        raise ArgumentError('edge_weight', f'{float(edge_weight.min()):.6g} for method="low_stretch"', 'lengths from 0')
    pairs, length = _pairs(edge_index, edge_weight, num_nodes)
    forests = []
    for tree in range(num_trees):
        chosen = METHODS[method](pairs, length, num_nodes, np.random.default_rng([int(seed) % 2**64, tree]))
        forests.append(torch.from_numpy(pairs[:, chosen]).to(edge_index.device))
    return forests


def _pairs(edge_index: Tensor, edge_weight: Tensor | None, num_nodes: int) -> tuple[Indices, Array]:
    r"""Returns the connected pairs of nodes in ascending order, and the length of the shortest edge between them."""
    ends = np.sort(edge_index.long().cpu().numpy(), axis=0)
    length = np.ones(ends.shape[1]) if edge_weight is None else edge_weight.detach().double().cpu().numpy()
    kept, key = _shortest(ends, length, num_nodes)
    return np.stack([key // num_nodes, key % num_nodes]), length[kept]


def _shortest(ends: Indices, length: Array, num_nodes: int) -> tuple[Indices, Indices]:
    r"""Returns the shortest edge between any two nodes, in ascending order of these, and their keys."""
    low, high = ends.min(axis=0), ends.max(axis=0)
    edge = np.flatnonzero(low != high)
    key = low[edge] * num_nodes + high[edge]
    order = np.lexsort((length[edge], key))
    distinct, first = np.unique(key[order], return_index=True)
    return edge[order[first]], distinct


def _minimum(pairs: Indices, length: Array, num_nodes: int, rng: np.random.Generator) -> Indices:
    rank = np.empty(len(length), dtype=np.int64)  # SciPy would lose edges of length 0
    rank[np.lexsort((rng.random(len(length)), length))] = np.arange(1, len(length) + 1)
    tree = scipy.sparse.csgraph.minimum_spanning_tree(_matrix(pairs, rank, num_nodes))
    return np.flatnonzero(np.isin(rank, tree.data))


def _shortest_paths(pairs: Indices, length: Array, num_nodes: int, rng: np.random.Generator) -> Indices:
    # From a random node of each component.
    label = scipy.sparse.csgraph.connected_components(_matrix(pairs, length, num_nodes), directed=False)[1]
    shuffled = rng.permutation(num_nodes)
    root = shuffled[np.unique(label[shuffled], return_index=True)[1]]
    start = np.full(num_nodes, np.inf)
    start[root] = 0.0
    return _grow(pairs, length, start)[0]


def _grow(pairs: Indices, length: Array, start: Array) -> tuple[Indices, Indices]:
    r"""Returns the edges of the shortest paths from the nodes that are reached first, given the time at which each node would
    start by itself, and the cluster of each node.
    """
    num_nodes = len(start)
    roots = np.flatnonzero(np.isfinite(start))
    ends = np.concatenate([pairs, np.stack([np.full(len(roots), num_nodes), roots])], axis=1)
    matrix = _matrix(ends, np.concatenate([length, start[roots]]), num_nodes + 1)
    parent = scipy.sparse.csgraph.dijkstra(matrix, indices=num_nodes, return_predecessors=True)[1][:num_nodes].astype(np.int64)
    reached = np.flatnonzero(parent != num_nodes)
    joins = np.sort(np.stack([reached, parent[reached]]), axis=0)
    chosen = np.searchsorted(pairs[0] * num_nodes + pairs[1], joins[0] * num_nodes + joins[1])
    matrix = _matrix(joins, np.ones(len(reached)), num_nodes)
    return chosen, scipy.sparse.csgraph.connected_components(matrix, directed=False)[1]


def _clustered(pairs: Indices, length: Array, num_nodes: int, rng: np.random.Generator) -> Indices:
    # AKPW: cluster, keep a tree of shortest paths in each cluster, contract the clusters, and repeat with a larger radius. The
    # clusters grow from random start times, as those of Miller, Peng and Xu.
    edge, ends, positive = np.arange(len(length)), pairs, length[length > 0]
    radius, chosen = _RADIUS * float(np.median(positive)) if len(positive) > 0 else 1.0, [edge[:0]]
    while len(edge) > 0:
        start = rng.exponential(radius, num_nodes)
        grown, cluster = _grow(ends, length[edge], start.max() - start)
        chosen.append(edge[grown])
        num_nodes, radius = int(cluster.max()) + 1, _GROWTH * radius
        kept, key = _shortest(cluster[ends], length[edge], num_nodes)
        edge, ends = edge[kept], np.stack([key // num_nodes, key % num_nodes])
    return np.concatenate(chosen)


def _low_stretch(pairs: Indices, length: Array, num_nodes: int, rng: np.random.Generator) -> Indices:
    candidates = [make(pairs, length, num_nodes, rng) for make in (_clustered, _shortest_paths, _minimum)]
    return min(candidates, key=lambda chosen: _mean_stretch(pairs, length, num_nodes, chosen))


def _mean_stretch(pairs: Indices, length: Array, num_nodes: int, chosen: Indices) -> float:
    if len(length) == 0:
        return 1.0
    tree = torch.from_numpy(pairs[:, chosen])
    forest = Forest.from_edges(tree, num_nodes)
    to_parent = forest.lengths(tree, torch.from_numpy(length[chosen])).numpy()
    return float(forest.stretch(to_parent, pairs[0], pairs[1], length).mean())


def _random(pairs: Indices, length: Array, num_nodes: int, rng: np.random.Generator) -> Indices:
    # Wilson's algorithm: loop-erased random walks to the trees of the nodes before.
    matrix = _matrix(pairs, np.arange(len(length)), num_nodes)
    pointers, neighbor, edge = matrix.indptr.tolist(), matrix.indices.tolist(), matrix.data.tolist()
    root = np.unique(scipy.sparse.csgraph.connected_components(matrix, directed=False)[1], return_index=True)[1]
    step, joined = [-1] * num_nodes, np.isin(np.arange(num_nodes), root).tolist()
    draw = random.Random(int(rng.integers(2**63))).random
    chosen = []
    for first in range(num_nodes):
        node = first
        while not joined[node]:
            begin = pointers[node]
            step[node] = begin + int(draw() * (pointers[node + 1] - begin))
            node = neighbor[step[node]]
        node = first
        while not joined[node]:
            joined[node] = True
            chosen.append(edge[step[node]])
            node = neighbor[step[node]]
    return np.array(chosen, dtype=np.int64)


def _matrix(pairs: Indices, value: NDArray[Any], num_nodes: int) -> Any:
    r"""Returns a symmetric matrix."""
    ends = np.concatenate([pairs, pairs[::-1]], axis=1)
    return scipy.sparse.csr_array((np.concatenate([value, value]), (ends[0], ends[1])), shape=(num_nodes, num_nodes))


METHODS: dict[str, Callable[[Indices, Array, int, np.random.Generator], Indices]] = {
    'low_stretch': _low_stretch,
    'minimum': _minimum,
    'random': _random,
}
