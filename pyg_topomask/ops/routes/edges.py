r"""The edges route: scores at the entries of a sparse mask."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from pyg_topomask.ops.normalize import gradients_of_sums, inverse_weight, known_positive
from pyg_topomask.ops.sparse import multiply, sample, sddmm, spmm
from pyg_topomask.sparse_pattern import SparsePattern

__all__ = ['attend_entries']

# Rows that are computed at a time.
_ROWS = 2**15


@torch.library.custom_op(
    'pyg_topomask::attend_entries',
    mutates_args=(),
    schema='(Tensor q, Tensor k, Tensor v, Tensor mask, Tensor[] pattern) -> (Tensor, Tensor)',
)
def attend_entries(q: Tensor, k: Tensor, v: Tensor, mask: Tensor, pattern: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    rowptr, col, *_ = pattern
    out, inverse = v.new_empty(v.shape), q.new_empty(q.shape[:2])
    summed = v.new_ones(v.size(0), v.size(2) + 1)  # a column of ones, whose products are the denominators
    # Blocks of rows keep what is computed in cache; a GPU takes all rows at once.
    num_rows = q.size(0)
    block = _ROWS if q.device.type == 'cpu' else max(num_rows, 1)
    for head in range(q.size(1)):
        query, key = q[:, head].contiguous(), k[:, head].contiguous()
        summed[:, :-1] = v[:, head]
        for start in range(0, num_rows, block):
            rows = slice(start, min(start + block, num_rows))
            pointers = rowptr[start : rows.stop + 1]
            own = slice(int(pointers[0]), int(pointers[-1])) if block < num_rows else slice(None)
            local = (pointers - pointers[0], col[own])
            weight = sample(*local, query[rows], key)
            weight *= mask[head if mask.size(0) > 1 else 0, own]
            product = multiply(*local, weight, summed)
            total, denominator = product[:, :-1], product[:, -1:]
            magnitude = denominator if known_positive(weight) else multiply(*local, weight.abs_(), summed[:, -1:])
            scale = inverse_weight(denominator, magnitude)
            torch.mul(total, scale, out=out[rows, head])
            inverse[rows, head] = scale.squeeze(1)
    return out, inverse


@attend_entries.register_fake
def _(q: Tensor, k: Tensor, v: Tensor, mask: Tensor, pattern: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    return v.new_empty(v.shape), q.new_empty(q.shape[:2])


@torch.library.custom_op(
    'pyg_topomask::attend_entries_backward',
    mutates_args=(),
    schema='(Tensor grad, Tensor out, Tensor inverse, Tensor q, Tensor k, Tensor v, Tensor mask, Tensor[] pattern) '
    '-> (Tensor, Tensor, Tensor, Tensor)',
)
def _attend_entries_backward(
    grad: Tensor, out: Tensor, inverse: Tensor, q: Tensor, k: Tensor, v: Tensor, mask: Tensor, pattern: Sequence[Tensor]
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    own = SparsePattern(*pattern)
    grad_numerator, grad_denominator = gradients_of_sums(grad, out, inverse)
    grad_q, grad_k, grad_v, grad_mask = q.new_empty(q.shape), k.new_empty(k.shape), v.new_empty(v.shape), torch.zeros_like(mask)
    for head in range(q.size(1)):  # one after the other: there are many entries
        one = slice(head, head + 1)
        shared = one if mask.size(0) > 1 else slice(None)
        query, key, upstream = q[:, one], k[:, one], grad_numerator[:, one]
        grad_weight = sddmm(own, upstream, v[:, one])
        grad_weight += grad_denominator[:, head].repeat_interleave(own.rowptr.diff(), output_size=own.nnz)
        weight = sddmm(own, query, key)
        grad_mask[shared] += weight * grad_weight
        grad_v[:, one] = spmm(own, weight.mul_(mask[shared]), upstream, transpose=True)
        grad_weight.mul_(mask[shared])
        grad_q[:, one] = spmm(own, grad_weight, key)
        grad_k[:, one] = spmm(own, grad_weight, query, transpose=True)
    return grad_q, grad_k, grad_v, grad_mask


@_attend_entries_backward.register_fake
def _(
    grad: Tensor, out: Tensor, inverse: Tensor, q: Tensor, k: Tensor, v: Tensor, mask: Tensor, pattern: Sequence[Tensor]
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    return q.new_empty(q.shape), k.new_empty(k.shape), v.new_empty(v.shape), mask.new_empty(mask.shape)


def _setup_entries(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    q, k, v, mask, pattern = inputs
    ctx.save_for_backward(*output, q, k, v, mask, *pattern)


def _backward_entries(ctx: Any, grad: Tensor, _: Tensor | None) -> tuple[Any, ...]:
    out, inverse, q, k, v, mask, *pattern = ctx.saved_tensors
    return (*_attend_entries_backward(grad, out, inverse, q, k, v, mask, pattern), [None] * len(pattern))


attend_entries.register_autograd(_backward_entries, setup_context=_setup_entries)
