r"""Checks of numbers that are given as arguments. Errors name the argument, what was given and what is accepted."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral, Real
from typing import TypeGuard

import numpy as np
from torch import Tensor

__all__ = [
    'check_above_zero',
    'check_even',
    'check_finite',
    'check_not_negative',
    'check_numbers',
    'check_probability',
    'check_whole',
    'is_number',
    'is_whole',
]


def is_whole(value: object, least: int | None = None) -> TypeGuard[int]:
    r"""Returns whether a value is a whole number, of :obj:`least` or more: of Python or NumPy, but neither a boolean nor a
    whole float.
    """
    return isinstance(value, Integral) and not isinstance(value, bool) and (least is None or int(value) >= least)


def check_whole(least: int | None = None, most: int | None = None, /, **given: object) -> None:
    r"""Raises a :class:`ValueError` for what is not a whole number from :obj:`least` to :obj:`most`, by its name."""
    for name, value in given.items():
        if not is_whole(value, least) or (most is not None and value > most):
            bounds = ('' if least is None else f' from {least}') + ('' if most is None else f' to {most}')
            raise ValueError(f'{name}: got {value!r}; accepted are whole numbers{bounds}')


def check_even(**given: object) -> None:
    r"""Raises a :class:`ValueError` for what is not an even number from 2, by its name."""
    for name, value in given.items():
        if not is_whole(value, 2) or value % 2:
            raise ValueError(f'{name}: got {value!r}; accepted are even numbers from 2')


def is_number(value: object) -> TypeGuard[float]:
    r"""Returns whether a value is a number, of Python or NumPy, but not a boolean."""
    return isinstance(value, Real) and not isinstance(value, bool)


def check_numbers(**given: object) -> None:
    r"""Raises a :class:`ValueError` for what is neither a number, nor an array, nor a sequence of these, by its name."""
    for name, value in given.items():
        parts = value if isinstance(value, Sequence) and not isinstance(value, str) else [value]
        if not all(isinstance(part, Tensor | np.ndarray) or is_number(part) for part in parts):
            raise ValueError(f'{name}: got {value!r}; accepted are numbers, and sequences and tensors of them')


def check_finite(**given: object) -> None:
    r"""Raises a :class:`ValueError` for what is not a finite number, by its name."""
    for name, value in given.items():
        if not (is_number(value) and math.isfinite(value)):
            raise ValueError(f'{name}: got {value!r}; accepted are finite numbers')


def check_probability(**given: object) -> None:
    r"""Raises a :class:`ValueError` for what is not a number in :math:`[0, 1]`, by its name."""
    for name, value in given.items():
        if not (is_number(value) and 0.0 <= value <= 1.0):
            raise ValueError(f'{name}: got {value!r}; accepted are probabilities in [0, 1]')


def check_above_zero(**given: object) -> None:
    r"""Raises a :class:`ValueError` for what is not a finite number above 0, by its name."""
    for name, value in given.items():
        if not (is_number(value) and 0 < value < math.inf):
            raise ValueError(f'{name}: got {value!r}; accepted are finite numbers above 0')


def check_not_negative(**given: object) -> None:
    r"""Raises a :class:`ValueError` for what is not a finite number from 0, by its name."""
    for name, value in given.items():
        if not (is_number(value) and 0 <= value < math.inf):
            raise ValueError(f'{name}: got {value!r}; accepted are finite numbers from 0')
