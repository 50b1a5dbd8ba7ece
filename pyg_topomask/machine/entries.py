r"""Linear attention along the entries of a sparse mask by machine code, where Numba is installed.

Gradients of queries are sums over rows, those of keys and values sums over columns: no two threads add to the same number. Two
numbers for each entry pass between these sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from pyg_topomask.graphs.sparse_pattern import SparsePattern
from pyg_topomask.machine.entry_sums import (
    backward_columns,
    backward_rows,
    closed_rows,
    forward_rows,
    softmax_backward_rows,
    softmax_rows,
)
from pyg_topomask.machine.threads import ALONE, Array, array_of, arrays_of, in_chunks, in_threads

# Entries of all heads in graphs that the backward pass takes together: two numbers for each stay in cache.
_TOGETHER = 2**17
# Numbers of entries that the backward pass holds at a time. Of more, it takes some heads after the others.
_PAIRS = 2**26


def attend_entries(pattern: SparsePattern, q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    r"""Returns the output, :obj:`[N, H, d]`, and the inverse weights of the rows, :obj:`[N, H]`, under entries :obj:`[H, nnz]`
    or :obj:`[1, nnz]` of a mask.
    """
    out, inverse = v.new_empty(v.shape), q.new_empty(q.shape[:2])
    rowptr, col, *arrays = arrays_of((pattern.rowptr, pattern.col, q, k, v, mask, out, inverse))
    most = int(np.diff(rowptr).max(initial=0))
    sizes = (q.size(1), q.size(2), v.size(2), _stride(mask))

    def run(first: int, last: int) -> None:
        forward_rows(first, last, most, *arrays[:4], rowptr, col, *arrays[4:], *sizes)

    in_chunks(run, rowptr, q.size(1) * (q.size(2) + v.size(2)), 0, pattern.num_rows)
    return out, inverse


def attend_entries_backward(
    pattern: SparsePattern, q: Tensor, k: Tensor, v: Tensor, mask: Tensor, sums: tuple[Tensor, Tensor], learned: bool
) -> list[Tensor]:
    r"""Returns the gradients of queries, keys and values, and that of the mask if it is learned, from those of numerators,
    :obj:`[N, H, d]`, and denominators, :obj:`[N, H]`.
    """
    parts = _closed_parts(pattern, q.size(1))
    largest = max((stop - start for *_, start, stop in parts), default=1)
    together = max(1, _PAIRS // max(1, 2 * largest))
    if together >= q.size(1):
        return _backward(pattern, parts, (q, k, v, *sums), mask, learned)
    results: list[list[Tensor]] = []
    for head in range(0, q.size(1), together):
        heads = slice(head, head + together)
        shared = mask if mask.size(0) == 1 else mask[heads]
        results.append(_backward(pattern, parts, [x[:, heads] for x in (q, k, v, *sums)], shared, learned))
    *grads, grads_mask = zip(*results, strict=True) if learned else (*zip(*results, strict=True), ())
    joined = [torch.cat(grad, dim=1) for grad in grads]
    if learned:
        joined.append(torch.cat(grads_mask) if mask.size(0) > 1 else torch.stack(grads_mask).sum(0))
    return joined


def closed_ends(pattern: SparsePattern) -> Array:
    r"""Returns the ends of the diagonal blocks of a pattern: each node :math:`b` such that no entry connects a node below
    :math:`b` with one from :math:`b` on. The graphs of a batch end there.
    """
    ends = np.empty(pattern.num_rows, np.int64)
    return ends[: closed_rows(*arrays_of((pattern.rowptr, pattern.col, pattern.rowptr_t, pattern.col_t)), ends)]


def _closed_parts(pattern: SparsePattern, heads: int) -> list[tuple[int, int, int, int]]:
    r"""Splits the nodes where no entry leads across. A part is one large graph or a few small ones. Returns the bounds of nodes
    and of entries of each.
    """
    rowptr, ends = array_of(pattern.rowptr), closed_ends(pattern)
    part = rowptr[ends] * heads // _TOGETHER
    ends = ends[np.append(part[1:] > part[:-1], True)] if ends.size > 0 else ends
    bounds = [0, *ends.tolist()]
    return [(first, last, int(rowptr[first]), int(rowptr[last])) for first, last in pairwise(bounds)]


def _backward(
    pattern: SparsePattern, parts: Sequence[tuple[int, int, int, int]], tensors: Sequence[Tensor], mask: Tensor, learned: bool
) -> list[Tensor]:
    q, k, v, *_ = tensors
    grads = [torch.empty(x.shape, dtype=x.dtype) for x in (q, k, v)]
    grad_mask = mask.new_zeros(mask.shape if learned else 0)
    query, key, value, upstream, shift, factors = arrays_of((*tensors, mask))
    rowptr, col, rowptr_t, col_t, perm_t = arrays_of(pattern.tensors)
    grad_q, grad_k, grad_v, grad_factors = arrays_of((*grads, grad_mask))
    sizes, stride = (q.size(1), q.size(2), v.size(2)), _stride(mask)
    work = q.size(1) * (q.size(2) + v.size(2))

    def differentiate(first: int, last: int, base: int, stop: int) -> None:
        pairs = np.empty((stop - base) * 2 * q.size(1), query.dtype)

        def rows(first: int, last: int) -> None:
            arrays = (query, key, value, factors, rowptr, col, upstream, shift, pairs, grad_q, grad_factors)
            backward_rows(first, last, base, *arrays, *sizes, stride)

        def columns(first: int, last: int) -> None:
            backward_columns(first, last, base, query, rowptr_t, col_t, perm_t, upstream, pairs, grad_k, grad_v, *sizes)

        in_chunks(rows, rowptr, 2 * work, first, last)
        in_chunks(columns, rowptr_t, work, first, last)

    small = []
    for part in parts:  # threads share a large one, and take the small ones in turn
        if (part[3] - part[2]) * work < ALONE:
            small.append(part)
        else:
            differentiate(*part)
    if small:
        in_threads(differentiate, *zip(*small, strict=True))
    return [*grads, grad_mask] if learned else grads


def _stride(mask: Tensor) -> int:
    return mask.size(1) if mask.size(0) > 1 else 0


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
    grads, ones = [torch.empty(x.shape, dtype=x.dtype) for x in (q, k, v)], np.ones(pattern.nnz, array_of(q).dtype)
    arrays, (grad_q, grad_k, grad_v) = _arrays(k, v, grad, alpha, grad_alpha, keep), arrays_of(grads)
    rowptr, col, rowptr_t, col_t, perm_t = arrays_of(pattern.tensors)
    pairs = q.new_empty(pattern.nnz, 2, q.size(1))
    most, sizes = int(np.diff(rowptr).max(initial=0)), (q.size(1), q.size(2), v.size(2))
    query, both = array_of(q), array_of(pairs)

    def rows(first: int, last: int) -> None:
        softmax_backward_rows(first, last, most, *arrays, ones, rowptr, col, both, grad_q, *sizes)

    def columns(first: int, last: int) -> None:
        backward_columns(first, last, 0, query, rowptr_t, col_t, perm_t, arrays[2], both, grad_k, grad_v, *sizes)

    work = q.size(1) * (q.size(2) + v.size(2))
    in_chunks(rows, rowptr, work)
    in_chunks(columns, rowptr_t, work)
    return grads, pairs[:, 1]


def _arrays(*tensors: Tensor | None) -> list[Array]:
    like = next(tensor for tensor in tensors if tensor is not None)
    return [array_of(like.new_empty(0) if tensor is None else tensor) for tensor in tensors]
