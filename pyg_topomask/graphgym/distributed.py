r"""The processes of a run that torchrun has started: which of them this is, and what they tell each other."""

from __future__ import annotations

import atexit
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TypeVar

import torch.distributed as dist

__all__ = ['connect', 'gather', 'main_first', 'num_processes', 'rank']

Value = TypeVar('Value')


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
    r"""Returns the number of this process; process 0 is the one that prints and writes files."""
    return dist.get_rank() if dist.is_available() and dist.is_initialized() else 0


def gather(value: Value) -> list[Value]:
    r"""Returns the values of all processes, in their order, once all of them have called this.

    Args:
        value (Any): The value of this process, which must be picklable.

    Example:
        >>> gather(3)
        [3]
    """
    if num_processes() == 1:
        return [value]
    values: list[Value | None] = [None] * num_processes()
    dist.all_gather_object(values, value)
    return values  # type: ignore[return-value]


@contextmanager
def main_first() -> Iterator[None]:
    r"""A block that process 0 runs before the others do, so that these find the files it has written."""
    if rank() > 0:
        gather(None)
    try:
        yield
    finally:
        if rank() == 0:
            gather(None)
