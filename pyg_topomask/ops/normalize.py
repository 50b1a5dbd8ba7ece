r"""The attention denominator, safe for zero rows."""

from __future__ import annotations

import torch
from torch import Tensor

from pyg_topomask.utils.functorch import readable


def inverse_weight(denominator: Tensor, magnitude: Tensor) -> Tensor:
    r"""Returns the inverse of the denominators of attention, and 0 for zero rows, :obj:`[N, H]`.

    Linear attention divides by :math:`\sum_j M_{ij} \phi(\mathbf{q}_i)^{\top} \phi(\mathbf{k}_j)`, which may be zero (ReLU
    features, an isolated node) or negative (learned coefficients). A row counts as a zero row if its denominator is below the
    rounding error of terms of the given magnitude, the sum of their absolute values, or so small that its inverse overflows.
    Its output and gradient are then 0. For other rows, the sign is kept.
    """
    limits = torch.finfo(denominator.dtype)
    floor = (16 * limits.eps * magnitude).clamp(min=limits.tiny / limits.eps)
    empty = denominator.abs() <= floor
    return denominator.masked_fill(empty, 1.0).reciprocal_().masked_fill_(empty, 0.0)


def quotient(numerator: Tensor, denominator: Tensor, magnitude: Tensor) -> Tensor:
    r"""Divides for autograd. The result and its gradient are 0 where :func:`inverse_weight` of denominator and magnitude
    is 0.
    """
    with torch.no_grad():
        empty = inverse_weight(denominator, magnitude) == 0
    return quotient_unless(empty, numerator, denominator)


def quotient_unless(empty: Tensor, numerator: Tensor, denominator: Tensor) -> Tensor:
    r"""Divides for autograd. The result and its gradient are 0 in the empty rows."""
    return (numerator / denominator.masked_fill(empty, 1.0)).masked_fill(empty, 0.0)


def with_ones(v: Tensor) -> Tensor:
    r"""Appends a column of ones, which makes the denominator one more value."""
    return torch.cat([v, v.new_ones((*v.shape[:-1], 1))], dim=-1)


def gradients_of_sums(grad: Tensor, out: Tensor, inverse: Tensor) -> tuple[Tensor, Tensor]:
    r"""Returns the gradients of numerator, :obj:`[N, H, d]`, and denominator, :obj:`[N, H]`."""
    grad_numerator = grad * inverse.unsqueeze(-1)
    return grad_numerator, -(grad_numerator * out).sum(-1)


def known_positive(*tensors: Tensor) -> bool:
    r"""Returns whether all tensors are known to be nonnegative, so that the denominator is the sum of magnitudes. They are not
    where their numbers are not :func:`readable`.
    """
    return readable(*tensors) and all(x.numel() > 0 and float(x.detach().amin()) >= 0 for x in tensors)
