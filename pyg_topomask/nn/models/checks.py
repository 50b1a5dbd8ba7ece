r"""Shared checks of the models."""

from __future__ import annotations

import torch
from torch import Tensor

from pyg_topomask.errors import ArgumentError


def check_dtype(dtype: torch.dtype, **given: Tensor) -> None:
    r"""Raises a :class:`ValueError` unless an input has the data type of the parameters. Under autocast, any floating point
    type is valid.
    """
    for name, value in given.items():
        if value.dtype != dtype and not (value.is_floating_point() and torch.is_autocast_enabled(value.device.type)):
            raise ArgumentError(name, value.dtype, f'{dtype}, the data type of the parameters', verb='is')
