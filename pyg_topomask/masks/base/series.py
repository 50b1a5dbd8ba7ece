r"""The initial values of what masks learn for each hop or distance."""

from __future__ import annotations

import torch
from torch import Tensor

from pyg_topomask.errors import ArgumentError
from pyg_topomask.masks.base.kernels import named_series
from pyg_topomask.utils.checks import as_numbers


def series_parameter(
    argument: str, given: Tensor, heads: int, length: int, dtype: torch.dtype | None = None, each: str = 'power'
) -> Tensor:
    r"""Checks the initial value of a learnable series, and returns a copy of it, :obj:`[heads, length]`. The copy has the data
    type of the value, or the default one if that is not floating point. The numbers must be finite also when converted to
    :obj:`dtype`, in which the series will be learned. :obj:`each` names the index of the series in errors.
    """
    given = as_numbers(**{argument: given})
    if given.shape not in ((length,), (heads, length)):
        accepted = f'[{length}] and [{heads}, {length}], one number for each {each} from 0'
        raise ArgumentError(argument, f'shape {tuple(given.shape)}', accepted)
    if not bool(given.to(dtype or given.dtype).isfinite().all()):
        raise ArgumentError(argument, given.tolist(), 'finite numbers')
    given = given.detach() if given.is_floating_point() else given.to(torch.get_default_dtype())
    return given.expand(heads, -1).clone()


def initial_series(
    argument: str, given: Tensor | str | None, heads: int, length: int, limit: str, factors: int = 1
) -> tuple[Tensor, torch.dtype | None]:
    r"""Returns the initial values of a learnable power series, :obj:`[heads, length]`: the given numbers, by default
    :func:`decaying`, for :obj:`"hops"` :func:`one_hop_per_head`, and for the name of a kernel its series, or the root of it if
    the mask multiplies several. Also returns the data type to learn a kernel in. :obj:`limit` is as in :func:`named_series`.
    """
    if given is None:
        given = decaying(heads, length)
    elif isinstance(given, str) and given == 'hops':
        given = one_hop_per_head(heads, length)
    if not isinstance(given, str):
        return series_parameter(argument, given, heads, length), None
    dtype = torch.get_default_dtype()  # of a kernel, whose series is in float64
    return series_parameter(argument, named_series(argument, given, length - 1, limit, factors), heads, length, dtype), dtype


def one_hop_per_head(heads: int, length: int) -> Tensor:
    r"""Returns initial values that start each head at a different hop, :obj:`[heads, length]`: 1 for the power
    :math:`h \bmod \text{length}` of head :math:`h`, and 0.02 for all other powers, so that they can grow.
    """
    series = torch.full((heads, length), 0.02)
    series[torch.arange(heads), torch.arange(heads) % length] = 1.0
    return series


def nested_balls(heads: int, length: int) -> Tensor:
    r"""Returns initial values for nested neighborhoods, :obj:`[heads, length]` with :obj:`length` :math:`= K + 1`: 1 up to
    the power :math:`\lfloor K (h + 1) / H \rfloor` in head :math:`h` of :math:`H`, and 0.02 for all other powers, so that they
    can grow.
    """
    farthest = (length - 1) * torch.arange(1, heads + 1) // heads
    return torch.where(torch.arange(length) <= farthest.unsqueeze(1), 1.0, 0.02)


def decaying(heads: int, length: int) -> Tensor:
    r"""Returns the series :math:`2^{-k}` for all heads, :obj:`[heads, length]`."""
    return (0.5 ** torch.arange(length)).expand(heads, -1)


def resolve_positive(argument: str, initial: Tensor, positive: bool | None) -> bool:
    r"""Returns whether to learn the logarithms of a series. :obj:`None` means to learn them if all numbers are above 0.
    :obj:`True` raises a :class:`ValueError` if a number is not.
    """
    possible = bool((initial > 0).all())
    if positive and not possible:
        raise ArgumentError(argument, f'{initial.tolist()} for positive=True', 'numbers above 0')
    return possible if positive is None else positive
