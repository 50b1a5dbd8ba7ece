r"""The gradients of the norms of expected visits, compiled with Numba: the rows of the powers in tables, node by node."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from pyg_topomask.graphs.sparse_pattern import SparsePattern
from pyg_topomask.machine.compiled import compiled
from pyg_topomask.machine.threads import arrays_of, in_chunks


@compiled
def _gram_backward(first, last, weight, col, rowptr, upstream, powers, out):
    size = len(rowptr) - 1
    value, grad = np.zeros((powers, size)), np.empty((powers, size))
    reached, number = np.empty((powers, size), np.int32), np.zeros(powers, np.int64)
    start = np.full((powers, size), -1, np.int32)  # the row that reached a node last
    for i in range(first, last):
        number[0], reached[0, 0], value[0, i] = 1, i, 1.0
        for power in range(1, powers):
            number[power] = 0
            for place in range(number[power - 1]):
                node = reached[power - 1, place]
                for edge in range(rowptr[node], rowptr[node + 1]):
                    other = col[edge]
                    if start[power, other] != i:
                        start[power, other], reached[power, number[power]] = i, other
                        number[power] += 1
                    value[power, other] += value[power - 1, node] * weight[edge]
        for power in range(powers - 1, -1, -1):
            for place in range(number[power]):
                node = reached[power, place]
                total = 0.0
                for other in range(powers):
                    factor = upstream[(i * powers + power) * powers + other] + upstream[(i * powers + other) * powers + power]
                    total += factor * value[other, node]
                if power < powers - 1:
                    for edge in range(rowptr[node], rowptr[node + 1]):
                        of_next = grad[power + 1, col[edge]]
                        out[edge] += value[power, node] * of_next
                        total += weight[edge] * of_next
                grad[power, node] = total
        for power in range(powers):
            for place in range(number[power]):
                value[power, reached[power, place]] = 0.0


def gram_backward(weight: Tensor, pattern: SparsePattern, upstream: Tensor) -> Tensor:
    r"""Returns the gradient of the entries of a matrix, :obj:`[nnz]`, from that of the products of the rows of its powers,
    :obj:`[num_rows, L + 1, L + 1]`, see :func:`~pyg_topomask.walks.expected.gram_of_powers`.
    """
    num_rows, powers, _ = upstream.shape
    totals: list[Tensor] = []
    rowptr, *arrays = arrays_of((pattern.rowptr, weight, pattern.col, upstream))

    def run(first: int, last: int) -> None:
        total = torch.zeros_like(weight)
        totals.append(total)
        _gram_backward(first, last, arrays[0], arrays[1], rowptr, arrays[2], powers, *arrays_of([total]))

    in_chunks(run, rowptr[: num_rows + 1], 2 * powers * (1 + pattern.nnz // max(pattern.num_rows, 1)) ** (powers - 1))
    return torch.stack(totals).sum(0)
