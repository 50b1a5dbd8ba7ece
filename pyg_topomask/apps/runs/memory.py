r"""The memory that a run takes at its peak."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import torch

#: Parameters of glibc's :obj:`mallopt`: what the heap keeps at its end, the size from which a block is one of the system, and
#: how many such blocks there may be.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_MMAP_MAX = -1, -3, -4
#: The largest size up to which glibc itself raises the second one, and its value of the third one. Larger blocks cost time,
#: smaller ones leave gaps in the heap.
_LARGEST, _BLOCKS = 2**25, 2**16


def _allocator() -> ctypes.CDLL | None:
    r"""Returns the library of the allocator, if it is that of glibc and the user has not set it."""
    library = ctypes.CDLL(None) if os.name == 'posix' else None
    return None if library is None or not hasattr(library, 'mallopt') or 'GLIBC_TUNABLES' in os.environ else library


@contextmanager
def returning_memory() -> Iterator[None]:
    r"""A block whose freed memory goes back to the system. Loading makes many tensors and frees most of them. In the heap, they
    would leave gaps among those that stay, from one run to the next.
    """
    library = _allocator()
    if library is not None:
        library.mallopt(_M_MMAP_THRESHOLD, 2**17)
    try:
        yield
    finally:
        if library is not None:
            _restore(library)


@contextmanager
def keeping_memory() -> Iterator[None]:
    r"""A block whose freed memory stays in the heap until the block ends. Steps on a large graph make the same tensors again
    and again. The system would clear the memory of each of them, which takes as long as the arithmetic.
    """
    library = _allocator()
    if library is not None:
        library.mallopt(_M_MMAP_MAX, 0)
        library.mallopt(_M_TRIM_THRESHOLD, -1)
    try:
        yield
    finally:
        if library is not None:
            _restore(library)


def _restore(library: ctypes.CDLL) -> None:
    library.malloc_trim(0)
    library.mallopt(_M_MMAP_MAX, _BLOCKS)
    library.mallopt(_M_MMAP_THRESHOLD, _LARGEST)
    library.mallopt(_M_TRIM_THRESHOLD, 2 * _LARGEST)


class PeakMemory:
    r"""Measures from its creation on how much memory is taken at the peak beyond what was held before: on the CUDA device, if
    there is one, and otherwise in this process (Linux).
    """

    def __init__(self) -> None:
        self._before: int | None = None
        if torch.cuda.is_available():
            torch.cuda.reset_peak_memory_stats()
            self._before = torch.cuda.memory_allocated()
            return
        with suppress(OSError, AttributeError):  # on other systems
            ctypes.CDLL(None).malloc_trim(0)  # freed memory would still count as resident
            Path('/proc/self/clear_refs').write_text('5')
            self._before = _status('VmRSS')

    def bytes(self) -> int | None:
        r"""Returns the bytes at the peak so far, or :obj:`None` where they are not known."""
        if self._before is None:
            return None
        peak = torch.cuda.max_memory_allocated() if torch.cuda.is_available() else _status('VmHWM')
        return max(0, peak - self._before)


def _status(key: str) -> int:
    lines = Path('/proc/self/status').read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f'{key}:'))
