r"""The blocks route: the mask multiplies unit vectors, which gives its block of each graph in a batch of small ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from pyg_topomask.graphs.segments import SegmentGroup, Segments, groups_of_constants
from pyg_topomask.ops.attention_op import AttentionInputs, all_pairs, attend_at, attention_op
from pyg_topomask.ops.normalize import gradients_of_sums, inverse_weight, with_ones


def _units(groups: list[SegmentGroup], num_nodes: int, heads: int, like: Tensor) -> Tensor:
    r"""Returns unit vectors, :obj:`[N, heads, n]` for :math:`n` nodes in the largest graph. A mask of :obj:`heads` heads
    multiplies these to the rows of its blocks, which are 0 at padding.
    """
    largest = max((group.width for group in groups), default=1)
    units = like.new_zeros(num_nodes + 1, largest)
    for group in groups:
        units[group.target, torch.arange(group.width, device=like.device)] = 1.0
    return units[:-1].unsqueeze(1).expand(-1, heads, -1)


def _pairs(x: Tensor, y: Tensor) -> Tensor:
    return x @ y.transpose(-1, -2)


def _forward(inputs: AttentionInputs) -> tuple[Tensor, Tensor]:
    q, k, v, _, constants, _, heads = inputs
    mask, groups = inputs.mask(), groups_of_constants(constants, q.size(0))
    rows, packed = mask.apply(_units(groups, q.size(0), heads, q)), torch.cat([q, k, with_ones(v)], dim=-1)
    total = packed.new_empty(q.size(0) + 1, q.size(1), v.size(2) + 1)
    for group in groups:
        query, key, value = group.take(packed).split([q.size(2), q.size(2), v.size(2) + 1], dim=-1)
        weight = _pairs(query, key).mul_(group.take(rows)[..., : group.width])
        group.put(total, weight @ value)
    total = total[:-1]
    # Where rounding leaves something of entries that are zero, their own sizes do not tell.
    magnitude = (q.abs() * mask.magnitude(k.abs())).sum(-1)
    inverse = inverse_weight(total[..., -1], magnitude)
    return total[..., :-1] * inverse.unsqueeze(-1), inverse


def _backward(
    grads: tuple[Tensor, Tensor | None], outputs: tuple[Tensor, Tensor], inputs: AttentionInputs, learnable: Sequence[int]
) -> list[Tensor]:
    q, k, v, tensors, constants, _, heads = inputs
    groups = groups_of_constants(constants, q.size(0))
    units = _units(groups, q.size(0), heads, q)

    def rows_of(*learned: Tensor) -> Tensor:
        return inputs.mask(learnable, learned).apply(units)

    forward: Any = torch.func.vjp(rows_of, *(tensors[index] for index in learnable)) if learnable else (rows_of(), tuple)
    rows, pull = forward
    numerator, denominator = gradients_of_sums(grads[0], *outputs)
    packed = torch.cat([q, k, with_ones(v), numerator, denominator.unsqueeze(-1)], dim=-1)
    grad_packed = packed.new_empty(q.size(0) + 1, q.size(1), 2 * q.size(2) + v.size(2))
    grad_rows = packed.new_zeros(q.size(0) + 1, q.size(1), rows.size(2)) if learnable else None
    for group in groups:
        widths = [q.size(2), q.size(2), v.size(2) + 1, v.size(2) + 1]
        query, key, value, gradient = group.take(packed).split(widths, dim=-1)
        gradient.masked_fill_(group.padding.unsqueeze(-1), 0.0)
        score, grad_weight = _pairs(query, key), _pairs(gradient, value)
        if grad_rows is not None:
            group.put(grad_rows, score * grad_weight)
        block = group.take(rows)[..., : group.width]
        grad_value = score.mul_(block).transpose(-1, -2) @ gradient[..., :-1]
        grad_weight.mul_(block)
        group.put(grad_packed, torch.cat([grad_weight @ key, grad_weight.transpose(-1, -2) @ query, grad_value], dim=-1))
    grad_tensors: list[Tensor] = []
    if grad_rows is not None:
        grad_rows = grad_rows[:-1]
        grad_tensors = list(pull(grad_rows.sum(1, keepdim=True) if heads == 1 else grad_rows))
    split = grad_packed[:-1].split([q.size(2), q.size(2), v.size(2)], dim=-1)
    # Copies, also of what is contiguous as it is: outputs of an operator share no memory.
    return [*(each.clone(memory_format=torch.contiguous_format) for each in split), *grad_tensors]


def _plain(inputs: AttentionInputs, inverse: Tensor) -> tuple[Tensor, Tensor]:
    q, _, _, _, constants, _, heads = inputs
    pattern, position = all_pairs(Segments.from_ptr(constants[0], q.size(0)))
    units = _units(groups_of_constants(constants, q.size(0)), q.size(0), heads, q)
    rows = inputs.mask().apply(units)
    return attend_at(pattern, rows[pattern.row.long(), :, position].t(), inputs, inverse)


attend_blocks = attention_op('attend_blocks', _forward, _backward, _plain)
