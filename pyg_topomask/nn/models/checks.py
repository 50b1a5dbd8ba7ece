r"""What the models accept alike."""

from __future__ import annotations

import torch
from torch import Tensor

from pyg_topomask.errors import ArgumentError


def check_dtype(dtype: torch.dtype, **given: Tensor) -> None:
    r"""Raises a :class:`ValueError` for an input of another data type than that of the parameters, by its name; under autocast,
    of another one than of floating point numbers.
    """
    for name, value in given.items():
        if value.dtype != dtype and not (value.is_floating_point() and torch.is_autocast_enabled(value.device.type)):
            raise ArgumentError(name, value.dtype, f'{dtype}, the data type of the parameters', verb='is')
