r"""The features route: the mask multiplies one slice of features at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from pyg_topomask.ops.normalize import gradients_of_sums, inverse_weight, with_ones
from pyg_topomask.structures import replaced, structure_from_key

__all__ = ['attend_features', 'outer']

# Numbers in the block of mask inputs that is held at a time.
_BLOCK = 2**21


def _slices(k: Tensor, v: Tensor) -> list[slice]:
    r"""Cuts the features so that a block of outer products fits the cache, and small graphs take one step."""
    width = max(1, _BLOCK // max(1, v.numel()))
    return [slice(start, start + width) for start in range(0, k.size(-1), width)]


def outer(k: Tensor, values: Tensor) -> Tensor:
    r"""Returns all products of features and values, :obj:`[N, H, m d]`."""
    return (k.unsqueeze(-1) * values.unsqueeze(-2)).flatten(2)


@torch.library.custom_op(
    'pyg_topomask::attend_features',
    mutates_args=(),
    schema='(Tensor q, Tensor k, Tensor v, Tensor[] tensors, str structure) -> (Tensor, Tensor)',
)
def attend_features(q: Tensor, k: Tensor, v: Tensor, tensors: Sequence[Tensor], structure: str) -> tuple[Tensor, Tensor]:
    mask, values = structure_from_key(structure), with_ones(v)
    total = torch.zeros_like(values)
    for part in _slices(k, values):
        product = mask.apply(tensors, outer(k[..., part], values)).unflatten(2, (-1, values.size(-1)))
        total += torch.einsum('nhs,nhsd->nhd', q[..., part], product)
    magnitude = (q.abs() * mask.magnitude(tensors, k.abs())).sum(-1)
    inverse = inverse_weight(total[..., -1], magnitude)
    return total[..., :-1] * inverse.unsqueeze(-1), inverse


@attend_features.register_fake
def _(q: Tensor, k: Tensor, v: Tensor, tensors: Sequence[Tensor], structure: str) -> tuple[Tensor, Tensor]:
    return v.new_empty(v.shape), q.new_empty(q.shape[:2])


@torch.library.custom_op(
    'pyg_topomask::attend_features_backward',
    mutates_args=(),
    schema='(Tensor grad, Tensor out, Tensor inverse, Tensor q, Tensor k, Tensor v, Tensor[] tensors, int[] learnable, '
    'str structure) -> Tensor[]',
)
def _attend_features_backward(
    grad: Tensor,
    out: Tensor,
    inverse: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    tensors: Sequence[Tensor],
    learnable: Sequence[int],
    structure: str,
) -> list[Tensor]:
    own, values = structure_from_key(structure), with_ones(v)
    numerator, denominator = gradients_of_sums(grad, out, inverse)
    grad = torch.cat([numerator, denominator.unsqueeze(-1)], dim=-1)
    grad_q, grad_k, grad_values = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(values)
    grads = [torch.zeros_like(tensors[index]) for index in learnable]

    def apply(x: Tensor, *changed: Tensor) -> Tensor:
        return own.apply(replaced(tensors, learnable, changed), x)

    for part in _slices(k, values):
        x = outer(k[..., part], values)
        forward: Any = torch.func.vjp(apply, x, *(tensors[index] for index in learnable))
        product, pull = forward
        product = product.unflatten(2, (-1, values.size(-1)))
        grad_q[..., part] = torch.einsum('nhd,nhsd->nhs', grad, product)
        slice_grads: list[Tensor] = list(pull(outer(q[..., part], grad)))
        grad_x = slice_grads.pop(0).unflatten(2, (-1, values.size(-1)))
        grad_k[..., part] = torch.einsum('nhsd,nhd->nhs', grad_x, values)
        grad_values += torch.einsum('nhsd,nhs->nhd', grad_x, k[..., part])
        for total, slice_grad in zip(grads, slice_grads, strict=True):
            total += slice_grad
    return [grad_q, grad_k, grad_values[..., :-1].contiguous(), *grads]


@_attend_features_backward.register_fake
def _(
    grad: Tensor,
    out: Tensor,
    inverse: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    tensors: Sequence[Tensor],
    learnable: Sequence[int],
    structure: str,
) -> list[Tensor]:
    return [tensor.new_empty(tensor.shape) for tensor in (q, k, v, *(tensors[index] for index in learnable))]


def _setup_features(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    q, k, v, tensors, structure = inputs
    ctx.save_for_backward(*output, q, k, v, *tensors)
    ctx.structure = structure
    ctx.learnable = [index for index, tensor in enumerate(tensors) if tensor.requires_grad]


def _backward_features(ctx: Any, grad: Tensor, _: Tensor | None) -> tuple[Any, ...]:
    out, inverse, q, k, v, *tensors = ctx.saved_tensors
    grads = _attend_features_backward(grad, out, inverse, q, k, v, tensors, ctx.learnable, ctx.structure)
    grad_tensors: list[Tensor | None] = [None] * len(tensors)
    for index, own in zip(ctx.learnable, grads[3:], strict=True):
        grad_tensors[index] = own
    return (*grads[:3], grad_tensors, None)


attend_features.register_autograd(_backward_features, setup_context=_setup_features)
