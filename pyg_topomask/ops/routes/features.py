r"""The features route: the mask multiplies one slice of features at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from pyg_topomask.machine.backend import uses_numba
from pyg_topomask.ops.attention_op import AttentionInputs, attention_op, outputs_of_sums
from pyg_topomask.ops.normalize import gradients_of_sums, inverse_weight, with_ones

# Numbers in the block of mask inputs that is held at a time.
_BLOCK = 2**21


def features_at_a_time(numbers: int) -> int:
    r"""Returns how many features of :obj:`numbers` values are multiplied at a time, so that a block of outer products fits the
    cache, and small graphs take one step.
    """
    return max(1, _BLOCK // max(1, numbers))


def _slices(k: Tensor, v: Tensor, constants: Sequence[Tensor]) -> list[slice]:
    r"""Cuts the features. The constant is their number at a time, where the shards of a graph have to agree on it."""
    width = int(constants[0]) if constants else features_at_a_time(v.numel())
    return [slice(start, start + width) for start in range(0, k.size(-1), width)]


def outer(k: Tensor, values: Tensor) -> Tensor:
    r"""Returns all products of features and values, :obj:`[N, H, m d]`."""
    return (k.unsqueeze(-1) * values.unsqueeze(-2)).flatten(2)


def _forward(inputs: AttentionInputs) -> tuple[Tensor, Tensor]:
    q, k, v, _, constants, *_ = inputs
    mask = inputs.mask()
    if mask.has_machine_code() and uses_numba(q.device):
        total, denominator = mask.attend(q, k, v), (q * mask.apply(k)).sum(-1)
        inverse = inverse_weight(denominator, (q.abs() * mask.magnitude(k.abs())).sum(-1))
        return total.mul_(inverse.unsqueeze(-1)), inverse
    values = with_ones(v)
    total = torch.zeros_like(values)
    for features in _slices(k, values, constants):
        product = mask.apply(outer(k[..., features], values)).unflatten(2, (-1, values.size(-1)))
        total += torch.einsum('nhs,nhsd->nhd', q[..., features], product)
    magnitude = (q.abs() * mask.magnitude(k.abs())).sum(-1)
    inverse = inverse_weight(total[..., -1], magnitude)
    return total[..., :-1] * inverse.unsqueeze(-1), inverse


def _backward(
    grads: tuple[Tensor, Tensor | None], outputs: tuple[Tensor, Tensor], inputs: AttentionInputs, learnable: Sequence[int]
) -> list[Tensor]:
    q, k, v, tensors, constants, *_ = inputs
    mask = inputs.mask()
    numerator, denominator = gradients_of_sums(grads[0], *outputs)

    def apply(x: Tensor, *learned: Tensor) -> Tensor:
        return inputs.mask(learnable, learned).apply(x)

    if mask.has_machine_code() and uses_numba(q.device):
        grad_q, grad_k, grad_v, *grad_tensors = mask.attend_backward(learnable, q, k, v, numerator)
        of_sizes: Any = torch.func.vjp(apply, k, *(tensors[index] for index in learnable))
        size, pull = of_sizes
        grad_q.addcmul_(denominator.unsqueeze(-1), size)
        grad_key, *grad_learned = pull(q * denominator.unsqueeze(-1))
        learned = [grad.add_(each) for grad, each in zip(grad_learned, grad_tensors, strict=True)]
        return [grad_q, grad_k.add_(grad_key), grad_v, *learned]
    values, grad = with_ones(v), torch.cat([numerator, denominator.unsqueeze(-1)], dim=-1)
    grad_q, grad_k, grad_values = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(values)
    grad_tensors = [torch.zeros_like(tensors[index]) for index in learnable]

    for features in _slices(k, values, constants):
        x = outer(k[..., features], values)
        forward: Any = torch.func.vjp(apply, x, *(tensors[index] for index in learnable))
        product, pull = forward
        product = product.unflatten(2, (-1, values.size(-1)))
        grad_q[..., features] = torch.einsum('nhd,nhsd->nhs', grad, product)
        grad_x, *grad_learned = pull(outer(q[..., features], grad))
        grad_x = grad_x.unflatten(2, (-1, values.size(-1)))
        grad_k[..., features] = torch.einsum('nhsd,nhd->nhs', grad_x, values)
        grad_values += torch.einsum('nhsd,nhs->nhd', grad_x, k[..., features])
        for total, grad_slice in zip(grad_tensors, grad_learned, strict=True):
            total += grad_slice
    return [grad_q, grad_k, grad_values[..., :-1].contiguous(), *grad_tensors]


def _plain(inputs: AttentionInputs, inverse: Tensor) -> tuple[Tensor, Tensor]:
    q, k, v, *_ = inputs
    product = inputs.mask().apply(outer(k, with_ones(v))).unflatten(2, (k.size(2), -1))
    return outputs_of_sums(torch.einsum('nhs,nhsd->nhd', q, product), inverse)


attend_features = attention_op('attend_features', _forward, _backward, _plain)
