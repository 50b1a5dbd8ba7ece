r"""The entries of the powers of a sparse matrix, as machine code: row by row, in tables of all nodes."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from pyg_topomask.graphs.sparse_pattern import SparsePattern
from pyg_topomask.machine.bitmaps import sort_reached
from pyg_topomask.machine.compiled import compiled
from pyg_topomask.machine.threads import arrays_of


@compiled
def _grown(array, used, more):  # type: ignore[no-untyped-def]
    r"""Returns an array with room for more numbers than are used."""
    if used + more <= len(array):
        return array
    longer = np.empty(2 * (used + more), array.dtype)
    longer[:used] = array[:used]
    return longer


@compiled
def _list(rowptr, col, value, order, room):  # type: ignore[no-untyped-def]
    size, kinds = len(rowptr) - 1, order + 1
    start, visited, length, load = (
        np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room, value.dtype)
    )  # fmt: skip
    # For each node and power, the entry of the row, and the last row that has one there.
    sums, row_of, last = np.empty(size * kinds, value.dtype), np.full(size * kinds, -1, np.int32), np.full(size, -1, np.int32)
    before, now, reached = np.empty(size, np.int32), np.empty(size, np.int32), np.empty(size, np.int32)
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
                    if row_of[place] != row:
                        row_of[place], sums[place], now[following] = row, 0, other
                        following += 1
                        if last[other] != row:
                            last[other], reached[found] = row, other
                            found, low, high = found + 1, min(low, other), max(high, other)
                    sums[place] += factor * value[entry]
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
    columns = _list(*arrays_of((pattern.rowptr, pattern.col, value)), order, room)
    return tuple(map(torch.from_numpy, columns))
