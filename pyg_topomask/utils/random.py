r"""Seeds of torch, an integer hash, and uniform random numbers that are a function of a seed and a counter."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from pyg_topomask.utils.checks import check_whole, checked_seed


def seed_torch(seed: int) -> None:
    r"""Seeds torch's global generators as :func:`torch.manual_seed` does. Without an accelerator, it is fast enough for every
    graph: :func:`torch.manual_seed` formats the Python stack until one starts.
    """
    if torch.accelerator.is_available():
        torch.manual_seed(seed)
    else:
        torch.default_generator.manual_seed(seed)


# Streams of random numbers: 0 for lengths, t for the t-th hop, -t for halting after t - 1 hops, and larger numbers for others.
APART = 1 << 32

_GOLDEN = -0x61C8864680B583EB  # 2^64 / golden ratio, as a signed integer
_FACTORS = (-0x40A7B892E31B1A47, -0x6B2FB644ECCEEE15)


def splitmix(x: Tensor) -> Tensor:
    r"""Hashes 64-bit integers (splitmix64). The results for 0, 1, 2, ... are pseudorandom bits."""
    x = x + _GOLDEN
    for shift, factor in zip((30, 27), _FACTORS, strict=True):
        x = x.bitwise_xor_(_shift(x, shift)).mul_(factor)
    return x.bitwise_xor_(_shift(x, 31))


def _shift(x: Tensor, bits: int) -> Tensor:
    r"""A logical right shift. The shift of torch repeats the sign."""
    return (x >> bits).bitwise_and_((1 << (64 - bits)) - 1)


# (stream, walkers) -> one number in [0, 1) per walker; a stream is an integer, for all walkers or for each
Uniform = Callable[['int | Tensor', Tensor], Tensor]


def counter_uniform(seed: int, local_id: Tensor, num_walks: int, first: int = 0) -> Uniform:
    r"""Random numbers that depend only on the seed, the position of the start node in its graph, the walk and the stream
    (splitmix64). A graph therefore has the same walks alone, in any batch, and on any device. Walker :obj:`w` starts at node
    :obj:`first + w // num_walks`.
    """
    check_whole(1, num_walks=num_walks)
    offset = seed_offset(seed)

    def uniform(stream: int | Tensor, walkers: Tensor) -> Tensor:
        walkers = walkers.long()
        start = torch.div(walkers, num_walks, rounding_mode='floor')
        counter = local_id.index_select(0, start - first) * num_walks + (walkers - start * num_walks)
        bits = splitmix(splitmix(counter + offset) + stream)
        return (bits >> 11).bitwise_and_((1 << 53) - 1).double().mul_(2.0**-53)

    return uniform


def seed_offset(seed: int) -> int:
    r"""Returns the offset that a seed adds to the counters, as a signed 64-bit integer."""
    value = (checked_seed(seed=seed) * 0x9E3779B9) & ((1 << 64) - 1)
    return value - (1 << 64) if value >= 1 << 63 else value


def seed_of_factor(seed: int, factor: int) -> int:
    r"""Returns the seed of a factor of stitched walks: that of the first factor plus a multiple of a number that is larger than
    usual seeds.
    """
    return wrapped_seed(seed + factor * 2**32)


def seeds_of_ensembles(seed: int) -> tuple[int, int]:
    r"""Returns the seeds of the walks of queries and of keys."""
    return wrapped_seed(2 * seed), wrapped_seed(2 * seed + 1)


def wrapped_seed(number: int) -> int:
    r"""Returns the seed that a number stands for: walks depend on seeds modulo :math:`2^{64}`."""
    return int(number) % 2**64


def draw_seed(generator: torch.Generator | None) -> int:
    r"""Draws a seed from a generator, or from torch's global generator for :obj:`None`."""
    device = None if generator is None else generator.device
    return int(torch.randint(2**62, (), generator=generator, device=device))


def generator_on(device: torch.device, generator: torch.Generator | None) -> torch.Generator | None:
    r"""Returns a generator on a device: the given one, or a new one seeded by it if it is on another device. :obj:`None`, the
    global generator, works on any device.
    """
    if generator is None or generator.device.type == device.type:
        return generator
    return torch.Generator(device).manual_seed(draw_seed(generator))
