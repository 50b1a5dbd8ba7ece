r"""The memory that a run takes at its peak."""

from __future__ import annotations

import ctypes
from contextlib import suppress
from pathlib import Path

import torch


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
