r"""Threads of kernels, and the arrays that kernels read and write."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

T = TypeVar('T')
Array = NDArray[Any]

# Multiplications that a thread does alone, and the chunks for each thread: one that starts late takes fewer.
ALONE, _SHARES = 2**22, 4


def in_threads(function: Callable[..., T], *arguments: Iterable[object]) -> list[T]:
    r"""Returns the results of :func:`map` for a function that releases the interpreter's lock, in as many threads as torch
    uses. The calling thread works too, since two new threads may share a core. Threads end with the call, because they would
    not survive a fork.
    """
    results: dict[int, T] = {}
    tasks = list(enumerate(zip(*arguments, strict=True)))
    helpers = min(torch.get_num_threads(), len(tasks)) - 1
    if helpers < 1:
        return [function(*arguments) for _, arguments in tasks]
    left = iter(tasks)

    def work() -> None:
        for place, arguments in left:
            results[place] = function(*arguments)

    with ThreadPoolExecutor(helpers) as pool:
        futures = [pool.submit(work) for _ in range(helpers)]
        work()
    for future in futures:
        future.result()
    return [results[place] for place in range(len(tasks))]


def array_of(tensor: Tensor) -> Array:
    r"""Returns the numbers of a tensor on the CPU one after the other, which machine code reads and writes."""
    return tensor.detach().contiguous().view(-1).numpy()


def arrays_of(tensors: Iterable[Tensor]) -> tuple[Array, ...]:
    r"""Returns :func:`array_of` each tensor."""
    return tuple(map(array_of, tensors))


def pairs_before(ptr: Tensor) -> Array:
    r"""Returns the number of pairs of nodes of the same graph before each graph, and in all, given where its nodes begin."""
    return array_of(torch.nn.functional.pad(ptr.diff().square().cumsum(0), (1, 0)))


def chunk_bounds(ptr: Array, work: int, most: int | None = None) -> list[int]:
    r"""Returns the rows between which to divide what threads do, in chunks of about as many entries: one chunk if there is
    little to do. :obj:`work` counts multiplications for each entry. There are :obj:`most` chunks, by default a few for each
    thread.
    """
    last, threads = len(ptr) - 1, torch.get_num_threads()
    first, stop = int(ptr[0]), int(ptr[last])
    chunks = min(most or _SHARES * threads, (stop - first) * work // ALONE) if threads > 1 else 1
    if chunks < 2:
        return [0, last]
    return [0, *np.searchsorted(ptr[:last], np.linspace(first, stop, chunks + 1)[1:-1]).tolist(), last]


def in_chunks(function: Callable[[int, int], None], ptr: Array, work: int) -> None:
    r"""Calls a function with the first row and the one after the last of chunks of about as many entries, in threads if there
    is much to do for each, see :func:`chunk_bounds`. The function runs without the interpreter's lock.
    """
    bounds = chunk_bounds(ptr, work)
    in_threads(function, bounds[:-1], bounds[1:])
