r"""The compilation of kernels by Numba, which keeps their machine code on the disk."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from numba import njit

# Sums in any order, as in products of matrices. NaN and infinity stay what they are.
ANY_ORDER = ('reassoc', 'contract', 'nsz')

# Numba compiles a kernel again when the kernel's own file changes. Kernels are also made of what is in these files.
_SHARED = ('bitmaps.py', 'compiled.py', 'hashes.py', 'vectors.py')
_DIGEST = hashlib.sha256(b''.join(Path(__file__).with_name(name).read_bytes() for name in _SHARED)).hexdigest()[:12]


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
