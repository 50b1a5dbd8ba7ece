r"""Convolutions of series, and their inverse."""

from __future__ import annotations

from functools import reduce

import torch
from torch import Tensor
from torch.nn.functional import pad

from pyg_topomask.errors import ArgumentError
from pyg_topomask.utils.checks import check_size


def convolve(first: Tensor, second: Tensor) -> Tensor:
    r"""Returns :math:`\alpha_k = \sum_p f^{(1)}_p f^{(2)}_{k - p}`, from `"Linear Transformer Topological Masking with Graph
    Random Features" <https://arxiv.org/abs/2410.03462>`_ (Eq. 26), differentiable.

    Args:
        first (torch.Tensor): :math:`f^{(1)}`, :obj:`[*, L + 1]`.
        second (torch.Tensor): :math:`f^{(2)}`, :obj:`[*, L' + 1]`.

    Returns:
        torch.Tensor: :obj:`[*, L + L' + 1]`.

    Example:
        >>> convolve(torch.tensor([1.0, 1.0]), torch.tensor([1.0, 1.0]))
        tensor([1., 2., 1.])
    """
    shifted = [pad(first * second[..., shift, None], (shift, second.size(-1) - 1 - shift)) for shift in range(second.size(-1))]
    return torch.stack(shifted).sum(0)


def deconvolve(alpha: Tensor, factors: int = 2) -> Tensor:
    r"""Returns the series :math:`f` of the :math:`n`-th root, for which :math:`\alpha_k = \sum_{p_1 + \dots + p_n = k} f_{p_1}
    \cdots f_{p_n}` for every given :math:`k`, by the iterative formula

    .. math::
        f_0 = \alpha_0^{1/n}, \qquad
        f_k = \frac{\alpha_k - \sum_{p_1 + \dots + p_n = k, \; p_i < k} f_{p_1} \cdots f_{p_n}}{n f_0^{n - 1}}

    For :math:`n = 2`, it is that of `"General Graph Random Features" <https://arxiv.org/abs/2310.04859>`_ (Eq. 6).

    Args:
        alpha (torch.Tensor): :math:`\alpha`, :obj:`[*, K + 1]`, with :math:`\alpha_0 > 0`.
        factors (int): The number of equal factors :math:`n`. (default: :obj:`2`)

    Returns:
        torch.Tensor: :math:`f`, :obj:`[*, K + 1]`.

    Raises:
        ValueError: If an :math:`\alpha_0` is not positive beyond rounding errors, :obj:`alpha` has no dimension, or
            :obj:`factors` is not a positive whole number.

    Example:
        >>> deconvolve(torch.tensor([1.0, 2.0, 1.0]))
        tensor([1., 1., 0.])
        >>> deconvolve(torch.tensor([1.0, 3.0, 3.0, 1.0]), factors=3)
        tensor([1., 1., 0., 0.])
    """
    check_size(1, factors=factors)
    if alpha.dim() == 0:
        raise ArgumentError('alpha', f'shape {tuple(alpha.shape)}', '[*, K + 1]')
    accepted = 'series whose first coefficient is above 0, beyond rounding, since f_0 is a root of alpha_0'
    refusal = ArgumentError('alpha', alpha.tolist(), accepted)
    if alpha.size(-1) == 0 or not bool((alpha[..., 0] > 0).all()):
        raise refusal
    f = [alpha[..., 0] ** (1 / factors)]
    for k in range(1, alpha.size(-1)):
        crossed = _power(torch.stack([*f, torch.zeros_like(f[0])], dim=-1), factors)[..., k]
        f.append((alpha[..., k] - crossed) / (factors * f[0] ** (factors - 1)))
    series = torch.stack(f, dim=-1)
    # The first coefficient may be this small if f is not large.
    rounding, largest = torch.finfo(series.dtype).eps, alpha.abs().amax(-1)
    if bool(((alpha[..., 0] <= rounding * largest) & ~(rounding * series.abs().amax(-1) ** factors <= largest)).any()):
        raise refusal
    return series


def _power(series: Tensor, exponent: int) -> Tensor:
    r"""Returns the beginning of the series of a power, as long as the given series."""
    return reduce(lambda power, _: convolve(power, series)[..., : series.size(-1)], range(exponent - 1), series)
