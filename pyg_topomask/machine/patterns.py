r"""Sparse matrices by counting in place of sorting, as machine code: patterns, powers, and pairs of nodes within some hops."""

from __future__ import annotations

from functools import partial

import numpy as np
import torch
from llvmlite import ir
from numba import types
from torch import Tensor

from pyg_topomask.graphs.sparse_pattern import SparsePattern
from pyg_topomask.machine.compiled import compiled, copy, lowest_bit, sort_reached
from pyg_topomask.machine.threads import Array, array_of, arrays_of, in_chunks
from pyg_topomask.machine.vectors import written


@compiled
def _point(node, ptr):
    r"""Writes where the entries of each node would begin if they were sorted."""
    ptr[:] = 0
    for each in node:
        ptr[each + 1] += 1
    for place in range(1, len(ptr)):
        ptr[place] += ptr[place - 1]


@compiled
def _transpose(rowptr, col, rowptr_t, col_t, perm_t):
    _point(col, rowptr_t)
    place_of = rowptr_t[:-1].copy()
    for row in range(len(rowptr) - 1):
        for entry in range(rowptr[row], rowptr[row + 1]):
            place = place_of[col[entry]]
            col_t[place], perm_t[place] = row, entry
            place_of[col[entry]] = place + 1


@compiled
def _sort(row, col, order, by_col, rowptr, distinct, slot, num_cols):
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
def _separate(start, visited, rowptr, distinct, slot):
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
def _closed_rows(rowptr, col, rowptr_t, col_t, ends):
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


@compiled
def _grown(array, used, more):
    r"""Returns an array with room for more numbers than are used."""
    if used + more <= len(array):
        return array
    longer = np.empty(2 * (used + more), array.dtype)
    copy(array, 0, longer, 0, used)
    return longer


@compiled
def _list_powers(rowptr, col, value, order, room):
    size, kinds = len(rowptr) - 1, order + 1
    start, visited, length, load = (
        np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room, value.dtype)
    )  # fmt: skip
    # For each node and power, the entry of the row, and the last row that has one there.
    sums, row_of, last = np.empty(size * kinds, value.dtype), np.full(size * kinds, -1, np.int32), np.full(size, -1, np.int32)
    before, now, reached = np.empty(size + 1, np.int32), np.empty(size + 1, np.int32), np.empty(size + 1, np.int32)
    bits = np.zeros((size >> 6) + 1, np.int64)
    used = 0
    for row in range(size):
        before[0], reached[0], last[row] = row, row, row
        sums[row * kinds], row_of[row * kinds] = 1, row
        number, found, entries, low, high = 1, 1, 1, row, row
        for power in range(1, kinds):
            following = 0
            for node in before[:number]:
                factor = sums[node * kinds + power - 1]
                for entry in range(rowptr[node], rowptr[node + 1]):
                    other = col[entry]
                    place = other * kinds + power
                    # Without branches on what is new, which would be hard to predict.
                    known, now[following], reached[found] = sums[place], other, other
                    new = row_of[place] != row
                    following += new
                    found += last[other] != row
                    sums[place] = (0 if new else known) + factor * value[entry]
                    row_of[place], last[other] = row, row
                    low, high = min(low, other), max(high, other)
            before, now, number = now, before, following
            entries += following
        nodes = reached[:found]
        for node in nodes:
            bits[node >> 6] |= np.int64(1) << np.int64(node & 63)
        sort_reached(nodes, low, high, bits)
        start, visited = _grown(start, used, entries + 1), _grown(visited, used, entries + 1)
        length, load = _grown(length, used, entries + 1), _grown(load, used, entries + 1)
        # Without a branch, which would be hard to predict: the next entry overwrites one that is missing.
        for node in nodes:
            for power in range(kinds):
                place = node * kinds + power
                start[used], visited[used], length[used], load[used] = row, node, power, sums[place]
                used += row_of[place] == row
    return start[:used], visited[:used], length[:used], load[:used]


def power_loads(pattern: SparsePattern, value: Tensor, order: int) -> tuple[Tensor, ...]:
    r"""Returns the row, the column, the power and the value of each entry of the powers from 0 to :obj:`order` of a matrix with
    entries :obj:`value`, :obj:`[nnz]`, sorted by row, column and power. There are fewer than :math:`2^{31}` nodes.
    """
    room = 2 * (pattern.nnz + pattern.num_rows) * (order + 1)
    columns = _list_powers(*arrays_of((pattern.rowptr, pattern.col, value)), order, room)
    return tuple(map(torch.from_numpy, columns))


# Labels that are looked at together.
_BITS = 64
_LABELS = ir.VectorType(ir.IntType(16), _BITS)
# Hops after which the work for an edge is not estimated to grow further.
_FEW = 10


@compiled
def _search(start, rowptr, col, max_hops, bits, hops, reached):
    r"""Lists the nodes within so many hops, sets a bit for each, and returns their number."""
    bits[start >> 6] |= np.int64(1) << np.int64(start & 63)
    hops[start], reached[0] = 0, start
    place, number = 0, 1
    while place < number and hops[reached[place]] < max_hops:
        node = reached[place]
        place += 1
        for other in col[rowptr[node] : rowptr[node + 1]]:
            word, bit = other >> 6, np.int64(1) << np.int64(other & 63)
            if bits[word] & bit == 0:
                bits[word] |= bit
                hops[other], reached[number] = hops[node] + 1, other
                number += 1
    return number


@compiled
def _scratch(size):
    return np.zeros((size >> 6) + 1, np.int64), np.empty(size, np.int32), np.empty(size, np.int32)


@compiled
def _count(first, last, starts, rowptr, col, max_hops, counts):
    bits, hops, reached = _scratch(len(rowptr) - 1)
    for place in range(first, last):
        number = _search(starts[place], rowptr, col, max_hops, bits, hops, reached)
        for node in reached[:number]:
            bits[node >> 6] = 0
        counts[place] = number


@compiled
def _list_pairs(first, last, rowptr, col, max_hops, ends, visited, length):
    bits, hops, reached = _scratch(len(rowptr) - 1)
    for start in range(first, last):
        number = _search(start, rowptr, col, max_hops, bits, hops, reached)
        nodes, place, low, high = reached[:number], ends[start] - number, start, start
        for node in nodes:
            low, high = min(low, node), max(high, node)
        sort_reached(nodes, low, high, bits)
        for node in nodes:
            visited[place], length[place] = node, hops[node]
            place += 1


@partial(written, returns=types.int64)
def _labelled(write, label, start):
    r"""Returns which of 64 labels are not 0, one bit for each."""
    pointer = write.builder.bitcast(write.at(label, start), _LABELS.as_pointer())
    differ = write.builder.icmp_unsigned('!=', write.builder.load(pointer, align=2), ir.Constant(_LABELS, [0] * _BITS))
    return write.builder.bitcast(differ, ir.IntType(_BITS))


@compiled
def _list_labelled(label, ptr, start, visited, length):
    place = pair = 0
    for graph in range(len(ptr) - 1):
        first, last = ptr[graph], ptr[graph + 1]
        whole = first + (last - first) // _BITS * _BITS
        for node in range(first, last):
            for other in range(first, whole, _BITS):
                bits = _labelled(label, pair)
                while bits != 0:
                    bit = lowest_bit(bits)
                    bits &= bits - 1
                    start[place], visited[place], length[place] = node, other + bit, label[pair + bit] - 1
                    place += 1
                pair += _BITS
            for other in range(whole, last):
                # Without a branch, which would be hard to predict: the next pair overwrites one with label 0.
                start[place], visited[place], length[place] = node, other, label[pair] - 1
                place += label[pair] != 0
                pair += 1


def labelled_pairs(label: Tensor, ptr: Tensor, number: int) -> tuple[Tensor, Tensor, Tensor]:
    r"""Returns the pairs of nodes of the same graph whose label is not 0, in ascending order, and one less than their labels.
    The labels are those of all pairs by row, :obj:`[num_pairs]`, in int16, and :obj:`number` of them are not 0.
    """
    columns = torch.empty(3, number + 1, dtype=torch.int32)
    _list_labelled(*arrays_of((label, ptr, *columns)))
    start, visited, length = columns[:, :number]
    return start, visited, length


def counts_within(pattern: SparsePattern, starts: Array, max_hops: int) -> Array:
    r"""Returns the number of nodes within :obj:`max_hops` edges of some nodes."""
    counts = np.empty(len(starts), np.int64)
    _count(0, len(starts), starts, *arrays_of((pattern.rowptr, pattern.col)), max_hops, counts)
    return counts


def pairs_within(pattern: SparsePattern, max_hops: int, most: int) -> tuple[int, tuple[Tensor, Tensor, Tensor] | None]:
    r"""Returns the number of pairs of nodes within :obj:`max_hops` edges. Unless they are more than :obj:`most`, also returns
    the pairs in ascending order, and their distances.
    """
    counts = torch.empty(pattern.num_rows, dtype=torch.long)
    rowptr, matrix, work = array_of(pattern.rowptr), (array_of(pattern.col), max_hops), 2 ** min(max_hops, _FEW)
    starts = np.arange(pattern.num_rows)
    in_chunks(lambda first, last: _count(first, last, starts, rowptr, *matrix, array_of(counts)), rowptr, work)
    number = int(counts.sum())
    if number > most:
        return number, None
    start = torch.arange(pattern.num_rows, dtype=pattern.col.dtype).repeat_interleave(counts, output_size=number)
    visited, length = (pattern.col.new_empty(number) for _ in range(2))
    columns = arrays_of((counts.cumsum(0), visited, length))
    in_chunks(lambda first, last: _list_pairs(first, last, rowptr, *matrix, *columns), rowptr, work)
    return number, (start, visited, length)
