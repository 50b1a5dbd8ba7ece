r"""Where a process keeps its edges: in memory, or in files that it maps, whose pages the system drops where memory is short."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from torch import Tensor

from pyg_topomask.distributed.communication import Processes

#: Edges that are handled at a time.
BLOCK = 2**19


def blocks(size: int) -> Iterator[slice]:
    r"""Returns so many edges, some at a time."""
    return (slice(begin, min(begin + BLOCK, size)) for begin in range(0, size, BLOCK))


def blocks_of_rows(degree: Tensor) -> Iterator[tuple[slice, slice]]:
    r"""Returns the rows of a matrix and their entries, some rows at a time.

    Args:
        degree (torch.Tensor): The number of entries of each row, :obj:`[n]`.
    """
    ends, first, begin = degree.cumsum(0), 0, 0
    while first < ends.numel():
        after = max(first + 1, int(torch.searchsorted(ends, begin + BLOCK, right=True)))
        end = int(ends[after - 1])
        yield slice(first, after), slice(begin, end)
        first, begin = after, end


class Storage:
    r"""Makes large tensors in memory, or in files of a folder, which end with the tensors.

    Args:
        folder (Path, optional): The folder, on a disk that all processes see; :obj:`None` stands for memory.
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder

    def empty(self, shape: Sequence[int], dtype: torch.dtype, device: torch.device) -> Tensor:
        r"""Returns a tensor of this process, whose numbers are still to be written."""
        if self.folder is None or 0 in shape:
            return torch.empty(shape, dtype=dtype, device=device)
        self.folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=self.folder) as file:
            return _mapped(Path(file.name), shape, dtype)

    def keep(self, x: Tensor) -> Tensor:
        r"""Returns the same numbers, where this stores them."""
        return x if self.folder is None else self.empty(x.shape, x.dtype, x.device).copy_(x)

    def table(self, name: str, shape: Sequence[int], dtype: torch.dtype, group: Processes, device: torch.device) -> Tensor:
        r"""Returns a tensor of all processes, of which each writes its rows, and which :meth:`complete` gives to all: a copy in
        the memory of each, or one file. All processes call this.
        """
        if self.folder is None or group.size == 1 or 0 in shape:
            return self.empty(shape, dtype, device)
        folder = self.folder
        path = folder / f'{name}.bin'

        def create() -> None:
            if group.rank == 0:
                folder.mkdir(parents=True, exist_ok=True)
                _mapped(path, shape, dtype)

        group.together(create)
        mapped = group.together(lambda: _mapped(path, shape, dtype))
        group.together(lambda: path.unlink() if group.rank == 0 else None)
        return mapped

    def complete(self, table: Tensor, counts: Sequence[int], group: Processes) -> None:
        r"""Gives the rows that each process has written to all. All processes call this.

        Args:
            table (torch.Tensor): A tensor of :meth:`table`.
            counts (sequence of int): The number of rows of each process.
            group (Processes): The processes.
        """
        if self.folder is None:
            group.fill(table, counts)
        else:
            group.gather(None)


def _mapped(path: Path, shape: Sequence[int], dtype: torch.dtype) -> Tensor:
    return torch.from_file(str(path), shared=True, size=math.prod(shape), dtype=dtype).view(*shape)


def sort_by_row(received: list[list[Tensor]], outs: Sequence[Tensor], num_rows: int) -> None:
    r"""Writes edges in the order of their rows, those of one row as given. The list is empty afterwards.

    Args:
        received (list): The edges in blocks: rows, and other numbers of each edge.
        outs (sequence of torch.Tensor): Where these are written.
        num_rows (int): The number of rows.
    """
    degree = sum((torch.bincount(block[0], minlength=num_rows) for block in received), torch.tensor(0))
    place = degree.cumsum(0) - degree
    while received:
        row, *others = received.pop(0)
        order = torch.argsort(row, stable=True)
        row = row[order]
        count = torch.bincount(row, minlength=num_rows)
        first = count.cumsum(0) - count
        position = (place - first)[row] + torch.arange(row.numel(), device=row.device)
        for out, tensor in zip(outs, (row, *(other[order] for other in others)), strict=True):
            out[position] = tensor
        place += count
