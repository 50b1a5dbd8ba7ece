r"""How long walks are: the survival probabilities that also weigh what they deposit."""

from __future__ import annotations

from numbers import Integral

import torch
from torch import Tensor

__all__ = ['geometric_survival', 'lengths_from_uniform']


def geometric_survival(p_halt: float, max_walk_length: int) -> Tensor:
    r"""Returns :math:`S_t = P(\text{length} \ge t) = (1 - p_{halt})^t` for :math:`t = 0, \dots, L`: a walk halts with
    probability :math:`p_{halt}` before each hop, and after :math:`L` hops in any case (`"Linear Transformer Topological Masking
    with Graph Random Features" <https://arxiv.org/abs/2410.03462>`_, Sec. 3.4). With :math:`p_{halt} = 0` every walk makes
    :math:`L` hops.

    Args:
        p_halt (float): The halting probability, in :math:`[0, 1)`.
        max_walk_length (int): The largest number of hops :math:`L`.

    Raises:
        ValueError: If :obj:`p_halt` is outside :math:`[0, 1)` or :obj:`max_walk_length` is negative.

    Example:
        >>> geometric_survival(0.5, max_walk_length=2)
        tensor([1.0000, 0.5000, 0.2500], dtype=torch.float64)
    """
    if not 0 <= p_halt < 1:
        raise ValueError(f'p_halt: got {p_halt}; accepted are numbers in [0, 1)')
    if not isinstance(max_walk_length, Integral) or max_walk_length < 0:
        raise ValueError(f'max_walk_length: got {max_walk_length}; accepted are numbers of hops from 0')
    return (1.0 - p_halt) ** torch.arange(max_walk_length + 1, dtype=torch.float64)


def lengths_from_uniform(uniform: Tensor, survival: Tensor) -> Tensor:
    r"""Turns uniform numbers into walk lengths with the given survival probabilities, by inversion."""
    # length >= t exactly where u < S_t, and S descends: count the t >= 1 with S_t > u.
    descending = -survival[1:].to(uniform.device, uniform.dtype)
    return torch.searchsorted(descending, -uniform)
