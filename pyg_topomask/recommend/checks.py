r"""What the parts of a recommender check alike."""

from __future__ import annotations

from torch import Tensor

__all__ = ['check_range']


def check_range(pairs: Tensor, num_users: int, num_items: int) -> None:
    r"""Raises a :class:`ValueError` for an interaction outside the given numbers of users and items."""
    for name, row, size in (('users', 0, num_users), ('items', 1, num_items)):
        if pairs.numel() and not 0 <= int(pairs[row].min()) <= int(pairs[row].max()) < size:
            raise ValueError(
                f'pairs: got {name} from {int(pairs[row].min())} to {int(pairs[row].max())}; accepted are 0 to {size - 1}'
            )
