r"""What the parts of a recommender check alike."""

from __future__ import annotations

import math

from torch import Tensor

__all__ = ['check_above_zero', 'check_not_negative', 'check_range']


def check_above_zero(**given: float) -> None:
    r"""Raises a :class:`ValueError` for what is not a finite number above 0, by its name."""
    for name, value in given.items():
        if not 0 < value < math.inf:
            raise ValueError(f'{name}: got {value}; accepted are finite numbers above 0')


def check_not_negative(**given: float) -> None:
    r"""Raises a :class:`ValueError` for what is not a finite number of at least 0, by its name."""
    for name, value in given.items():
        if not 0 <= value < math.inf:
            raise ValueError(f'{name}: got {value}; accepted are finite numbers of at least 0')


def check_range(pairs: Tensor, num_users: int, num_items: int) -> None:
    r"""Raises a :class:`ValueError` for an interaction outside the given numbers of users and items."""
    for name, row, size in (('users', 0, num_users), ('items', 1, num_items)):
        if pairs.numel() and not 0 <= int(pairs[row].min()) <= int(pairs[row].max()) < size:
            raise ValueError(
                f'pairs: got {name} from {int(pairs[row].min())} to {int(pairs[row].max())}; accepted are 0 to {size - 1}'
            )
