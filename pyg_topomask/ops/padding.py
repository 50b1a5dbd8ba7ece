r"""Sizes to which graphs are padded, to be worked on side by side."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

__all__ = ['by_width', 'next_power_of_two']


def next_power_of_two(size: Tensor) -> Tensor:
    r"""Returns the smallest power of two that is not below each of the sizes, exactly.

    Args:
        size (torch.Tensor): Sizes from 1 to :obj:`2**53`.

    Example:
        >>> next_power_of_two(torch.tensor([1, 2, 3, 2**30 + 1]))
        tensor([         1,          2,          4, 2147483648])
    """
    return 2 ** torch.frexp((size - 1).double()).exponent.long()


def by_width(size: Tensor) -> Iterator[tuple[int, Tensor]]:
    r"""Yields powers of two, ascending, with the positions of the sizes of which each is the next one: padded to it, at most
    half of a graph is padding.

    Args:
        size (torch.Tensor): Sizes from 1, :obj:`[G]`.

    Example:
        >>> list(by_width(torch.tensor([3, 1, 4])))
        [(1, tensor([1])), (4, tensor([0, 2]))]
    """
    width = next_power_of_two(size)
    for own in width.unique().tolist():
        yield own, (width == own).nonzero().squeeze(1)
