r"""The device that a run computes on, its memory, and the processes that torchrun has started for it."""

from __future__ import annotations

import atexit
import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from pyg_topomask.errors import ArgumentError
from pyg_topomask.utils.checks import check_choice

Value = TypeVar('Value')


def find_device(option: str, name: str) -> torch.device:
    r"""Returns the device that an option names: :obj:`"auto"`, :obj:`"cpu"`, :obj:`"cuda"`, or :obj:`"gpu"`, as Lightning calls
    it. Raises a :class:`ValueError` that names the option if there is no such device.
    """
    check_choice(('auto', 'cpu', 'cuda', 'gpu'), **{option: name})
    available = torch.cuda.is_available()
    if name in ('cuda', 'gpu') and not available:
        raise ArgumentError(option, f'{name!r}, and there is no CUDA device', 'auto, cpu')
    return torch.device('cuda' if name != 'cpu' and available else 'cpu')


def connect() -> None:
    r"""Joins the process group, in a process that torchrun has started."""
    if dist.is_available() and dist.is_torchelastic_launched() and not dist.is_initialized():
        # The others wait while the first process downloads and transforms a data set.
        dist.init_process_group(timeout=timedelta(days=1))
        atexit.register(dist.destroy_process_group)


def num_processes() -> int:
    r"""Returns the number of processes that train together."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def rank() -> int:
    r"""Returns the number of this process. Process 0 prints and writes files."""
    return dist.get_rank() if dist.is_available() and dist.is_initialized() else 0


def gather(value: Value) -> list[Value]:
    r"""Returns the values of all processes, which pickle must support, in their order. All processes call this."""
    if num_processes() == 1:
        return [value]
    values: list[Value | None] = [None] * num_processes()
    dist.all_gather_object(values, value)
    return values  # type: ignore[return-value]


def total(value: Tensor) -> Tensor:
    r"""Returns the sum of the tensors of all processes. All processes call this."""
    if num_processes() == 1:
        return value
    value = value.clone()
    dist.all_reduce(value)
    return value


@contextmanager
def main_first() -> Iterator[None]:
    r"""A block that process 0 runs before the other processes, which then find the files that it has written."""
    if rank() > 0:
        gather(None)
    try:
        yield
    finally:
        if rank() == 0:
            gather(None)


class HostCopy:
    r"""Copies of tensors in the memory of the host. A CUDA device makes them while the host goes on, until it reads them."""

    def __init__(self, *tensors: Tensor) -> None:
        self._copies = [tensor.detach().to('cpu', non_blocking=tensor.is_cuda) for tensor in tensors]
        self._made = torch.cuda.Event() if any(tensor.is_cuda for tensor in tensors) else None
        if self._made is not None:
            self._made.record()

    def read(self) -> list[Tensor]:
        r"""Returns the copies. Waits for what the device computed before them, not for what came after."""
        if self._made is not None:
            self._made.synchronize()
        return self._copies


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
