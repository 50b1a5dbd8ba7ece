r"""Masks in several forms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from pyg_topomask.operators.base import LowRank, MaskOperator
from pyg_topomask.operators.entries import SparseEntries
from pyg_topomask.operators.prepared_blocks import PreparedBlocks
from pyg_topomask.operators.slots import Slots


@dataclass(eq=False, repr=False)
class Alternatives(MaskOperator):
    r"""One mask in several forms. Attention takes the cheapest, and no other is formed. Custom operators of torch build the
    product alone.

    Args:
        product (MaskOperator or callable): An operator, or a function that returns it.
        entries (SparseEntries, optional): The entries. (default: :obj:`None`)
        blocks (PreparedBlocks, optional): The blocks of small graphs. (default: :obj:`None`)
    """

    product: MaskOperator | Callable[[], MaskOperator]
    entries: SparseEntries | None = None
    blocks: PreparedBlocks | None = None

    def __post_init__(self) -> None:
        if isinstance(self.product, MaskOperator) and self.segments is None:
            self.segments, self.heads, self.cost = self.product.segments, self.product.heads, self.product.cost

    def formed(self) -> MaskOperator:
        if not isinstance(self.product, MaskOperator):
            self.product = self.product()
        return self.product.formed()

    def apply(self, x: Tensor) -> Tensor:
        return self.formed().apply(x)

    def rows(self, slots: Slots, dtype: torch.dtype) -> Tensor:
        return self.formed().rows(slots, dtype)

    def magnitude(self, x: Tensor) -> Tensor:
        return self.formed().magnitude(x)

    @property
    def T(self) -> MaskOperator:
        entries = None if self.entries is None else self.entries.transposed()
        product = self.product.T if isinstance(self.product, MaskOperator) else lambda: self.formed().T
        return replace(self, product=product, entries=entries, blocks=None)

    @property
    def is_low_rank(self) -> bool:
        return isinstance(self.product, MaskOperator) and self.product.is_low_rank

    @property
    def low_rank(self) -> LowRank | None:
        return self.product.low_rank if isinstance(self.product, MaskOperator) else None

    def diagonal(self) -> Tensor | None:
        return self.formed().diagonal()

    def root(self) -> MaskOperator | None:
        return self.formed().root()

    def has_machine_code(self, learnable: Sequence[int] = ()) -> bool:
        return isinstance(self.product, MaskOperator) and self.product.has_machine_code(learnable)

    def __repr__(self) -> str:
        return repr(self.product) if isinstance(self.product, MaskOperator) else super().__repr__()
