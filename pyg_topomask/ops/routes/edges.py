r"""The edges route: scores at the entries of a sparse mask."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from pyg_topomask.machine.backend import kernel
from pyg_topomask.operators.forms import Entries, pattern_at
from pyg_topomask.operators.sparse_matmul import multiply, sample, sddmm, spmm
from pyg_topomask.ops.attention_op import AttentionInputs, attend_at, attention_op
from pyg_topomask.ops.normalize import gradients_of_sums, inverse_weight, known_positive, quotient
from pyg_topomask.utils.precision import wide_dtype

# Rows that are computed at a time.
_ROWS = 2**15


def _forward(inputs: AttentionInputs) -> tuple[Tensor, Tensor]:
    q, k, v, (mask,), constants, *_ = inputs
    pattern, label = pattern_at(constants, k.size(0))
    if compiled := kernel('entries.attend_entries', q.device):
        return compiled(pattern, q, k, v, mask, label)
    rowptr, col, mask = pattern.rowptr, pattern.col, _entries(mask, label)
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
            entries = slice(int(pointers[0]), int(pointers[-1])) if block < num_rows else slice(None)
            local = (pointers - pointers[0], col[entries])
            weight = sample(*local, query[rows], key)
            weight *= mask[head if mask.size(0) > 1 else 0, entries]
            product = multiply(*local, weight, summed)
            total, denominator = product[:, :-1], product[:, -1:]
            magnitude = denominator if known_positive(weight) else multiply(*local, weight.abs_(), summed[:, -1:])
            scale = inverse_weight(denominator, magnitude)
            torch.mul(total, scale, out=out[rows, head])
            inverse[rows, head] = scale.squeeze(1)
    return out, inverse


def _backward(
    grads: tuple[Tensor, Tensor | None], outputs: tuple[Tensor, Tensor], inputs: AttentionInputs, learnable: Sequence[int]
) -> list[Tensor]:
    q, k, v, (values,), constants, *_ = inputs
    pattern, label = pattern_at(constants, k.size(0))
    grad_numerator, grad_denominator = gradients_of_sums(grads[0], *outputs)
    if compiled := kernel('entries.attend_entries_backward', q.device):
        return compiled(pattern, q, k, v, values, (grad_numerator, grad_denominator), bool(learnable), label)
    mask = _entries(values, label)
    grad_q, grad_k, grad_v = q.new_empty(q.shape), k.new_empty(k.shape), v.new_empty(v.shape)
    grad_mask = [torch.zeros_like(mask) for _ in learnable]
    for head in range(q.size(1)):  # one after the other: there are many entries
        one = slice(head, head + 1)
        row_of_mask = one if mask.size(0) > 1 else slice(None)
        query, key, upstream = q[:, one], k[:, one], grad_numerator[:, one]
        grad_weight = sddmm(pattern, upstream, v[:, one])
        grad_weight += grad_denominator[:, head].repeat_interleave(pattern.rowptr.diff(), output_size=pattern.nnz)
        weight = sddmm(pattern, query, key)
        for total in grad_mask:
            total[row_of_mask] += weight * grad_weight
        grad_v[:, one] = spmm(pattern, weight.mul_(mask[row_of_mask]), upstream, transpose=True)
        grad_weight.mul_(mask[row_of_mask])
        grad_q[:, one] = spmm(pattern, grad_weight, key)
        grad_k[:, one] = spmm(pattern, grad_weight, query, transpose=True)
    if label is not None:
        grad_mask = [torch.zeros_like(values).index_add_(1, label, grad) for grad in grad_mask]
    return [grad_q, grad_k, grad_v, *grad_mask]


def _plain(inputs: AttentionInputs, inverse: Tensor) -> tuple[Tensor, Tensor]:
    pattern, label = pattern_at(inputs.constants, inputs.k.size(0))
    return attend_at(pattern, _entries(inputs.tensors[0], label), inputs, inverse)


def _entries(values: Tensor, label: Tensor | None) -> Tensor:
    return values if label is None else values.index_select(1, label)


attend_entries = attention_op('attend_entries', _forward, _backward, _plain)


def linear_coefficients(q: Tensor, k: Tensor, entries: Entries) -> Tensor:
    r"""Returns the coefficients of linear attention at the entries of a mask, :obj:`[H, nnz]`."""
    dtype = wide_dtype(q, entries.value)
    weight = sddmm(entries.pattern, q.to(dtype), k.to(dtype)) * entries.value.to(dtype)
    row = entries.pattern.row.long()

    def total(x: Tensor) -> Tensor:
        return x.new_zeros(q.size(1), q.size(0)).index_add(1, row, x)[:, row]

    return quotient(weight, total(weight), total(weight.detach().abs()))
