r"""Bitmaps of nodes, as machine code."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from pyg_topomask.machine.compiled import compiled

# Reached nodes are sorted with a bitmap if it has at most this many bits for each of them, and by comparison otherwise.
_APART = 512


@intrinsic
def lowest_bit(typing: Any, bits: Any) -> Any:
    r"""Returns the position of the lowest bit of a number that is not 0."""
    defined = ir.Constant(ir.IntType(1), 1)
    return types.int64(types.int64), lambda context, builder, _, arguments: builder.cttz(arguments[0], defined)


@compiled
def sort_reached(nodes, low, high, bits):  # type: ignore[no-untyped-def]
    r"""Sorts nodes from :obj:`low` to :obj:`high` that are marked in a bitmap, and clears their marks."""
    if high - low < _APART * len(nodes):
        listed = 0
        for word in range(low >> 6, (high >> 6) + 1):
            while bits[word] != 0:
                nodes[listed] = (word << 6) + lowest_bit(bits[word])
                bits[word] &= bits[word] - 1
                listed += 1
    else:
        nodes.sort()
        for node in nodes:
            bits[node >> 6] = 0
