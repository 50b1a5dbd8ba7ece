r"""Division by the attention denominator, safe for rows without weight."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ['normalize']


def normalize(numerator: Tensor, denominator: Tensor, magnitude: Tensor) -> Tensor:
    r"""Divides each row by its denominator; a row that weighs nothing gives 0, with gradient 0.

    Linear attention divides by :math:`\sum_j M_{ij} \phi(\mathbf{q}_i)^{\top} \phi(\mathbf{k}_j)`, which may be zero (ReLU
    features, an isolated node) or negative (learned coefficients). A row counts as weighing nothing when its denominator is
    below what rounding leaves of terms of the given magnitude, or so small that its inverse overflows. Elsewhere the sign is
    kept.

    Args:
        numerator (torch.Tensor): :math:`\sum_j w_{ij} \mathbf{v}_j`, :obj:`[N, H, d]`.
        denominator (torch.Tensor): :math:`\sum_j w_{ij}`, :obj:`[N, H]`.
        magnitude (torch.Tensor): :math:`\sum_j |w_{ij}|` or a bound of it, :obj:`[N, H]`.

    Returns:
        torch.Tensor: The quotient, :obj:`[N, H, d]`.
    """
    limits = torch.finfo(denominator.dtype)
    floor = (16 * limits.eps * magnitude).clamp(min=limits.tiny / limits.eps)
    empty = denominator.detach().abs() <= floor
    safe = denominator.masked_fill(empty, 1.0)
    return (numerator / safe.unsqueeze(-1)).masked_fill(empty.unsqueeze(-1), 0.0)
