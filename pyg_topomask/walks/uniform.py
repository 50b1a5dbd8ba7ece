r"""Sources of uniform random numbers for walkers."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

__all__ = ['Uniform', 'counter_uniform', 'generator_uniform']

# (step, walkers) -> one number in [0, 1) for each walker
Uniform = Callable[[int, Tensor], Tensor]

_GOLDEN = -0x61C8864680B583EB  # 2^64 / golden ratio, as a signed integer
_MIX = (-0x40A7B892E31B1A47, -0x6B2FB644ECCEEE15)  # the multipliers of splitmix64


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
        counter = local_id.index_select(0, start) * num_walks + walkers.sub_(start * num_walks)
        bits = _splitmix(_splitmix(counter.add_(_signed(seed * 0x9E3779B9))).add_(_signed(step)))
        return (bits >> 11).bitwise_and_((1 << 53) - 1).double().mul_(2.0**-53)

    return uniform


def _splitmix(x: Tensor) -> Tensor:
    x = x.add_(_GOLDEN)
    for shift, factor in zip((30, 27), _MIX, strict=True):
        x = x.bitwise_xor_(_shift(x, shift)).mul_(factor)
    return x.bitwise_xor_(_shift(x, 31))


def _shift(x: Tensor, bits: int) -> Tensor:
    r"""A logical shift to the right: torch's own repeats the sign."""
    return (x >> bits).bitwise_and_((1 << (64 - bits)) - 1)


def _signed(value: int) -> int:
    value &= (1 << 64) - 1
    return value - (1 << 64) if value >= 1 << 63 else value
