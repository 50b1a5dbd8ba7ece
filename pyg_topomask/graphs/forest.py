r"""Rooted forests, their contraction in logarithmically many rounds, and histograms of the distances in them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy
import torch
from numpy.typing import NDArray
from torch import Tensor

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.locality import inverse
from pyg_topomask.graphs.segments import Segments, by_width
from pyg_topomask.graphs.sparse_pattern import stable_argsort
from pyg_topomask.machine.backend import kernel
from pyg_topomask.utils.functorch import outside_transforms
from pyg_topomask.utils.random import splitmix

Indices = NDArray[np.int64]


def argsort(key: Indices) -> Indices:
    r"""Returns the order that sorts indices, in which equal ones keep theirs."""
    return stable_argsort(torch.from_numpy(key), int(key.max(initial=0)) + 1).numpy()


@dataclass(frozen=True, eq=False)
class Histograms:
    r"""Histograms whose products with a function of the distance sum up to the products over all pairs of nodes of a forest.

    The contraction of a forest is a hierarchy of separators, like centroids. Its depth is the number of rounds. The
    nodes removed before a node :math:`v` and connected to it through such nodes form a subtree :math:`C_v`. Through :math:`v`,
    this subtree is attached to a node :math:`u` that is removed later, with :math:`C_v \subset C_u`. For any two nodes, there
    is a lowest :math:`v` with both nodes in :math:`C_v`. It is on the path between them, and all higher subtrees contain both
    nodes too. A sum over pairs of nodes is therefore a sum over all :math:`v`: the pairs in :math:`C_v` with distances through
    :math:`v`, minus the same pairs with distances through :math:`u`. Each of these sums needs only the number of nodes at every
    distance.

    Histograms are grouped by width, rounded up to a power of two.

    Args:
        member (numpy.ndarray): The node of each entry, :obj:`[P]`, by group.
        slot (numpy.ndarray): Its slot in the histograms of its group, :obj:`[P]`.
        sign (numpy.ndarray): Whether each histogram is added or subtracted, :obj:`[Q]`.
        groups (numpy.ndarray): The width, the end of the histograms and the end of the entries of each group, :obj:`[G, 3]`.
    """

    member: NDArray[np.int32]
    slot: NDArray[np.int64]
    sign: NDArray[np.int8]
    groups: Indices

    @classmethod
    def of(cls, up: Indices, down: Indices, round_: Indices, root: NDArray[np.bool_], depth: Indices) -> Histograms:
        r"""Counts the nodes at every distance, given the contraction, the roots, and the distance between each node and the
        root of its tree.
        """
        num_nodes = len(up)
        leaf = down == np.arange(num_nodes)
        climbs = leaf | (round_[up] < round_[down])
        above = np.where(climbs, up, down)
        hops_up, hops_down = depth - depth[up], depth[down] - depth
        member = node = np.arange(num_nodes)
        hops, to_up, to_down = np.zeros_like(node), hops_up, hops_down
        entries = []
        while True:
            entries.append((member, node, hops))
            kept = np.flatnonzero(~root[node])
            if len(kept) == 0:
                break
            member, node, to_up, to_down = member[kept], node[kept], to_up[kept], to_down[kept]
            rises, following = climbs[node], above[node]
            hops = np.where(rises, to_up, to_down)
            entries.append((member, node + num_nodes, hops))
            # The far end of the edge that the node closed, where it had two, is one of the two ends that are next.
            to_down = np.where(rises & ~leaf[node], to_down, hops + hops_down[following])
            to_up = np.where(rises, hops + hops_up[following], to_up)
            node = following
        member, histogram, hops = (np.concatenate(arrays) for arrays in zip(*entries, strict=True))
        widest = np.full(2 * num_nodes, -1)
        np.maximum.at(widest, histogram, hops)
        level = np.frexp(np.maximum(widest, 0))[1]  # widest < 2 ** level
        present = np.flatnonzero(widest >= 0)
        present = present[argsort(level[present])]
        ends = np.bincount(level[present]).cumsum()
        rank = np.empty(2 * num_nodes, dtype=np.int64)
        rank[present] = np.arange(len(present))
        rank[present] -= np.concatenate([[0], ends])[level[present]]
        place = level[histogram]
        order = argsort(place)
        slot = ((rank[histogram] << place) + hops)[order]
        groups = np.stack([1 << np.arange(len(ends)), ends, np.bincount(place, minlength=len(ends)).cumsum()], axis=1)
        sign = np.where(present < num_nodes, 1, -1).astype(np.int8)
        return cls(member[order].astype(np.int32), slot, sign, groups)


# Forests are on the host.
_CPU = torch.device('cpu')
# Pairs of nodes whose distances are computed at a time.
_CELLS = 2**20
# The largest number of nodes of a cycle in an error message.
_NAMED = 20


@dataclass(frozen=True, eq=False)
class Forest:
    r"""A rooted forest and its contraction by rake and compress. Each round removes all leaves, and many nonadjacent nodes
    with one child, whose child is then connected to their parent. Any tree of :math:`N` nodes, including a path, is reduced to
    its root after :math:`O(\log N)` rounds. All arrays have shape :obj:`[N]`.

    Args:
        parent (numpy.ndarray): The parent of each node; for a root, the root itself.
        up (numpy.ndarray): The parent when the node is removed; for a root, the root itself.
        down (numpy.ndarray): The only child when the node is removed; for leaves and roots, the node itself.
        round (numpy.ndarray): The round that removes the node; for a root, a later round than for the rest of its tree.
    """

    parent: Indices
    up: Indices
    down: Indices
    round: Indices

    @classmethod
    def from_edges(cls, edge_index: Tensor, num_nodes: int, root: Indices | None = None) -> Forest:
        r"""Roots and contracts the forest of the given edges, :obj:`[2, E]`, on the CPU. Edges are undirected and unique: an
        edge may be given in one direction, in both, or several times. Self-loops are ignored. By default, the root of a tree is
        an end of a longest path. A cycle raises a :class:`ValueError` that lists its nodes.

        Example:
            >>> Forest.from_edges(torch.tensor([[0, 1], [1, 2]]), num_nodes=4).parent
            array([0, 0, 1, 3])
        """
        if compiled := kernel('forest.rooted', edge_index.device):
            parent = compiled(edge_index, num_nodes, root)
            if parent is not None:
                return cls(parent, *_contract(parent))
        matrix = _undirected(edge_index, num_nodes)
        num_trees, tree = scipy.sparse.csgraph.connected_components(matrix, directed=False)
        if matrix.nnz // 2 != num_nodes - num_trees:
            given = f'a graph with a cycle through the nodes {_cycle(matrix, tree)}'
            accepted = 'forests, in which any two nodes are joined by at most one path'
            remedy = (
                'AddSpanningForest stores spanning forests of a graph with cycles, which layers take as graph=data (in a YAML, '
                'topomask.transforms [AddSpanningForest])'
            )
            raise ArgumentError('edge_index', given, accepted, remedy)
        if root is None:
            first = np.empty(num_trees, dtype=np.int64)
            first[tree] = np.arange(num_nodes)
            # The last node of a breadth-first search in a tree is an end of a longest path.
            order, _ = _search(matrix, first)
            root = np.empty(num_trees, dtype=np.int64)
            root[tree[order]] = order
        parent = _search(matrix, root)[1]
        return cls(parent, *_contract(parent))

    @property
    def num_nodes(self) -> int:
        return len(self.parent)

    @cached_property
    def root(self) -> NDArray[np.bool_]:
        return self.parent == np.arange(self.num_nodes)

    @cached_property
    def depth(self) -> Indices:
        r"""The hops between each node and the root of its tree."""
        return self.distance((~self.root).astype(np.float64)).astype(np.int64)

    @cached_property
    def diameter(self) -> int:
        r"""The largest number of hops between nodes of a tree, if :meth:`from_edges` has chosen the roots."""
        return int(self.depth.max(initial=0))

    @cached_property
    def tree(self) -> Indices:
        r"""The root of the tree of each node."""
        tree = np.arange(self.num_nodes)
        for nodes in reversed(self._rounds):
            tree[nodes] = tree[self.up[nodes]]
        return tree

    @cached_property
    def schedule(self) -> tuple[Indices, Indices, Indices, Indices, Indices]:
        r"""The nodes in the order of removal; :attr:`parent`, :attr:`up` and :attr:`down` of each node, as positions in this
        order; and the bounds of each round, :obj:`[rounds, 3]`: the first node, the first leaf, the end. Roots come last.
        """
        num_rounds = int(self.round[~self.root].max(initial=-1)) + 1
        key = 2 * self.round + (self.down == np.arange(self.num_nodes))
        key[self.root] = 2 * num_rounds
        order = argsort(key)
        position = inverse(torch.from_numpy(order)).numpy()
        ends = np.bincount(key, minlength=2 * num_rounds + 1).cumsum()
        starts = np.concatenate([[0], ends])
        bounds = np.stack([starts[: 2 * num_rounds : 2], ends[: 2 * num_rounds : 2], ends[1 : 2 * num_rounds : 2]], axis=1)
        return order, position[self.parent[order]], position[self.up[order]], position[self.down[order]], bounds

    @property
    def _rounds(self) -> list[Indices]:
        order, *_, bounds = self.schedule
        return [order[first:end] for first, _, end in bounds.tolist()]

    def distance(self, length: NDArray[Any]) -> NDArray[Any]:
        r"""Returns the distance between each node and the root of its tree, given the length of each node's edge to its parent,
        which must be 0 for roots.
        """
        span, distance = length.copy(), np.zeros_like(length)
        node = np.arange(self.num_nodes)
        for nodes in self._rounds:
            inner = nodes[self.down[nodes] != node[nodes]]
            span[self.down[inner]] += span[inner]
        for nodes in reversed(self._rounds):
            distance[nodes] = distance[self.up[nodes]] + span[nodes]
        return distance

    def hops(self, segments: Segments) -> Tensor:
        r"""Returns the hops between all pairs of nodes of the same graph, by row, :obj:`[num_pairs]` in int16, -1 for nodes of
        different trees. Graphs have up to 32,767 nodes.
        """
        if compiled := kernel('forest.forest_hops', _CPU):
            between: Tensor = compiled(self.parent, self.depth, segments.ptr_of_host, segments.num_pairs)
            return between
        sizes, graph, position = (x.cpu().numpy() for x in (segments.sizes, segments.index, segments.position))
        width, hops = sizes[graph], np.empty(segments.num_pairs, dtype=np.int16)
        for _, graphs in by_width(segments.sizes.cpu().clamp(min=1)):  # padding at most doubles the graphs of a part
            part = np.full(segments.num_graphs, -1)
            part[graphs.numpy()] = np.arange(graphs.numel())
            inside = part[graph] >= 0
            rows = self._hops(np.flatnonzero(inside), part[graph], position)
            hops[np.repeat(inside, width)] = rows[np.arange(rows.shape[1]) < width[inside, None]]
        return torch.from_numpy(hops)

    def _hops(self, nodes: Indices, graph: Indices, position: Indices) -> NDArray[np.int16]:
        r"""Returns the hops from all nodes of some graphs to those of the same graph, padded, :obj:`[nodes, n]`, given the
        number of each node's graph among these (below 0 for other graphs) and its position in it.
        """
        first, size = self._subtrees
        shape = graph.max(initial=-1) + 1, position[nodes].max(initial=-1) + 1
        # The places in preorder, and the depths, of the nodes of each graph.
        place, depth = np.full(shape, -1, dtype=np.int32), np.zeros(shape, dtype=np.int16)
        place[graph[nodes], position[nodes]], depth[graph[nodes], position[nodes]] = first[nodes], self.depth[nodes]
        hops, row = np.empty((len(nodes), shape[1]), dtype=np.int16), np.empty(self.num_nodes, dtype=np.int64)
        row[nodes] = np.arange(len(nodes))
        for level, at_depth in enumerate(self._levels):
            chosen = at_depth[graph[at_depth] >= 0]
            for some in np.array_split(chosen, 1 + len(chosen) * shape[1] // _CELLS):
                below = (place[graph[some]] - first[some, None]).view(np.uint32) < size[some, None]
                if level == 0:
                    hops[row[some]] = np.where(below, depth[graph[some]], -1)
                else:
                    # Nodes below are one hop closer than to the parent, and all others one hop farther away.
                    above = hops[row[self.parent[some]]]
                    hops[row[some]] = np.where(above < 0, above, above + 1 - 2 * below.view(np.int8))
        return hops

    @cached_property
    def _levels(self) -> list[Indices]:
        r"""The nodes at each depth, those with the same parent next to each other."""
        order = np.lexsort((self.parent, self.depth))
        return np.split(order, np.bincount(self.depth).cumsum()[:-1]) if len(order) > 0 else []

    @cached_property
    def _subtrees(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        r"""The place of each node in preorder, in which subtrees are contiguous, and the number of nodes of its subtree."""
        size = np.ones(self.num_nodes, dtype=np.int32)
        for nodes in self._levels[:0:-1]:
            np.add.at(size, self.parent[nodes], size[nodes])
        first = np.zeros(self.num_nodes, dtype=np.int32)
        for level, nodes in enumerate(self._levels):
            first[nodes] = size[nodes].cumsum() - size[nodes]
            if level > 0:
                parent = self.parent[nodes]
                _, start, family = np.unique(parent, return_index=True, return_inverse=True)
                first[nodes] += first[parent] + 1 - first[nodes][start][family]
        return first, size

    def lengths(self, edge_index: Tensor, edge_weight: Tensor | None) -> Tensor:
        r"""Returns the length of each node's edge to its parent, the smallest one of parallel edges; 0 for roots. Edges
        :obj:`[2, E]` outside the forest do not count. Gradients flow to their lengths :obj:`[E]`, by default ones.
        """
        if edge_weight is None:
            return torch.from_numpy(~self.root).to(edge_index.device, torch.get_default_dtype())
        parent = torch.from_numpy(self.parent).to(edge_index.device)
        source, target = edge_index.long()
        below = torch.where(parent[source] == target, source, target)
        joins = (source != target) & (parent[below] == torch.where(below == source, target, source))
        zero = edge_weight.new_zeros(self.num_nodes)
        return zero.scatter_reduce(0, below[joins], edge_weight[joins], 'amin', include_self=False)

    @outside_transforms
    def longest_path(self, length: Tensor) -> float:
        r"""Returns the largest distance between nodes of a tree, given the length of each node's edge to its parent, 0 for
        roots."""
        lengths = length.detach().double().cpu().numpy()
        # The farthest node from any node is an end of a longest path.
        order = np.argsort(self.distance(lengths))
        end = np.empty(self.num_nodes, dtype=np.int64)
        end[self.tree[order]] = order
        below = np.flatnonzero(~self.root)
        edges = torch.from_numpy(np.stack([below, self.parent[below]]))
        forest = Forest.from_edges(edges, self.num_nodes, end[self.root])
        from_end = forest.lengths(edges, torch.from_numpy(lengths[below])).numpy()
        return float(forest.distance(from_end).max(initial=0.0))

    def stretch(self, length: NDArray[Any], source: Indices, target: Indices, edge_weight: NDArray[Any]) -> NDArray[Any]:
        r"""Returns the distance in the forest between the ends of edges, in the same tree, divided by the lengths of the edges.
        It is 1 for self-loops and edges of length 0. :obj:`length` is that of each node's edge to its parent, 0 for roots.
        """
        jumps = [self.parent]
        while not np.array_equal(jumps[-1], self.tree):
            jumps.append(jumps[-1][jumps[-1]])
        swapped = self.depth[source] < self.depth[target]
        low, high = np.where(swapped, target, source), np.where(swapped, source, target)
        below = self.depth[low] - self.depth[high]
        for level, jump in enumerate(jumps):
            low = np.where(below >> level & 1, jump[low], low)
        for jump in reversed(jumps):
            apart = jump[low] != jump[high]
            low, high = np.where(apart, jump[low], low), np.where(apart, jump[high], high)
        ancestor, distance = np.where(low == high, low, self.parent[low]), self.distance(length)
        joined = distance[source] + distance[target] - 2 * distance[ancestor]
        counted = (source != target) & (edge_weight != 0)
        return np.divide(joined, edge_weight, out=np.ones_like(joined), where=counted)

    @cached_property
    def histograms(self) -> Histograms:
        r"""Histograms of distances, for products with functions of the distance."""
        return self.histograms_at(self.depth)

    def histograms_at(self, depth: Indices) -> Histograms:
        r"""Histograms of distances, given those between each node and the root of its tree."""
        return Histograms.of(self.up, self.down, self.round, self.root, depth)


def _undirected(edge_index: Tensor, num_nodes: int) -> Any:
    r"""Returns a symmetric matrix with one entry for each connected pair of nodes."""
    source, target = edge_index[:, edge_index[0] != edge_index[1]].long().cpu().numpy()
    ends = np.concatenate([source, target]), np.concatenate([target, source])
    return scipy.sparse.csr_array((np.ones(2 * len(source)), ends), shape=(num_nodes, num_nodes))


def _search(matrix: Any, root: Indices) -> tuple[Indices, Indices]:
    r"""Returns the nodes of all trees in breadth-first order, and their parents."""
    num_nodes = matrix.shape[0]
    # One more node above all roots, so that one search covers all trees.
    columns = np.concatenate([matrix.indices, root])
    pointers = np.append(matrix.indptr, len(columns))
    joined = scipy.sparse.csr_array((np.ones(len(columns)), columns, pointers), shape=(num_nodes + 1, num_nodes + 1))
    order, parent = scipy.sparse.csgraph.breadth_first_order(joined, num_nodes)
    parent = parent[:num_nodes].astype(np.int64)
    parent[root] = root
    return order[1:].astype(np.int64), parent


def _cycle(matrix: Any, tree: Indices) -> str:
    r"""Returns the nodes of a cycle, in order."""
    root = np.unique(tree, return_index=True)[1]
    parent = _search(matrix, root)[1]
    source, target = matrix.nonzero()
    extra = np.flatnonzero((parent[source] != target) & (parent[target] != source))[0]
    paths = []
    for node in (int(source[extra]), int(target[extra])):
        path = [node]
        while parent[path[-1]] != path[-1]:
            path.append(int(parent[path[-1]]))
        paths.append(path)
    first, second = paths
    while len(first) > 1 and len(second) > 1 and first[-2] == second[-2]:
        first.pop()
        second.pop()
    cycle = first + second[-2::-1]
    named = ', '.join(map(str, cycle[:_NAMED]))
    return f'[{named}]' if len(cycle) <= _NAMED else f'[{named}, ...] ({len(cycle)} nodes)'


def _contract(parent: Indices) -> tuple[Indices, Indices, Indices]:
    r"""Removes leaves and nodes with one child until only roots are left, and returns :obj:`up`, :obj:`down`, :obj:`round`."""
    if compiled := kernel('forest.contracted', _CPU):
        contraction: tuple[Indices, Indices, Indices] = compiled(parent)
        return contraction
    num_nodes = len(parent)
    node = np.arange(num_nodes)
    up, down, taken, child = parent.copy(), node.copy(), np.zeros(num_nodes, dtype=np.int64), node.copy()
    active, now = node[parent != node], 0
    while len(active) > 0:
        above = up[active]
        count = np.bincount(above, minlength=num_nodes)
        child[above] = active
        leaf, below = count[active] == 0, child[active]
        # Of adjacent candidates, the one with the smallest random number: about a third of a long path.
        could = (count[active] == 1) & (count[below] > 0)
        rank = np.full(num_nodes, np.iinfo(np.int64).max)
        rank[active[could]] = splitmix(torch.from_numpy(active[could] + now * num_nodes)).numpy()
        order = rank[active]
        goes = could & (order < rank[above]) & (order < rank[below])
        inner = active[goes]
        down[inner] = child[inner]
        up[child[inner]] = up[inner]
        taken[active[leaf]] = taken[inner] = now
        active, now = active[~(leaf | goes)], now + 1
    taken[parent == node] = now
    return up, down, taken
