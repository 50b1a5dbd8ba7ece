r"""The attention denominator, safe for rows without weight."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ['inverse_weight']


def inverse_weight(denominator: Tensor, magnitude: Tensor) -> Tensor:
    r"""Returns the inverse of the denominators of attention, and 0 for rows that weigh nothing.

    Linear attention divides by :math:`\sum_j M_{ij} \phi(\mathbf{q}_i)^{\top} \phi(\mathbf{k}_j)`, which may be zero (ReLU
    features, an isolated node) or negative (learned coefficients). A row counts as weighing nothing when its denominator is
    below what rounding leaves of terms of the given magnitude, or so small that its inverse overflows; its output and its
    gradient are then 0. Elsewhere the sign is kept.

    Args:
        denominator (torch.Tensor): :math:`\sum_j w_{ij}`, :obj:`[N, H]`.
        magnitude (torch.Tensor): :math:`\sum_j |w_{ij}|` or a bound of it, :obj:`[N, H]`.

    Returns:
        torch.Tensor: :obj:`[N, H]`.
    """
    limits = torch.finfo(denominator.dtype)
    floor = (16 * limits.eps * magnitude).clamp_(min=limits.tiny / limits.eps)
    empty = denominator.abs() <= floor
    return denominator.masked_fill(empty, 1.0).reciprocal_().masked_fill_(empty, 0.0)
