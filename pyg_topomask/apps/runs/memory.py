r"""The memory that a run takes at its peak."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import torch

#: Parameters of glibc's :obj:`mallopt`: the size from which a block is one of the system, and what the heap keeps at its end.
_M_MMAP_THRESHOLD, _M_TRIM_THRESHOLD = -3, -1
#: The largest size up to which glibc itself raises the former. Larger blocks cost time, smaller ones leave gaps in the heap.
_LARGEST = 2**25


@contextmanager
def returning_memory() -> Iterator[None]:
    r"""A block whose freed memory goes back to the system, if the allocator is that of glibc and the user has not set it.
    Loading makes many tensors and frees most of them. In the heap, they would leave gaps among those that stay, from one run to
    the next.
    """
    library = ctypes.CDLL(None) if os.name == 'posix' else None
    if library is None or not hasattr(library, 'mallopt') or 'GLIBC_TUNABLES' in os.environ:
        yield
        return
    library.mallopt(_M_MMAP_THRESHOLD, 2**17)
    try:
        yield
    finally:
        library.malloc_trim(0)
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
