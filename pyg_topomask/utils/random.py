r"""Seeds of torch, and an integer hash with the streams of random numbers that walks make with it."""

from __future__ import annotations

import torch
from torch import Tensor


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
