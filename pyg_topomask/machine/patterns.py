r"""The patterns of sparse matrices, by counting in place of sorting, as machine code."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from pyg_topomask.graphs.sparse_pattern import SparsePattern
from pyg_topomask.machine.compiled import compiled
from pyg_topomask.machine.threads import Array, arrays_of


@compiled
def _point(node, ptr):  # type: ignore[no-untyped-def]
    r"""Writes where the entries of each node would begin if they were sorted."""
    ptr[:] = 0
    for each in node:
        ptr[each + 1] += 1
    for place in range(1, len(ptr)):
        ptr[place] += ptr[place - 1]


@compiled
def _transpose(rowptr, col, rowptr_t, col_t, perm_t):  # type: ignore[no-untyped-def]
    _point(col, rowptr_t)
    place_of = rowptr_t[:-1].copy()
    for row in range(len(rowptr) - 1):
        for entry in range(rowptr[row], rowptr[row + 1]):
            place = place_of[col[entry]]
            col_t[place], perm_t[place] = row, entry
            place_of[col[entry]] = place + 1


@compiled
def _sort(row, col, order, by_col, rowptr, distinct, slot, num_cols):  # type: ignore[no-untyped-def]
    r"""Sorts pairs by column, and then by row, where equal pairs become one. Returns the number of distinct pairs."""
    place_of = np.empty(num_cols + 1, rowptr.dtype)
    _point(col, place_of)
    for pair in range(len(col)):
        place = place_of[col[pair]]
        by_col[place] = pair
        place_of[col[pair]] = place + 1
    place_of = np.empty_like(rowptr)
    _point(row, place_of)
    for pair in by_col:
        place = place_of[row[pair]]
        order[place] = pair
        place_of[row[pair]] = place + 1
    number, place = 0, 0
    for node in range(len(rowptr) - 1):
        rowptr[node] = number
        first = number
        while place < place_of[node]:
            pair = order[place]
            if number == first or distinct[number - 1] != col[pair]:
                distinct[number] = col[pair]
                number += 1
            slot[pair] = number - 1
            place += 1
    rowptr[len(rowptr) - 1] = number
    return number


@compiled
def _separate(start, visited, rowptr, distinct, slot):  # type: ignore[no-untyped-def]
    r"""Lists the distinct pairs of sorted visits, and where those of each pair begin. Returns the number of distinct pairs."""
    number, node, slot[0] = 0, -1, 0
    for visit in range(len(start)):
        new = visit == 0 or (start[visit] != start[visit - 1]) | (visited[visit] != visited[visit - 1])
        while node < start[visit]:
            node += 1
            rowptr[node] = number
        # Without a branch on what is new, which would be hard to predict.
        number += new
        distinct[number - 1] = visited[visit]
        slot[number] = visit + 1
    rowptr[node + 1 :] = number
    return number


def patterns_of_visits(start: Tensor, visited: Tensor, length: Tensor, num_nodes: int, kinds: int) -> list[tuple[Tensor, ...]]:
    r"""Returns the tensors of two :class:`~pyg_topomask.graphs.sparse_pattern.SparsePattern`: that of the distinct pairs of
    start and visited node, and that of the lengths, below :obj:`kinds`, of each pair. Visits are distinct and sorted by start,
    visited node and length.
    """
    rowptr, distinct, slot = (visited.new_empty(size) for size in (num_nodes + 1, visited.numel(), visited.numel() + 1))
    found = _separate(*arrays_of((start, visited, rowptr, distinct, slot)))
    features, loads = (rowptr, distinct[:found].clone()), (slot[: found + 1].clone(), length)
    return [with_transpose(*features, num_nodes), with_transpose(*loads, kinds)]


def pointers(node: Tensor, num_nodes: int) -> Tensor:
    r"""Returns where the entries of each node begin, given the node of each of them, ascending, and where the last ones end."""
    ptr = node.new_empty(num_nodes + 1)
    _point(*arrays_of((node, ptr)))
    return ptr


def with_transpose(rowptr: Tensor, col: Tensor, num_cols: int) -> tuple[Tensor, ...]:
    r"""Returns the tensors of a :class:`~pyg_topomask.graphs.sparse_pattern.SparsePattern` from its first two."""
    rowptr_t, col_t, perm_t = rowptr.new_empty(num_cols + 1), torch.empty_like(col), torch.empty_like(col)
    _transpose(*arrays_of((rowptr, col, rowptr_t, col_t, perm_t)))
    return rowptr, col, rowptr_t, col_t, perm_t


def pattern_of_pairs(row: Tensor, col: Tensor, num_rows: int, num_cols: int, index: torch.dtype) -> tuple[Tensor, ...]:
    r"""Returns the tensors of a :class:`~pyg_topomask.graphs.sparse_pattern.SparsePattern` of the distinct pairs, with indices
    of a data type, and the position of each given pair in it, in int64.
    """
    number, slot = row.numel(), torch.empty(row.shape, dtype=torch.long)
    order, by_col, distinct = torch.empty(3, number, dtype=index)
    rowptr = torch.empty(num_rows + 1, dtype=index)
    found = _sort(*arrays_of((row, col, order, by_col, rowptr, distinct, slot)), num_cols)
    return *with_transpose(rowptr, distinct[:found].clone(), num_cols), slot


@compiled
def _closed_rows(rowptr, col, rowptr_t, col_t, ends):  # type: ignore[no-untyped-def]
    r"""Writes the ends of the diagonal blocks of a pattern, and returns their number."""
    count, reach = 0, np.int64(0)
    for i in range(len(ends)):
        if rowptr[i + 1] > rowptr[i]:
            reach = max(reach, np.int64(col[rowptr[i + 1] - 1]))
        if rowptr_t[i + 1] > rowptr_t[i]:
            reach = max(reach, np.int64(col_t[rowptr_t[i + 1] - 1]))
        if reach <= i:
            ends[count] = i + 1
            count += 1
    return count


def closed_ends(pattern: SparsePattern) -> Array:
    r"""Returns the ends of the diagonal blocks of a pattern: each node :math:`b` such that no entry connects a node below
    :math:`b` with one from :math:`b` on. The graphs of a batch end there.
    """
    ends = np.empty(pattern.num_rows, np.int64)
    return ends[: _closed_rows(*arrays_of((pattern.rowptr, pattern.col, pattern.rowptr_t, pattern.col_t)), ends)]
