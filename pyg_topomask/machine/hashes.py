r"""Hashes as machine code: of integers, and of the edges of each graph of a batch."""

from __future__ import annotations

import numpy as np

from pyg_topomask.machine.compiled import compiled

_SHIFT30, _SHIFT27, _SHIFT31 = (np.uint64(bits) for bits in (30, 27, 31))
_GOLDEN, _FIRST, _SECOND = (np.uint64(number) for number in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))


@compiled
def splitmix(x):  # type: ignore[no-untyped-def]
    r"""Hashes an unsigned integer, as :func:`pyg_topomask.utils.random.splitmix`."""
    x += _GOLDEN
    x = (x ^ (x >> _SHIFT30)) * _FIRST
    x = (x ^ (x >> _SHIFT27)) * _SECOND
    return x ^ (x >> _SHIFT31)
