r"""Sources of uniform random numbers for walkers."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from pyg_topomask.ops.splitmix import splitmix

__all__ = ['Uniform', 'counter_uniform', 'generator_uniform']

# (step, walkers) -> one number in [0, 1) for each walker
Uniform = Callable[[int, Tensor], Tensor]


def generator_uniform(generator: torch.Generator | None, device: torch.device) -> Uniform:
    r"""Numbers from a :class:`torch.Generator`, or from torch's global one if it is :obj:`None`."""

    def uniform(step: int, walkers: Tensor) -> Tensor:
        if generator is None or generator.device == device:
            return torch.rand(walkers.numel(), generator=generator, device=device)
        return torch.rand(walkers.numel(), generator=generator, device=generator.device).to(device)

    return uniform


def counter_uniform(seed: int, local_id: Tensor, num_walks: int) -> Uniform:
    r"""Numbers that are a function of seed, position of the start node in its graph, walk and step alone (splitmix64), so that
    a graph is walked alike alone, in any batch, and on any device.

    Args:
        seed (int): The seed.
        local_id (torch.Tensor): The position of each node within its graph, :obj:`[N]`.
        num_walks (int): Walks per node; walker :obj:`w` starts at node :obj:`w // num_walks`.
    """

    def uniform(step: int, walkers: Tensor) -> Tensor:
        walkers = walkers.long()
        start = torch.div(walkers, num_walks, rounding_mode='floor')
        counter = local_id.index_select(0, start) * num_walks + (walkers - start * num_walks)
        bits = splitmix(splitmix(counter + _signed(seed * 0x9E3779B9)) + step)
        return (bits >> 11).bitwise_and_((1 << 53) - 1).double().mul_(2.0**-53)

    return uniform


def _signed(value: int) -> int:
    value &= (1 << 64) - 1
    return value - (1 << 64) if value >= 1 << 63 else value
