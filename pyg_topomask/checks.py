r"""Checks of numbers that are given as arguments. Errors name the argument, what was given and what is accepted."""

from __future__ import annotations

import math
from numbers import Integral
from typing import TypeGuard

__all__ = ['check_above_zero', 'check_even', 'check_not_negative', 'check_probability', 'check_whole', 'is_whole']


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


def check_probability(**given: float) -> None:
    r"""Raises a :class:`ValueError` for a number outside :math:`[0, 1]`, by its name."""
    for name, value in given.items():
        if not 0.0 <= value <= 1.0:
            raise ValueError(f'{name}: got {value}; accepted are probabilities in [0, 1]')


def check_above_zero(**given: float) -> None:
    r"""Raises a :class:`ValueError` for what is not a finite number above 0, by its name."""
    for name, value in given.items():
        if not 0 < value < math.inf:
            raise ValueError(f'{name}: got {value}; accepted are finite numbers above 0')


def check_not_negative(**given: float) -> None:
    r"""Raises a :class:`ValueError` for what is not a finite number from 0, by its name."""
    for name, value in given.items():
        if not 0 <= value < math.inf:
            raise ValueError(f'{name}: got {value}; accepted are finite numbers from 0')
