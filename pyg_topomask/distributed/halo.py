r"""The nodes of other processes that rows of a sparse matrix refer to, the exchange of their rows, and entries at them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, count
from typing import Any
from weakref import WeakValueDictionary

import torch
from torch import Tensor

from pyg_topomask.distributed.communication import Processes, linear
from pyg_topomask.distributed.storage import blocks
from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.edges import row_and_col
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.graphs.sparse_pattern import SparsePattern
from pyg_topomask.operators.forms import Entries, SparseEntries

_NUMBERS = count()
#: Objects by their number. Operators hold the number, because their settings are plain values, see operators/description.py.
BY_NUMBER: WeakValueDictionary[int, Any] = WeakValueDictionary()


class Numbered:
    r"""An object that an operator refers to by its number."""

    def __init__(self) -> None:
        self.number = next(_NUMBERS)
        BY_NUMBER[self.number] = self


class Halo(Numbered):
    r"""The nodes of other processes that the columns of a sparse matrix refer to, by ascending ids. The *extended* nodes are
    the nodes of this process, followed by those of the halo. :obj:`offsets` are the first node of each process, and :math:`N`.
    The constructor lists what to send and what to receive. All processes call it.
    """

    def __init__(self, group: Processes, offsets: Tensor, nodes: Tensor) -> None:
        super().__init__()
        self.group = group
        self.nodes = nodes
        self.first, after = (int(offset) for offset in offsets[group.rank : group.rank + 2])
        self.num_nodes = after - self.first
        owner = torch.searchsorted(offsets, nodes, right=True) - 1
        self.received: list[int] = torch.bincount(owner, minlength=group.size).tolist()
        self.sent = [counts[group.rank] for counts in group.gather(self.received)]
        #: The nodes of this process in the halos of the others, by process.
        self.send = group.exchange(nodes, self.received, self.sent) - self.first

    @classmethod
    def of_columns(cls, group: Processes, offsets: Tensor, col: Tensor) -> Halo:
        r"""Creates the halo of the nodes that some columns refer to. All processes call this."""
        first, after = (int(offset) for offset in offsets[group.rank : group.rank + 2])
        nodes, new, count = col[:0], [], 0
        for block in blocks(col.numel()):
            remote = (col[block] < first) | (col[block] >= after)
            new.append(col[block][remote].unique())
            count += new[-1].numel()
            if count > nodes.numel():  # a large halo is not sorted again for each block
                nodes, new, count = torch.cat([nodes, *new]).unique(), [], 0
        return cls(group, offsets, torch.cat([nodes, *new]).unique())

    @property
    def size(self) -> int:
        r"""The number of extended nodes."""
        return self.num_nodes + self.nodes.numel()

    def extended(self, nodes: Tensor) -> Tensor:
        r"""Returns the extended nodes with some ids. Each is a node of this process or of the halo."""
        local = nodes - self.first
        inside = (local >= 0) & (local < self.num_nodes)
        return torch.where(inside, local, self.num_nodes + torch.searchsorted(self.nodes, nodes))

    def ids(self) -> Tensor:
        r"""Returns the id of each extended node."""
        return torch.cat([torch.arange(self.first, self.first + self.num_nodes, device=self.nodes.device), self.nodes])

    def gather(self, x: Tensor) -> Tensor:
        r"""Returns the rows of the extended nodes, :obj:`[n + h, ...]`, given the rows of this process. It sends the rows of
        :attr:`send`, and in the backward pass the gradients of the rows of :attr:`nodes`. Differentiable.
        """
        return self.gather_all(x)[0]

    def gather_all(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        r"""Returns the rows of the extended nodes of several tensors of one data type, in one message. See :meth:`gather`."""
        return linear(self._gather, self._scatter, *tensors)

    def scatter(self, x: Tensor) -> Tensor:
        r"""Adds the rows of each node in all processes, given the rows of the extended nodes, :obj:`[n + h, ...]`. Returns the
        sums of the nodes of this process, :obj:`[n, ...]`. This is the transpose of :meth:`gather`. Differentiable.
        """
        return linear(self._scatter, self._gather, x)[0]

    def _gather(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        received = _exchange(self.group, [x.index_select(0, self.send) for x in tensors], self.sent, self.received)
        return tuple(torch.cat(both) for both in zip(tensors, received, strict=True))

    def _scatter(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        received = _exchange(self.group, [x[self.num_nodes :] for x in tensors], self.received, self.sent)
        both = zip(tensors, received, strict=True)
        return tuple(x[: self.num_nodes].index_add(0, self.send, rows) for x, rows in both)

    def pad(self, x: Tensor) -> Tensor:
        r"""Appends a row of zeros for each node of the halo. Nothing is sent."""
        return torch.cat([x, x.new_zeros(self.nodes.numel(), *x.shape[1:])])

    def rows(self, degree: Tensor, entries: Sequence[Tensor]) -> tuple[Tensor, list[Tensor]]:
        r"""Returns the rows of a sparse matrix at the nodes of the halo: the number of entries of each row, and the entries,
        given those of the rows of this process. All processes call this.
        """
        count = degree[self.send]
        received = self.group.exchange(count, self.sent, self.received)
        first = (degree.cumsum(0) - degree)[self.send] - (count.cumsum(0) - count)
        entry = torch.arange(int(count.sum()), device=degree.device) + first.repeat_interleave(count)
        sizes = _sums(count, self.sent), _sums(received, self.received)
        return received, [self.group.exchange(each[entry], *sizes) for each in entries]


def _sums(values: Tensor, sizes: list[int]) -> list[int]:
    r"""Returns the sums of consecutive groups of values."""
    ends = torch.nn.functional.pad(values.cumsum(0), (1, 0))[torch.tensor([0, *accumulate(sizes)])]
    return ends.diff().tolist()


def _exchange(group: Processes, tensors: Sequence[Tensor], sent: list[int], received: list[int]) -> list[Tensor]:
    r"""Exchanges the rows of several tensors in one message."""
    if len(tensors) == 1:
        return [group.exchange(tensors[0], sent, received)]
    flat = [x.flatten(1) for x in tensors]
    rows = group.exchange(torch.cat(flat, dim=1), sent, received).split([x.size(1) for x in flat], dim=1)
    return [part.reshape(-1, *x.shape[1:]) for part, x in zip(rows, tensors, strict=True)]


class ExtendedGraph(Graph):
    r"""The rows of the adjacency matrix at the nodes of this process, as a graph of the extended nodes. Nodes of the halo
    attend to nothing.
    """

    def __init__(self, halo: Halo, edge_index: Tensor, weight: Tensor | None) -> None:
        super().__init__(edge_index, halo.size, weight)
        self.halo = halo

    @classmethod
    def of_ids(cls, group: Processes, offsets: Tensor, edge_index: Tensor, weight: Tensor | None, flow: str) -> ExtendedGraph:
        r"""Creates the halo of the columns, and replaces their ids by extended nodes in place. Rows count from the first node
        of this process. All processes call this.
        """
        _, col = row_and_col(edge_index, flow)
        halo = Halo.of_columns(group, offsets, col)
        for block in blocks(col.numel()):
            col[block] = halo.extended(col[block])
        return cls(halo, edge_index, weight)

    def _degree(self, end: Tensor, weight: Tensor) -> Tensor:
        return self.halo.gather(self.halo.scatter(super()._degree(end, weight)))


@dataclass(frozen=True, kw_only=True)
class ShardEntries(SparseEntries):
    r"""The entries of a sparse mask in the rows of this process, on the extended nodes of a halo. :obj:`union` returns the halo
    of the nodes of two, the same for the same two. The transpose has no entries, because its rows are in other processes.
    """

    halo: Halo
    union: Callable[[Halo, Halo], Halo]

    def transposed(self) -> None:
        return None

    def weighted(self, left: Tensor, right: Tensor) -> ShardEntries:
        return self.with_values(lambda entries: self._weigh(entries, left, right))

    def _weigh(self, entries: Entries, left: Tensor, right: Tensor) -> Entries:
        given = SparseEntries(lambda: entries)
        return given.weighted(self.halo.pad(left), self.halo.gather(right))()

    def aligned(self, terms: Sequence[SparseEntries]) -> list[SparseEntries]:
        shards = [term for term in terms if isinstance(term, ShardEntries)]
        if len(shards) < len(terms):
            raise ArgumentError('mask', 'entries of a whole graph', 'entries of a sharded graph')
        halo = shards[0].halo
        for shard in shards[1:]:
            halo = halo if shard.halo is halo else self.union(halo, shard.halo)
        return [shard.on(halo) for shard in shards]

    def on(self, halo: Halo) -> ShardEntries:
        r"""Returns the same entries on the extended nodes of a larger halo."""
        before, size = self.halo, halo.size
        if halo is before:
            return self

        def change(given: Entries) -> Entries:
            place = halo.extended(before.ids())
            row, col = place[given.pattern.row.long()], place[given.pattern.col.long()]
            order = torch.argsort(row * size + col)
            pattern = SparsePattern.from_sorted(row[order], col[order], size, size)
            return Entries(pattern, given.value.index_select(1, order))

        return replace(self.with_values(change), halo=halo)
