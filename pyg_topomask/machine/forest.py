r"""Rooted forests, their contraction, and the hops between their nodes, as machine code."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from pyg_topomask.machine.compiled import compiled, largest, splitmix
from pyg_topomask.machine.patterns import pattern_of_pairs
from pyg_topomask.machine.threads import Array, arrays_of


@compiled
def _search(root, rowptr, col, parent, queue):
    r"""Lists the nodes of a tree in breadth-first order, writes their parents, and returns their number."""
    queue[0], parent[root] = root, root
    place, number = 0, 1
    while place < number:
        node = queue[place]
        place += 1
        for other in col[rowptr[node] : rowptr[node + 1]]:
            if other != parent[node] and other != node:
                if number == len(queue):
                    return number + 1  # there is a cycle
                parent[other], queue[number] = node, other
                number += 1
    return number


@compiled
def _root(rowptr, col, chosen, parent, queue):
    r"""Writes the parent of each node, and returns whether there is no cycle. Roots are the ends of longest paths, unless
    others are chosen.
    """
    parent[:] = -1
    total = 0
    for place in range(len(chosen) if len(chosen) > 0 else len(parent)):
        # The largest node of each tree comes first.
        node = chosen[place] if len(chosen) > 0 else len(parent) - 1 - place
        if parent[node] >= 0:
            continue
        number = _search(node, rowptr, col, parent, queue)
        if number <= len(queue) and len(chosen) == 0:
            number = _search(queue[number - 1], rowptr, col, parent, queue)
        total += number
        if total > len(parent):
            return False
    return True


@compiled
def _contract(parent, up, down, taken, count, child, rank, active, leaves):
    number = now = 0
    for node in range(len(parent)):
        up[node], down[node], child[node] = parent[node], node, node
        if parent[node] != node:
            active[number] = node
            number += 1
    while number > 0:
        count[:], rank[:] = 0, np.iinfo(np.int64).max
        for node in active[:number]:
            count[up[node]] += 1
            child[up[node]] = node
        for node in active[:number]:
            if count[node] == 1 and count[child[node]] > 0:
                rank[node] = np.int64(splitmix(np.uint64(node + now * len(parent))))
        for place in range(number):
            node = active[place]
            goes = rank[node] < rank[up[node]] and rank[node] < rank[child[node]]
            leaves[place] = 2 if goes else 1 if count[node] == 0 else 0
        left = 0
        for place in range(number):
            node = active[place]
            if leaves[place] == 0:
                active[left] = node
                left += 1
                continue
            taken[node] = now
            if leaves[place] == 2:
                down[node] = child[node]
                up[child[node]] = up[node]
        number, now = left, now + 1
    for node in range(len(parent)):
        if parent[node] == node:
            taken[node] = now


@compiled
def _pair(parent, depth, ptr, hops):
    most = largest(0, len(ptr) - 1, ptr)
    order, place, counts, table = (
        np.empty(most, np.int32), np.empty(most, np.int32), np.empty(most + 1, np.int32), np.empty((most, most), np.int16)
    )  # fmt: skip
    done = 0
    for graph in range(len(ptr) - 1):
        first, size = ptr[graph], ptr[graph + 1] - ptr[graph]
        # The nodes by depth: each comes after its parent.
        counts[: size + 1] = 0
        for node in range(size):
            counts[depth[first + node] + 1] += 1
        for level in range(1, size + 1):
            counts[level] += counts[level - 1]
        for node in range(size):
            level = depth[first + node]
            order[counts[level]], place[node] = node, counts[level]
            counts[level] += 1
        for row in range(size):
            node = order[row]
            if parent[first + node] == first + node:
                table[row, :row] = -1
            else:
                above = table[place[parent[first + node] - first]]
                for column in range(row):
                    table[row, column] = above[column] + 1 if above[column] >= 0 else np.int16(-1)
            for column in range(row):
                table[column, row] = table[row, column]
            table[row, row] = 0
        for node in range(size):
            row = table[place[node]]
            for other in range(size):
                hops[done] = row[place[other]]
                done += 1


def rooted(edge_index: Tensor, num_nodes: int, root: Array | None) -> Array | None:
    r"""Returns the parent of each node in the forest of some edges, given in one direction or in both, or :obj:`None` if they
    have a cycle.
    """
    source, target = edge_index
    row, col = torch.cat([source, target]), torch.cat([target, source])
    rowptr, col, *_ = pattern_of_pairs(row, col, num_nodes, num_nodes, torch.int64)
    parent, queue, chosen = np.empty(num_nodes, np.int64), np.empty(num_nodes, np.int64), np.empty(0, np.int64)
    found = _root(*arrays_of((rowptr, col)), chosen if root is None else root, parent, queue)
    return parent if found else None


def contracted(parent: Array) -> tuple[Array, Array, Array]:
    r"""Returns the contraction of a :class:`~pyg_topomask.graphs.forest.Forest`: the parent and the child of each node when
    it is removed, and its round.
    """
    results, memory = np.empty((3, len(parent)), np.int64), np.empty((4, len(parent)), np.int64)
    _contract(parent, *results, *memory, np.empty(len(parent), np.int8))
    up, down, taken = results
    return up, down, taken


def forest_hops(parent: Array, depth: Array, ptr: Tensor, num_pairs: int) -> Tensor:
    r"""Returns :meth:`pyg_topomask.graphs.forest.Forest.hops` of all :obj:`num_pairs` pairs of nodes of the same graph."""
    hops = torch.empty(num_pairs, dtype=torch.int16)
    _pair(parent, depth, *arrays_of((ptr, hops)))
    return hops
