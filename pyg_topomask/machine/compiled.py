r"""The compilation of kernels by Numba, which keeps their machine code on the disk, and what several kernels call: copies,
sorting, sizes of graphs, hashes of integers and bitmaps of nodes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

# Sums in any order, as in products of matrices. NaN and infinity stay what they are.
ANY_ORDER = ('reassoc', 'contract', 'nsz')

# Numba compiles a kernel again when the kernel's own file changes. Kernels are also made of what is in these files.
_SHARED = ('compiled.py', 'vectors.py', '../utils/random.py')
_DIGEST = hashlib.sha256(b''.join((Path(__file__).parent / name).read_bytes() for name in _SHARED)).hexdigest()[:12]


def compiled(function: Callable[..., Any] | None = None, *, any_order: bool = False, inline: bool = False) -> Any:
    r"""Compiles a kernel when it is first called, and keeps the machine code until the source changes. It runs without the
    interpreter's lock. If sums may be taken in any order, LLVM takes vectors. Many short calls with arrays are faster inline.
    """
    if function is None:
        return partial(compiled, any_order=any_order, inline=inline)
    # The file that Numba keeps the machine code in has this name.
    function.__qualname__ = f'{function.__qualname__}_{_DIGEST}'
    options = {'fastmath': set(ANY_ORDER) if any_order else False, 'inline': 'always' if inline else 'never'}
    return njit(nogil=True, cache=True, error_model='numpy', **options)(function)


@compiled
def copy(source, first, target, start, number):
    r"""Copies some numbers. Numba compiles assignments of slices to slices for seconds."""
    for place in range(number):
        target[start + place] = source[first + place]


@compiled
def sort(keys, items, number):
    r"""Sorts some keys, and an item of each, by heapsort. Of equal keys, the one with the smaller item comes first. Numba
    compiles its own sorting for two seconds.
    """
    start, end = number // 2, number
    while end > 1:
        if start > 0:  # the heap is not complete
            start -= 1
            key, item = keys[start], items[start]
        else:
            end -= 1
            key, item = keys[end], items[end]
            keys[end], items[end] = keys[0], items[0]
        free, child = start, 2 * start + 1
        while child < end:
            other = child + 1
            if other < end and (keys[other] > keys[child] or (keys[other] == keys[child] and items[other] > items[child])):
                child = other
            if key > keys[child] or (key == keys[child] and item >= items[child]):
                break
            keys[free], items[free] = keys[child], items[child]
            free, child = child, 2 * child + 1
        keys[free], items[free] = key, item


@compiled
def largest(first_graph, last_graph, ptr):
    r"""Returns the number of nodes of the largest of some graphs, given where the nodes of each begin."""
    most = 0
    for graph in range(first_graph, last_graph):
        most = max(most, ptr[graph + 1] - ptr[graph])
    return most


_SHIFT30, _SHIFT27, _SHIFT31 = (np.uint64(bits) for bits in (30, 27, 31))
_GOLDEN, _FIRST, _SECOND = (np.uint64(number) for number in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))


@compiled
def splitmix(x):
    r"""Hashes an unsigned integer, as :func:`pyg_topomask.utils.random.splitmix`."""
    x += _GOLDEN
    x = (x ^ (x >> _SHIFT30)) * _FIRST
    x = (x ^ (x >> _SHIFT27)) * _SECOND
    return x ^ (x >> _SHIFT31)


# Reached nodes are sorted with a bitmap if it has at most this many bits for each of them, and by comparison otherwise.
_APART = 512


@intrinsic
def lowest_bit(typing: Any, bits: Any) -> Any:
    r"""Returns the position of the lowest bit of a number that is not 0."""
    defined = ir.Constant(ir.IntType(1), 1)
    return types.int64(types.int64), lambda context, builder, _, arguments: builder.cttz(arguments[0], defined)


@compiled
def sort_reached(nodes, low, high, bits):
    r"""Sorts nodes from :obj:`low` to :obj:`high` that are marked in a bitmap, and clears their marks."""
    if high - low < _APART * len(nodes):
        listed = 0
        for word in range(low >> 6, (high >> 6) + 1):
            while bits[word] != 0:
                nodes[listed] = (word << 6) + lowest_bit(bits[word])
                bits[word] &= bits[word] - 1
                listed += 1
    else:
        sort(nodes, nodes, len(nodes))
        for node in nodes:
            bits[node >> 6] = 0
