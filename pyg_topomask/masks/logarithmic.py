r"""Masks that may learn the logarithms of their numbers."""

from __future__ import annotations

import torch
from torch import Tensor

from pyg_topomask.masks.base import Mask


class LogarithmicMask(Mask):
    r"""A mask that learns numbers as they are or, where they are to stay above 0, as their logarithms. Which of the two is part
    of the state dictionary, so that a mask that began with other numbers can be loaded.
    """

    #: Whether logarithms are learned.
    positive: bool
    _begins_positive: bool
    initial: Tensor

    def _begin(self, initial: Tensor, positive: bool) -> None:
        r"""Keeps the numbers that :meth:`reset_parameters` sets."""
        self._begins_positive = self.positive = positive
        self.initial = initial

    @torch.no_grad()
    def _reset(self, *parameters: Tensor | None) -> None:
        self.positive = self._begins_positive
        for parameter in parameters:
            if parameter is not None:
                parameter.copy_(self.initial.log() if self.positive else self.initial)

    def _numbers(self, parameter: Tensor) -> Tensor:
        r"""Returns the numbers that a parameter stands for, in float32 or better."""
        numbers = parameter.to(torch.promote_types(parameter.dtype, torch.float32))
        return numbers.exp() if self.positive else numbers

    def get_extra_state(self) -> Tensor:
        return torch.tensor(self.positive)

    def set_extra_state(self, state: Tensor) -> None:
        self.positive = bool(state)
