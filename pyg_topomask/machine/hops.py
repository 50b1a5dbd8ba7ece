r"""The pairs of nodes within a number of hops, by a breadth-first search from each node, as machine code."""

from __future__ import annotations

from functools import partial

import numpy as np
import torch
from llvmlite import ir
from numba import types
from torch import Tensor

from pyg_topomask.graphs.sparse_pattern import SparsePattern
from pyg_topomask.machine.bitmaps import lowest_bit, sort_reached
from pyg_topomask.machine.compiled import compiled
from pyg_topomask.machine.threads import Array, array_of, arrays_of, in_chunks
from pyg_topomask.machine.vectors import written

# Labels that are looked at together.
_BITS = 64
_LABELS = ir.VectorType(ir.IntType(16), _BITS)
# Hops after which the work for an edge is not estimated to grow further.
_FEW = 10


@compiled
def _search(start, rowptr, col, max_hops, bits, hops, reached):  # type: ignore[no-untyped-def]
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
def _scratch(size):  # type: ignore[no-untyped-def]
    return np.zeros((size >> 6) + 1, np.int64), np.empty(size, np.int32), np.empty(size, np.int32)


@compiled
def _count(first, last, rowptr, col, max_hops, counts):  # type: ignore[no-untyped-def]
    bits, hops, reached = _scratch(len(rowptr) - 1)
    for start in range(first, last):
        number = _search(start, rowptr, col, max_hops, bits, hops, reached)
        for node in reached[:number]:
            bits[node >> 6] = 0
        counts[start] = number


@compiled
def _count_some(starts, rowptr, col, max_hops, counts):  # type: ignore[no-untyped-def]
    bits, hops, reached = _scratch(len(rowptr) - 1)
    for place in range(len(starts)):
        number = _search(starts[place], rowptr, col, max_hops, bits, hops, reached)
        for node in reached[:number]:
            bits[node >> 6] = 0
        counts[place] = number


@compiled
def _list(first, last, rowptr, col, max_hops, ends, visited, length):  # type: ignore[no-untyped-def]
    bits, hops, reached = _scratch(len(rowptr) - 1)
    for start in range(first, last):
        number = _search(start, rowptr, col, max_hops, bits, hops, reached)
        nodes, place = reached[:number], ends[start] - number
        sort_reached(nodes, nodes.min(), nodes.max(), bits)
        for node in nodes:
            visited[place], length[place] = node, hops[node]
            place += 1


@partial(written, returns=types.int64)
def _labelled(write, label, start):  # type: ignore[no-untyped-def]
    r"""Returns which of 64 labels are not 0, one bit for each."""
    pointer = write.builder.bitcast(write.at(label, start), _LABELS.as_pointer())
    differ = write.builder.icmp_unsigned('!=', write.builder.load(pointer, align=2), ir.Constant(_LABELS, [0] * _BITS))
    return write.builder.bitcast(differ, ir.IntType(_BITS))


@compiled
def _list_labelled(label, ptr, start, visited, length):  # type: ignore[no-untyped-def]
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
    _count_some(starts, *arrays_of((pattern.rowptr, pattern.col)), max_hops, counts)
    return counts


def pairs_within(pattern: SparsePattern, max_hops: int, most: int) -> tuple[int, tuple[Tensor, Tensor, Tensor] | None]:
    r"""Returns the number of pairs of nodes within :obj:`max_hops` edges. Unless they are more than :obj:`most`, also returns
    the pairs in ascending order, and their distances.
    """
    counts = torch.empty(pattern.num_rows, dtype=torch.long)
    rowptr, matrix, work = array_of(pattern.rowptr), (array_of(pattern.col), max_hops), 2 ** min(max_hops, _FEW)
    in_chunks(lambda first, last: _count(first, last, rowptr, *matrix, array_of(counts)), rowptr, work)
    number = int(counts.sum())
    if number > most:
        return number, None
    start = torch.arange(pattern.num_rows, dtype=pattern.col.dtype).repeat_interleave(counts, output_size=number)
    visited, length = (pattern.col.new_empty(number) for _ in range(2))
    columns = arrays_of((counts.cumsum(0), visited, length))
    in_chunks(lambda first, last: _list(first, last, rowptr, *matrix, *columns), rowptr, work)
    return number, (start, visited, length)
