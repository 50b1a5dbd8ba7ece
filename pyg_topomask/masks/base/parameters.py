r"""Base classes of masks by what they learn: numbers or their logarithms, times, and given tensors."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from pyg_topomask.errors import ArgumentError
from pyg_topomask.masks.base.mask import Mask
from pyg_topomask.utils.checks import per_head


class LogarithmicMask(Mask):
    r"""A mask that learns either numbers or their logarithms. Logarithms keep the numbers above 0. The state dictionary records
    the choice, so a mask with the other choice can load it.
    """

    #: Whether the mask learns logarithms.
    positive: bool
    _begins_positive: bool
    initial: Tensor

    def _begin(self, initial: Tensor, positive: bool) -> None:
        r"""Stores the initial values of all parameters, see :meth:`reset_parameters`."""
        self._begins_positive = self.positive = positive
        self.initial = initial

    @torch.no_grad()
    def reset_parameters(self) -> None:
        self.positive = self._begins_positive
        for parameter in self.parameters(recurse=False):
            parameter.copy_(self.initial.log() if self.positive else self.initial)

    def _numbers(self, parameter: Tensor) -> Tensor:
        r"""Returns the numbers that a parameter encodes, at least in float32."""
        numbers = parameter.to(torch.promote_types(parameter.dtype, torch.float32))
        return numbers.exp() if self.positive else numbers

    @torch.no_grad()
    def negative(self) -> str | None:
        r"""Returns the name of a parameter with negative numbers, or :obj:`None`."""
        parameters = () if self.positive else self.named_parameters(recurse=False)
        return next((name for name, parameter in parameters if bool((parameter < 0).any())), None)

    def get_extra_state(self) -> Tensor:
        return torch.tensor(self.positive)

    def set_extra_state(self, state: Tensor) -> None:
        self.positive = bool(state)


class DiffusionMask(Mask):
    r"""A mask with a time :math:`\lambda > 0` per head, the softplus of a parameter. Arguments are those of
    :class:`~pyg_topomask.masks.HeatKernelMask`.
    """

    initial: Tensor

    def __init__(self, heads: int, lam: float | Sequence[float] | Tensor, learnable: bool = True) -> None:
        super().__init__(heads)
        given = per_head(heads, lam=lam)
        if not bool((given > 0).all()):
            raise ArgumentError('lam', given.tolist(), 'numbers above 0')
        self.initial = given + torch.log(-torch.expm1(-given))
        self.raw_lam = torch.nn.Parameter(torch.empty(heads), requires_grad=learnable)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        with torch.no_grad():
            self.raw_lam.copy_(self.initial)

    @property
    def lam(self) -> Tensor:
        r""":math:`\lambda`, :obj:`[heads]`."""
        return torch.nn.functional.softplus(self.raw_lam.to(torch.promote_types(self.raw_lam.dtype, torch.float32)))


class GivenMask(Mask):
    r"""A mask of given tensors. Those that are parameters are learned, and reset to what was given."""

    def __init__(self, heads: int = 1) -> None:
        super().__init__(heads)
        self._initial: dict[str, Tensor] = {}

    def _keep(self, name: str, given: Tensor) -> None:
        given = as_floating_point(name, given)
        check_entries(name, given)
        if isinstance(given, torch.nn.Parameter):
            self.register_parameter(name, given)
            self._initial[name] = given.detach().clone()
        else:
            self.register_buffer(name, given.clone(memory_format=torch.contiguous_format))

    @torch.no_grad()
    def reset_parameters(self) -> None:
        for name, initial in self._initial.items():
            getattr(self, name).copy_(initial)


def as_floating_point(name: str, given: Tensor) -> Tensor:
    r"""Returns a given tensor of whole numbers in the default data type, and one of floating point numbers as it is."""
    if given.is_complex():
        raise ArgumentError(name, f'numbers of {given.dtype}', 'real numbers')
    return given if given.is_floating_point() else given.to(torch.get_default_dtype())


def check_entries(name: str, given: Tensor) -> None:
    r"""Raises a :class:`ValueError` unless all entries of a given tensor are finite."""
    if not given.is_meta and not bool(given.isfinite().all()):
        at = (~given.isfinite()).nonzero()[0].tolist()
        raise ArgumentError(name, f'{given[tuple(at)].item()} at {at}', 'finite numbers')
