r"""The entries of sparse masks at the rows of one process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from pyg_topomask.distributed.halo import Halo
from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.sparse_pattern import SparsePattern
from pyg_topomask.operators.forms import Entries, SparseEntries


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
        return [shard if shard.halo is halo else shard._moved(halo) for shard in shards]

    def _moved(self, halo: Halo) -> ShardEntries:
        r"""Returns the same entries on the extended nodes of a larger halo."""
        before, size = self.halo, halo.size

        def change(given: Entries) -> Entries:
            place = halo.extended(before.ids())
            row, col = place[given.pattern.row.long()], place[given.pattern.col.long()]
            order = torch.argsort(row * size + col)
            pattern = SparsePattern.from_sorted(row[order], col[order], size, size)
            return Entries(pattern, given.value.index_select(1, order))

        return replace(self.with_values(change), halo=halo)
