r"""Kernels for :mod:`pyg_topomask.graphs.shortest_paths`: the last edges of shortest paths."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from pyg_topomask.graphs.sparse_pattern import SparsePattern
from pyg_topomask.machine.compiled import compiled
from pyg_topomask.machine.threads import arrays_of


@compiled
def _find(rowptr, col, distance, first, order, target, places, pair, edge, before):
    r"""Counts the steps of each distance, from the places of the first on, and writes them if there is room."""
    place_of, row_of = np.empty(len(rowptr) - 1, np.int64), np.full(len(rowptr) - 1, -1, np.int64)
    for row in range(len(rowptr) - 1):
        for entry in range(rowptr[row], rowptr[row + 1]):
            place_of[col[entry]], row_of[col[entry]] = entry, row
        for each in order[first[row] : first[row + 1]]:
            node = target[each]
            for rest in range(rowptr[node], rowptr[node + 1]):
                other = col[rest]
                if row_of[other] == row and distance[place_of[other]] == distance[rest] + 1:
                    length = distance[rest]
                    if len(pair) > 0:
                        at = places[length]
                        pair[at], edge[at], before[at] = place_of[other], each, rest
                    places[length] += 1


def last_steps(pattern: SparsePattern, distance: Tensor, row: Tensor, col: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    r"""Returns the last edges of all shortest paths, with the places of their pairs and of the pairs before, by distance."""
    first = torch.nn.functional.pad(row.bincount(minlength=pattern.num_rows).cumsum(0), (1, 0))
    given = arrays_of((pattern.rowptr, pattern.col, distance, first, torch.argsort(row, stable=True), col))
    counts = np.zeros(int(distance.max()) + 1 if distance.numel() > 0 else 1, np.int64)
    _find(*given, counts, *np.empty((3, 0), np.int64))
    steps = torch.empty(3, int(counts.sum()), dtype=torch.long)
    if steps.size(1) > 0:
        _find(*given, np.cumsum(counts) - counts, *arrays_of(steps))
    pair, edge, before = steps
    return pair, edge, before
