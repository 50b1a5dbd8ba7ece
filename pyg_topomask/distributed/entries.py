r"""The entries of sparse masks at the rows of one process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from pyg_topomask.capabilities import Entries, LowRank, SparseEntries
from pyg_topomask.distributed.halo import Halo
from pyg_topomask.distributed.structures import HaloStructure
from pyg_topomask.sparse_pattern import SparsePattern
from pyg_topomask.structures import MaskStructure

Union = Callable[[Halo, Halo], Halo]


@dataclass(frozen=True)
class ShardEntries(SparseEntries):
    r"""The entries of a sparse mask at the rows of this process, on the extended nodes. The transpose has none: the entries of
    its rows are in other processes.

    Args:
        halo (Halo): The halo.
        union (callable): Returns the halo of the nodes of two, the same for the same two.
    """

    halo: Halo | None = None
    union: Union | None = None

    def transposed(self) -> None:  # type: ignore[override]
        return None

    def _with(self, make: Callable[[], Entries], halo: Halo | None = None) -> ShardEntries:
        return ShardEntries(make, self.most, None, self.halo if halo is None else halo, self.union)

    def scaled(self, scale: Tensor) -> ShardEntries:
        return self._with(super().scaled(scale).make)

    def weighted(self, factors: LowRank) -> ShardEntries:
        assert self.halo is not None
        halo = self.halo
        extended = LowRank(halo.pad(factors.left), halo.gather(factors.right.contiguous()))
        return self._with(super().weighted(extended).make)

    def intersection(self, other: SparseEntries) -> ShardEntries:
        left, right = _on_one_halo([self, other])
        return left._with(SparseEntries(left.make, left.most).intersection(SparseEntries(right.make, right.most)).make)

    def structure(self, product: MaskStructure) -> MaskStructure:
        assert self.halo is not None
        return HaloStructure(product, self.halo.number)

    @staticmethod
    def plus(terms: Sequence[SparseEntries], heads: int) -> ShardEntries:
        first, *rest = _on_one_halo(terms)
        return first._with(SparseEntries.plus([first, *rest], heads).make)

    @staticmethod
    def side_by_side(terms: Sequence[SparseEntries], heads: Sequence[int]) -> ShardEntries:
        first, *rest = _on_one_halo(terms)
        return first._with(SparseEntries.side_by_side([first, *rest], heads).make)


def _on_one_halo(terms: Sequence[SparseEntries]) -> list[ShardEntries]:
    r"""Returns the entries of several masks on the extended nodes of all."""
    shards = [term for term in terms if isinstance(term, ShardEntries)]
    halo = shards[0].halo
    for shard in shards[1:]:
        if shard.halo is not halo:
            assert halo is not None
            assert shard.halo is not None
            assert shard.union is not None
            halo = shard.union(halo, shard.halo)
    return [shard if shard.halo is halo else _moved(shard, halo) for shard in shards]


def _moved(entries: ShardEntries, halo: Halo | None) -> ShardEntries:
    assert halo is not None
    assert entries.halo is not None
    before, size = entries.halo, halo.size

    def make() -> Entries:
        given = entries()
        place = halo.extended(before.ids())
        row, col = place[given.pattern.row.long()], place[given.pattern.col.long()]
        order = torch.argsort(row * size + col)
        pattern = SparsePattern.from_sorted(row[order], col[order], size, size)
        return Entries(pattern, given.value.index_select(1, order))

    return entries._with(make, halo)
