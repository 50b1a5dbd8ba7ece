r"""Masks on nodes with other numbers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from pyg_topomask.graphs.sparse_pattern import SparsePattern
from pyg_topomask.operators.base import MaskOperator
from pyg_topomask.operators.entries import Entries, SparseEntries
from pyg_topomask.utils.functorch import LoopedFunction


@dataclass(eq=False, repr=False)
class Renumbered(MaskOperator):
    r"""A mask of one graph whose nodes have other numbers inside, by which neighbors are near in memory. Attention permutes
    queries, keys and values once, and its output. :obj:`order` is the node in each place inside, and :obj:`place` that of each
    node.
    """

    inner: MaskOperator
    order: Tensor
    place: Tensor

    def __post_init__(self) -> None:
        self.segments, self.heads, self.cost = self.inner.segments, self.inner.heads, self.inner.cost

    def inward(self, x: Tensor) -> Tensor:
        r"""Returns the rows of :obj:`x` in the order inside."""
        return _Permuted.apply(x, self.order, self.place)

    def outward(self, x: Tensor) -> Tensor:
        r"""Returns rows that are in the order inside in that of the nodes."""
        return _Permuted.apply(x, self.place, self.order)

    def apply(self, x: Tensor) -> Tensor:
        return self.outward(self.inner.apply(self.inward(x)))

    def magnitude(self, x: Tensor) -> Tensor:
        return self.outward(self.inner.magnitude(self.inward(x)))

    @property
    def T(self) -> MaskOperator:
        return replace(self, inner=self.inner.T)

    def scaled(self, scale: Tensor) -> MaskOperator:
        return replace(self, inner=self.inner.scaled(scale))

    @property
    def entries(self) -> SparseEntries | None:
        entries = self.inner.entries
        return None if entries is None else entries.with_values(self._outside)

    def _outside(self, entries: Entries) -> Entries:
        row, col = (self.order[index] for index in (entries.pattern.row, entries.pattern.col))
        pattern, slot = SparsePattern.from_pairs(row, col, entries.pattern.num_rows, entries.pattern.num_cols)
        return Entries(pattern, torch.empty_like(entries.value).index_copy(1, slot, entries.value))

    def diagonal(self) -> Tensor | None:
        diagonal = self.inner.diagonal()
        return None if diagonal is None else self.outward(diagonal)

    def root(self) -> MaskOperator | None:
        root = self.inner.root()
        return None if root is None else replace(self, inner=root)


class _Permuted(LoopedFunction):
    r"""Permutes rows. The gradient takes the inverse permutation, which is faster than adding to rows."""

    @staticmethod
    def forward(x: Tensor, order: Tensor, place: Tensor) -> Tensor:
        return x.index_select(0, order)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        _, *permutations = inputs
        ctx.save_for_backward(*permutations)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        order, place = ctx.saved_tensors
        return _Permuted.apply(grads[0], place, order), None, None
