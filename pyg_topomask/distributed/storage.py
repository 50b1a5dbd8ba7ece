r"""Where a process keeps its edges: in memory, or in memory-mapped files, whose pages the system can evict."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from torch import Tensor

from pyg_topomask.distributed.communication import Processes

#: The number of edges in a block.
BLOCK = 2**16


def count_blocks(size: int) -> int:
    r"""Returns the number of blocks of so many edges."""
    return -(-size // BLOCK)


def blocks(size: int) -> Iterator[slice]:
    r"""Returns the blocks of so many edges."""
    return (slice(begin, min(begin + BLOCK, size)) for begin in range(0, size, BLOCK))


def blocks_of_rows(degree: Tensor) -> Iterator[tuple[slice, slice]]:
    r"""Returns the rows of a matrix and their entries, some rows at a time, given the number of entries of each row."""
    ends, first, begin = degree.cumsum(0), 0, 0
    while first < ends.numel():
        after = max(first + 1, int(torch.searchsorted(ends, begin + BLOCK, right=True)))
        end = int(ends[after - 1])
        yield slice(first, after), slice(begin, end)
        first, begin = after, end


class Storage:
    r"""Makes large tensors in memory, or in files of a folder that all processes see, which are deleted with the tensors."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder

    def empty(self, shape: Sequence[int], dtype: torch.dtype, device: torch.device) -> Tensor:
        r"""Returns a tensor of this process, whose numbers are still to be written."""
        if self.folder is None or 0 in shape:
            return torch.empty(shape, dtype=dtype, device=device)
        self.folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=self.folder) as file:
            return _mapped(Path(file.name), shape, dtype)

    def keep(self, tensors: list[Tensor]) -> list[Tensor]:
        r"""Returns the same numbers, where this stores them."""
        return tensors if self.folder is None else [self.empty(x.shape, x.dtype, x.device).copy_(x) for x in tensors]

    def table(self, name: str, shape: Sequence[int], dtype: torch.dtype, group: Processes, device: torch.device) -> Tensor:
        r"""Returns a tensor for the rows of all processes. Each process writes its rows and calls :meth:`complete`. Then each
        can read all rows. Without a folder, each process has a copy. With one, all map one file. All processes call this.
        """
        if self.folder is None or group.size == 1 or 0 in shape:
            return self.empty(shape, dtype, device)
        folder = self.folder

        def create() -> str:
            if group.rank > 0:
                return ''
            folder.mkdir(parents=True, exist_ok=True)
            # A new name: the folder may have files of that name, or another run may use it.
            with tempfile.NamedTemporaryFile(dir=folder, prefix=f'{name}-', suffix='.bin', delete=False) as file:
                _mapped(Path(file.name), shape, dtype)
                return Path(file.name).name

        path = folder / group.gather(group.together(create))[0]
        mapped = group.together(lambda: _mapped(path, shape, dtype))
        group.together(lambda: path.unlink() if group.rank == 0 else None)
        return mapped

    def complete(self, table: Tensor, counts: Sequence[int], group: Processes) -> None:
        r"""Gives the rows of a :meth:`table` that each process has written to all. All processes call this."""
        if self.folder is None:
            group.fill(table, counts)
        else:
            group.gather(None)


def _mapped(path: Path, shape: Sequence[int], dtype: torch.dtype) -> Tensor:
    return torch.from_file(str(path), shared=True, size=math.prod(shape), dtype=dtype).view(*shape)


def sort_by_row(
    received: list[list[Tensor | None]], num_rows: int, storage: Storage
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    r"""Sorts edges by their targets, those of one target as given. They come in blocks of targets, sources, weights and
    numbers, and the list is empty afterwards. Returns :obj:`edge_index`, weights and numbers, which lie in the storage.
    """
    targets = [block[0] for block in received if block[0] is not None]
    place = torch.stack([torch.bincount(target, minlength=num_rows) for target in targets]).sum(0)
    place, size = place.cumsum(0) - place, sum(target.numel() for target in targets)
    edge_index = storage.empty((2, size), torch.long, place.device)
    weight, ids = (None if each is None else storage.empty((size,), each.dtype, place.device) for each in received[0][2:])
    del targets
    while received:
        target, *others = received.pop(0)
        assert target is not None
        order = torch.argsort(target, stable=True)
        target = target[order]
        count = torch.bincount(target, minlength=num_rows)
        position = (place - count.cumsum(0) + count)[target] + torch.arange(target.numel(), device=target.device)
        edge_index[1, position] = target
        for out, values in zip((edge_index[0], weight, ids), others, strict=True):
            if out is not None and values is not None:
                out[position] = values[order]
        place += count
    return edge_index, weight, ids
