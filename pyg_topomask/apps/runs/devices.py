r"""The device that a run computes on, and the processes that torchrun has started for it."""

from __future__ import annotations

import atexit
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
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
