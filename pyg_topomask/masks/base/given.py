r"""The base class of masks of given tensors."""

from __future__ import annotations

import torch
from torch import Tensor

from pyg_topomask.errors import ArgumentError
from pyg_topomask.masks.base.mask import Mask


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


class GivenMask(Mask):
    r"""Base class of masks of given tensors. Those that are parameters are learned, and reset to what was given."""

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
