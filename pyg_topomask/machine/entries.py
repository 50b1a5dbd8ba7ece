r"""Linear attention along the entries of a sparse mask by machine code, where Numba is installed.

A row adds to the gradients of its keys and values. Threads take parts of the rows, and each adds to gradients of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from pyg_topomask.graphs.sparse_pattern import SparsePattern
from pyg_topomask.machine.entry_sums import backward_rows, forward_rows, softmax_backward_rows, softmax_rows
from pyg_topomask.machine.threads import Array, array_of, arrays_of, chunk_bounds, in_chunks, in_threads

# The gradients of threads may have so many times as many rows as there are columns.
_COPIES = 4
_NO_LABELS = torch.empty(0, dtype=torch.int32)


def attend_entries(
    pattern: SparsePattern, q: Tensor, k: Tensor, v: Tensor, mask: Tensor, label: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    r"""Returns the output, :obj:`[N, H, d]`, and the inverse weights of the rows, :obj:`[N, H]`, under a mask with entries
    :obj:`[H, nnz]` or :obj:`[1, nnz]`, or with those that a table :obj:`[H or 1, labels]` has for the labels, :obj:`[nnz]`.
    """
    out, inverse = v.new_empty(v.shape), q.new_empty(q.shape[:2])
    inputs = q, k, v, *_factors(mask, label, q.size(1)), pattern.rowptr, pattern.col
    *arrays, rowptr, col, result, weight = arrays_of((*inputs, out, inverse))
    sizes, most = (q.size(1), q.size(2), v.size(2), _stride(mask)), int(np.diff(rowptr).max(initial=0))

    def run(first: int, last: int) -> None:
        forward_rows(first, last, most, *arrays, rowptr, col, result, weight, *sizes)

    in_chunks(run, rowptr, q.size(1) * (q.size(2) + v.size(2)))
    return out, inverse


def attend_entries_backward(
    pattern: SparsePattern,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor,
    sums: tuple[Tensor, Tensor],
    learned: bool,
    label: Tensor | None = None,
) -> list[Tensor]:
    r"""Returns the gradients of queries, keys and values, and that of the mask or the table if it is learned, from those of
    numerators, :obj:`[N, H, d]`, and denominators, :obj:`[N, H]`.
    """
    factors, labels = _factors(mask, label, q.size(1))
    rowptr, col, *arrays = arrays_of((pattern.rowptr, pattern.col, q, k, v, factors, labels))
    sizes, most = (q.size(1), q.size(2), v.size(2), _stride(mask)), int(np.diff(rowptr).max(initial=0))
    grad_q, of_entries = q.new_empty(q.shape), mask.new_zeros(mask.shape if learned and label is None else 0)

    def run(first: int, last: int, origin: int, grad_k: Tensor, grad_v: Tensor, *table: Tensor) -> None:
        grads = arrays_of((grad_q, grad_k, grad_v, *(table or (of_entries,))))
        backward_rows(first, last, most, origin, *arrays, rowptr, col, *arrays_of(sums), *grads, *sizes)

    shared = [factors] if learned and label is not None else []
    grad_k, grad_v, *of_labels = _by_columns(run, pattern, 2 * sum(sizes[1:3]) * q.size(1), (k, v), shared)
    of_table = [each.t() if mask.size(0) > 1 else each.sum(1).unsqueeze(0) for each in of_labels]
    return [grad_q, grad_k, grad_v, *([of_entries] if learned and label is None else of_table)]


def attend_softmax(
    pattern: SparsePattern, q: Tensor, k: Tensor, v: Tensor, mask: Tensor, keep: Tensor | None
) -> tuple[Tensor, Tensor]:
    r"""Returns the output of softmax attention, :obj:`[N, H, d]`, and its coefficients, :obj:`[H, nnz]`, for scaled queries,
    entries :obj:`[H, nnz]` or :obj:`[1, nnz]` of a mask, and factors of the coefficients, :obj:`[H, nnz]`.
    """
    out, alpha, ones = v.new_empty(v.shape), q.new_empty(q.size(1), pattern.nnz), np.ones(pattern.nnz, array_of(q).dtype)
    arrays, rowptr, col = _arrays(q, k, v, mask, keep), array_of(pattern.rowptr), array_of(pattern.col)
    most, sizes = int(np.diff(rowptr).max(initial=0)), (q.size(1), q.size(2), v.size(2), _stride(mask))

    def run(first: int, last: int) -> None:
        softmax_rows(first, last, most, *arrays, ones, rowptr, col, array_of(out), array_of(alpha), *sizes)

    in_chunks(run, rowptr, q.size(1) * (q.size(2) + v.size(2)))
    return out, alpha


def attend_softmax_backward(
    pattern: SparsePattern,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    grad: Tensor,
    alpha: Tensor,
    grad_alpha: Tensor | None,
    keep: Tensor | None,
) -> tuple[list[Tensor], Tensor]:
    r"""Returns the gradients of queries, keys and values, and of the scores, :obj:`[nnz, H]`."""
    grad_q, grad_score = q.new_empty(q.shape), q.new_empty(pattern.nnz, q.size(1))
    arrays, ones = _arrays(q, k, v, grad, alpha, grad_alpha, keep), np.ones(pattern.nnz, array_of(q).dtype)
    rowptr, col = arrays_of((pattern.rowptr, pattern.col))
    most, sizes = int(np.diff(rowptr).max(initial=0)), (q.size(1), q.size(2), v.size(2))

    def run(first: int, last: int, origin: int, grad_k: Tensor, grad_v: Tensor) -> None:
        grads = arrays_of((grad_q, grad_k, grad_v, grad_score))
        softmax_backward_rows(first, last, most, origin, *arrays, ones, rowptr, col, *grads, *sizes)

    return [grad_q, *_by_columns(run, pattern, 2 * q.size(1) * (q.size(2) + v.size(2)), (k, v))], grad_score


def _by_columns(
    run: Callable[..., None], pattern: SparsePattern, work: int, columns: Sequence[Tensor], shared: Sequence[Tensor] = ()
) -> list[Tensor]:
    r"""Calls a function with the first row and the one after the last of a part of the rows, with the first column that these
    reach, and with zeros to which it adds gradients: of tensors of the columns from that one on, and of tensors that all rows
    share. Returns the gradients of the tensors.
    """
    totals, parts = [x.new_zeros(x.shape) for x in (*columns, *shared)], _parts(pattern, work)
    if len(parts) == 1:
        run(0, pattern.num_rows, 0, *totals)
        return totals

    def run_part(first: int, last: int, origin: int, end: int) -> list[Tensor]:
        grads = [*(x.new_zeros(end - origin, *x.shape[1:]) for x in columns), *(x.new_zeros(x.shape) for x in shared)]
        run(first, last, origin, *grads)
        return grads

    for (*_, origin, _), grads in zip(parts, in_threads(run_part, *zip(*parts, strict=True)), strict=True):
        for place, (total, grad) in enumerate(zip(totals, grads, strict=True)):
            total.narrow(0, origin if place < len(columns) else 0, grad.size(0)).add_(grad)
    return totals


def _parts(pattern: SparsePattern, work: int) -> list[tuple[int, int, int, int]]:
    r"""Divides the rows among threads. Returns the bounds of the rows of each part, and of the columns that it reaches."""
    (rowptr, col), number = arrays_of((pattern.rowptr, pattern.col)), torch.get_num_threads()
    while True:
        parts = []
        for first, last in pairwise(chunk_bounds(rowptr, work, number)):
            reached = col[rowptr[first] : rowptr[last]]
            ends = (int(reached.min()), int(reached.max()) + 1) if number > 1 and reached.size > 0 else (0, 0)
            parts.append((first, last, *ends))
        if len(parts) == 1 or sum(end - origin for *_, origin, end in parts) <= _COPIES * pattern.num_cols:
            return parts
        number = len(parts) // 2  # gradients of all columns for each thread take much memory


def _stride(mask: Tensor) -> int:
    return mask.size(1) if mask.size(0) > 1 else 0


def _factors(mask: Tensor, label: Tensor | None, heads: int) -> tuple[Tensor, Tensor]:
    r"""Returns the entries of a mask and no labels, or the values of labels, :obj:`[labels, H]`, and the labels."""
    return (mask, _NO_LABELS) if label is None else (mask.expand(heads, -1).t().contiguous(), label)


def _arrays(*tensors: Tensor | None) -> list[Array]:
    like = next(tensor for tensor in tensors if tensor is not None)
    return [array_of(like.new_empty(0) if tensor is None else tensor) for tensor in tensors]
