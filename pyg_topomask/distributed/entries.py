r"""The entries of sparse masks at the rows of one process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from pyg_topomask.distributed.halo import Halo
from pyg_topomask.distributed.structures import HaloStructure
from pyg_topomask.graphs.sparse_pattern import SparsePattern
from pyg_topomask.operators.capabilities import Entries, LowRank, SparseEntries
from pyg_topomask.operators.structures import MaskStructure


@dataclass(frozen=True, kw_only=True)
class ShardEntries(SparseEntries):
    r"""The entries of a sparse mask in the rows of this process, on the extended nodes. The transpose has no entries, because
    its rows are in other processes.

    Args:
        halo (Halo): The halo.
        union (callable): Returns the halo of the nodes of two, the same for the same two.
    """

    halo: Halo
    union: Callable[[Halo, Halo], Halo]

    def _with(self, entries: SparseEntries, halo: Halo | None = None) -> ShardEntries:
        r"""Returns other entries, on the nodes of this halo or of another."""
        return ShardEntries(entries.make, entries.max_nnz, halo=halo or self.halo, union=self.union)

    def structure(self, product: MaskStructure) -> MaskStructure:
        return HaloStructure(product, self.halo.number)

    def transposed(self) -> None:  # type: ignore[override]
        return None

    def scaled(self, scale: Tensor) -> ShardEntries:
        return self._with(super().scaled(scale))

    def hadamard(self, factors: LowRank) -> ShardEntries:
        def make() -> Entries:
            extended = LowRank(self.halo.pad(factors.left), self.halo.gather(factors.right))
            return SparseEntries.hadamard(self, extended)()

        return self._with(SparseEntries(make, self.max_nnz))

    def intersection(self, other: SparseEntries) -> ShardEntries:
        first, second = _on_one_halo([self, other])
        return first._with(SparseEntries.intersection(first, second))

    @staticmethod
    def plus(terms: Sequence[SparseEntries], heads: int) -> ShardEntries:
        terms = _on_one_halo(terms)
        return terms[0]._with(SparseEntries.plus(terms, heads))

    @staticmethod
    def side_by_side(terms: Sequence[SparseEntries], heads: Sequence[int]) -> ShardEntries:
        terms = _on_one_halo(terms)
        return terms[0]._with(SparseEntries.side_by_side(terms, heads))


def _on_one_halo(terms: Sequence[SparseEntries]) -> list[ShardEntries]:
    r"""Returns the entries of several masks on the extended nodes of all."""
    shards = [term for term in terms if isinstance(term, ShardEntries)]
    first, halo = shards[0], shards[0].halo
    for shard in shards[1:]:
        halo = halo if shard.halo is halo else first.union(halo, shard.halo)
    return [shard if shard.halo is halo else shard._with(_moved(shard, halo), halo) for shard in shards]


def _moved(entries: ShardEntries, halo: Halo) -> SparseEntries:
    r"""Returns the same entries on the extended nodes of a larger halo."""
    before, size = entries.halo, halo.size

    def make() -> Entries:
        given = entries()
        place = halo.extended(before.ids())
        row, col = place[given.pattern.row.long()], place[given.pattern.col.long()]
        order = torch.argsort(row * size + col)
        pattern = SparsePattern.from_sorted(row[order], col[order], size, size)
        return Entries(pattern, given.value.index_select(1, order))

    return SparseEntries(make, entries.max_nnz)
