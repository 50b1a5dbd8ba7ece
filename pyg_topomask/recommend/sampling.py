r"""Negative samples: items that a user did not interact with."""

from __future__ import annotations

import torch
from torch import Tensor

from pyg_topomask.recommend.checks import check_range
from pyg_topomask.walks.uniform import generator_on

__all__ = ['NegativeSampler']


class NegativeSampler(torch.nn.Module):
    r"""Draws, for each user, an item uniformly from those that the user did not interact with.

    There is no rejection: the :math:`r`-th unknown item of a user is :math:`r + c`, where :math:`c` counts the user's
    known items :math:`p_0 < p_1 < \dots` with :math:`p_j - j \leq r`, which one binary search finds.

    Args:
        pairs (torch.Tensor): The interactions, users and items, of shape :obj:`[2, E]`.
        num_users (int): The number of users.
        num_items (int): The number of items.

    Raises:
        ValueError: If an interaction lies outside the given numbers.

    Example:
        >>> sampler = NegativeSampler(torch.tensor([[0, 0, 1], [0, 2, 1]]), num_users=2, num_items=3)
        >>> sampler(torch.tensor([0, 0])).tolist()
        [1, 1]
    """

    start: Tensor
    num_unknown: Tensor
    keys: Tensor

    def __init__(self, pairs: Tensor, num_users: int, num_items: int) -> None:
        super().__init__()
        check_range(pairs, num_users, num_items)
        users, items = pairs.unique(dim=1)
        count = torch.bincount(users, minlength=num_users)
        start = count.cumsum(0) - count
        place = torch.arange(users.numel(), device=users.device) - start[users]
        self.num_items = num_items
        # The keys of a user are within [user * stride, (user + 1) * stride).
        self.stride = num_items + 1
        self.register_buffer('start', start, persistent=False)
        self.register_buffer('num_unknown', num_items - count, persistent=False)
        self.register_buffer('keys', users * self.stride + items - place, persistent=False)

    def forward(self, users: Tensor, generator: torch.Generator | None = None) -> Tensor:
        r"""Returns one item for each user, :obj:`-1` for a user who knows every item.

        Args:
            users (torch.Tensor): The users, of shape :obj:`[n]`.
            generator (torch.Generator, optional): A generator, of any device, instead of PyTorch's global one.
                (default: :obj:`None`)
        """
        generator = generator_on(users.device, generator)
        uniform = torch.rand(users.shape, dtype=torch.float64, device=users.device, generator=generator)
        unknown = self.num_unknown[users]
        rank = torch.minimum((uniform * unknown).long(), (unknown - 1).clamp(min=0))
        known = torch.searchsorted(self.keys, users * self.stride + rank, right=True) - self.start[users]
        return torch.where(unknown > 0, rank + known, -1)

    def extra_repr(self) -> str:
        return f'{self.start.numel()} users, {self.num_items} items'
