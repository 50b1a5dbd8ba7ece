r"""Search in one graph after the other as machine code: scores of a few queries, and a list of the best."""

from __future__ import annotations

import numpy as np
from torch import Tensor

from pyg_topomask.ops.numba_backend import array_of, in_blocks
from pyg_topomask.ops.vectors import compiled, multiply

VECTORS = '0a748ad38819'

# Queries whose scores are computed together.
_ROWS = 8


@compiled
def _search(first_graph, last_graph, start, count, q, k, best, nodes, heads, channels, slots):  # type: ignore[no-untyped-def]
    most = 1
    for graph in range(first_graph, last_graph):
        most = max(most, count[graph])
    keys, scores = np.empty(channels * most, q.dtype), np.empty(_ROWS * most, q.dtype)
    largest = np.empty(slots + 1, q.dtype)
    for graph in range(first_graph, last_graph):
        first, number = start[graph], count[graph]
        num = min(slots, number)
        for head in range(heads):
            for j in range(number):
                row = ((first + j) * heads + head) * channels
                for channel in range(channels):
                    keys[channel * number + j] = k[row + channel]
            for begin in range(0, number, _ROWS):
                rows = min(_ROWS, number - begin)
                queries = ((first + begin) * heads + head) * channels
                multiply(q, keys, scores, queries, heads * channels, 1, 0, number, 0, number, rows, channels, number)
                for row in range(rows):
                    place, score = (head * nodes + first + begin + row) * slots, scores[row * number : (row + 1) * number]
                    found = best[place : place + num]
                    least, filled = q.dtype.type(-np.inf), 0
                    for j in range(number):
                        if score[j] > least or filled < num:
                            # Into the list of the best, which is in order: smaller ones move on.
                            rank = min(filled, num - 1)
                            while rank > 0 and largest[rank - 1] < score[j]:
                                largest[rank], found[rank] = largest[rank - 1], found[rank - 1]
                                rank -= 1
                            largest[rank], found[rank] = score[j], first + j
                            filled = min(filled + 1, num)
                            if filled == num:
                                least = largest[num - 1]


def search(q: Tensor, k: Tensor, first: Tensor, count: Tensor, best: Tensor) -> None:
    r"""Writes the best keys of each query. Arguments are those of :func:`~pyg_topomask.ops.topk.dense.search`."""
    heads, nodes, channels = q.shape
    query, key = (array_of(x.transpose(0, 1)) for x in (q, k))
    start, number = array_of(first), array_of(count)
    pairs = np.append(0, np.cumsum(number * number))
    found = best.numpy().reshape(-1)

    def run(first_graph: int, last_graph: int) -> None:
        _search(first_graph, last_graph, start, number, query, key, found, nodes, heads, channels, best.size(2))

    in_blocks(run, pairs, heads * channels)
