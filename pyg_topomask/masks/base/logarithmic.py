r"""Masks that learn numbers or their logarithms."""

from __future__ import annotations

import torch
from torch import Tensor

from pyg_topomask.masks.base.mask import Mask


class LogarithmicMask(Mask):
    r"""A mask that learns either numbers or their logarithms. Logarithms keep the numbers above 0. The state dictionary records
    the choice, so a mask with the other choice can load it.
    """

    #: Whether the mask learns logarithms.
    positive: bool
    _begins_positive: bool
    initial: Tensor

    def _begin(self, initial: Tensor, positive: bool) -> None:
        r"""Stores the initial values of :meth:`reset_parameters`."""
        self._begins_positive = self.positive = positive
        self.initial = initial

    @torch.no_grad()
    def _reset(self, *parameters: Tensor | None) -> None:
        self.positive = self._begins_positive
        for parameter in parameters:
            if parameter is not None:
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
