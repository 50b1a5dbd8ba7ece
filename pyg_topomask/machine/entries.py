r"""Linear attention along the entries of a sparse mask by machine code, where Numba is installed.

Gradients of queries are sums over rows, those of keys and values sums over columns: no two threads add to the same number. Both
compute the scores of their entries, which takes less than to store them.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from pyg_topomask.graphs.sparse_pattern import SparsePattern
from pyg_topomask.machine.entry_sums import (
    backward_columns,
    backward_rows,
    closed_rows,
    forward_rows,
    softmax_backward_columns,
    softmax_backward_rows,
    softmax_rows,
)
from pyg_topomask.machine.threads import Array, array_of, arrays_of, in_chunks


def attend_entries(pattern: SparsePattern, q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    r"""Returns the output, :obj:`[N, H, d]`, and the inverse weights of the rows, :obj:`[N, H]`.

    Args:
        pattern (SparsePattern): The positions of the entries.
        q (torch.Tensor): Queries, :obj:`[N, H, m]`.
        k (torch.Tensor): Keys, :obj:`[N, H, m]`.
        v (torch.Tensor): Values, :obj:`[N, H, d]`.
        mask (torch.Tensor): The values of the entries, :obj:`[H, nnz]` or :obj:`[1, nnz]`.
    """
    out, inverse = v.new_empty(v.shape), q.new_empty(q.shape[:2])
    rowptr, col, *arrays = arrays_of((pattern.rowptr, pattern.col, q, k, v, mask, out, inverse))
    most = _longest(rowptr)
    sizes = (q.size(1), q.size(2), v.size(2), _stride(mask))

    def run(first: int, last: int) -> None:
        forward_rows(first, last, most, *arrays[:4], rowptr, col, *arrays[4:], *sizes)

    in_chunks(run, rowptr, q.size(1) * (q.size(2) + v.size(2)))
    return out, inverse


def attend_entries_backward(
    pattern: SparsePattern, q: Tensor, k: Tensor, v: Tensor, mask: Tensor, sums: tuple[Tensor, Tensor], learned: bool
) -> list[Tensor]:
    r"""Returns the gradients of queries, keys and values, and that of the mask if it is learned.

    Args:
        pattern (SparsePattern): The positions of the entries.
        q (torch.Tensor): Queries, :obj:`[N, H, m]`.
        k (torch.Tensor): Keys, :obj:`[N, H, m]`.
        v (torch.Tensor): Values, :obj:`[N, H, d]`.
        mask (torch.Tensor): The values of the entries, :obj:`[H, nnz]` or :obj:`[1, nnz]`.
        sums (tuple of torch.Tensor): The gradients of numerators, :obj:`[N, H, d]`, and denominators, :obj:`[N, H]`.
        learned (bool): Whether the mask is learned.
    """
    grads = [torch.empty(x.shape, dtype=x.dtype) for x in (q, k, v)]
    grad_mask = mask.new_zeros(mask.shape if learned else 0)
    query, key, value, upstream, shift, factors = arrays_of((q, k, v, *sums, mask))
    rowptr, col, rowptr_t, col_t, perm_t = arrays_of(pattern.tensors)
    grad_q, grad_k, grad_v, grad_factors = arrays_of((*grads, grad_mask))
    sizes = (q.size(1), q.size(2), v.size(2), _stride(mask))

    def rows(first: int, last: int) -> None:
        arrays = (query, key, value, factors, rowptr, col, upstream, shift, grad_q, grad_factors)
        backward_rows(first, last, _longest(rowptr), *arrays, *sizes)

    def columns(first: int, last: int) -> None:
        arrays = (query, key, value, factors, rowptr_t, col_t, perm_t, upstream, shift, grad_k, grad_v)
        backward_columns(first, last, _longest(rowptr_t), *arrays, *sizes)

    work = 2 * q.size(1) * (q.size(2) + v.size(2))
    in_chunks(rows, rowptr, work)
    in_chunks(columns, rowptr_t, work)
    return [*grads, grad_mask] if learned else grads


def closed_ends(pattern: SparsePattern) -> Array:
    r"""Returns the ends of the diagonal blocks of a pattern: each node :math:`b` such that no entry connects a node below
    :math:`b` with one from :math:`b` on. The graphs of a batch end there.
    """
    ends = np.empty(pattern.num_rows, np.int64)
    return ends[: closed_rows(*arrays_of((pattern.rowptr, pattern.col, pattern.rowptr_t, pattern.col_t)), ends)]


def _longest(rowptr: Array) -> int:
    return int(np.diff(rowptr).max(initial=0))


def _stride(mask: Tensor) -> int:
    return mask.size(1) if mask.size(0) > 1 else 0


def attend_softmax(
    pattern: SparsePattern, q: Tensor, k: Tensor, v: Tensor, mask: Tensor, keep: Tensor | None
) -> tuple[Tensor, Tensor]:
    r"""Returns the output of softmax attention, :obj:`[N, H, d]`, and its coefficients, :obj:`[H, nnz]`.

    Args:
        pattern (SparsePattern): The positions of the entries.
        q (torch.Tensor): Queries, scaled, :obj:`[N, H, m]`.
        k (torch.Tensor): Keys, :obj:`[N, H, m]`.
        v (torch.Tensor): Values, :obj:`[N, H, d]`.
        mask (torch.Tensor): The values of the entries, :obj:`[H, nnz]` or :obj:`[1, nnz]`.
        keep (torch.Tensor, optional): Factors of the coefficients, :obj:`[H, nnz]`.
    """
    out, alpha, ones = v.new_empty(v.shape), q.new_empty(q.size(1), pattern.nnz), np.ones(pattern.nnz, array_of(q).dtype)
    arrays, rowptr, col = _arrays(q, k, v, mask, keep), array_of(pattern.rowptr), array_of(pattern.col)
    most, sizes = _longest(rowptr), (q.size(1), q.size(2), v.size(2), _stride(mask))

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
    most, sizes, query, both = (
        _longest(rowptr),
        (q.size(1), q.size(2), v.size(2)),
        array_of(q),
        array_of(pairs),
    )

    def rows(first: int, last: int) -> None:
        softmax_backward_rows(first, last, most, *arrays, ones, rowptr, col, both, grad_q, *sizes)

    def columns(first: int, last: int) -> None:
        softmax_backward_columns(first, last, query, rowptr_t, col_t, perm_t, arrays[2], both, grad_k, grad_v, *sizes)

    work = q.size(1) * (q.size(2) + v.size(2))
    in_chunks(rows, rowptr, work)
    in_chunks(columns, rowptr_t, work)
    return grads, pairs[:, 1]


def _arrays(*tensors: Tensor | None) -> list[Array]:
    like = next(tensor for tensor in tensors if tensor is not None)
    return [array_of(like.new_empty(0) if tensor is None else tensor) for tensor in tensors]
