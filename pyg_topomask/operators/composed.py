r"""Operators of other operators, beside their sums and entrywise products: forms of one mask, matrix products, and means."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from pyg_topomask.operators.base import Composite, LowRank, MaskOperator, Multiply, Size, check_graphs, common_heads
from pyg_topomask.operators.description import describe
from pyg_topomask.operators.forms import PreparedBlocks, Slots, SparseEntries
from pyg_topomask.utils.precision import widened


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

    def has_machine_code(self) -> bool:
        return isinstance(self.product, MaskOperator) and self.product.has_machine_code()

    def __repr__(self) -> str:
        return repr(self.product) if isinstance(self.product, MaskOperator) else super().__repr__()


@dataclass(eq=False, repr=False)
class Chain(Composite):
    r"""The matrix product of masks, :math:`\mathbf{M}_1 \mathbf{M}_2 \cdots`."""

    links: tuple[MaskOperator, ...]

    def __post_init__(self) -> None:
        self.segments, self.heads = check_graphs(self.links), common_heads(self.links)
        self.cost = sum(link.cost for link in self.links)

    def combined(self, multiply: Multiply, x: Tensor, size: Size) -> Tensor:
        for link in reversed(self.links):
            x = multiply(link, x)
        return x

    @property
    def T(self) -> MaskOperator:
        return Chain(tuple(link.T for link in reversed(self.links)))

    def diagonal(self) -> Tensor | None:
        root = self.root()
        squared = None if root is None else root.entries
        if squared is None:
            return None
        entries = squared()
        diagonal = entries.value.new_zeros(entries.pattern.num_rows, entries.value.size(0))
        return diagonal.index_add(0, entries.pattern.row, entries.value.square().t())

    def root(self) -> MaskOperator | None:
        first, *rest = self.links
        if len(rest) != 1:
            return None
        (tensors, text), (others, of_other) = describe(first.T), describe(rest[0])
        if text != of_other:
            return None
        same = all(one is other or torch.equal(one, other) for one, other in zip(tensors, others, strict=True))
        return first if same else None


@dataclass(eq=False, repr=False)
class TreeMean(Composite):
    r"""The mean of the masks of several forests of the same nodes, given the mask of all of them, one after the other."""

    inner: MaskOperator
    num_trees: int

    def combined(self, multiply: Multiply, x: Tensor, size: Size) -> Tensor:
        repeated = widened(x).repeat(self.num_trees, 1, 1)
        return multiply(self.inner, repeated).reshape(self.num_trees, *x.shape).mean(0).to(x.dtype)

    def rows(self, slots: Slots, dtype: torch.dtype) -> Tensor:
        return self.inner.rows(slots.repeated(self.num_trees), dtype).unflatten(0, (self.num_trees, -1)).mean(0)

    @property
    def T(self) -> MaskOperator:
        return replace(self, inner=self.inner.T)

    def has_machine_code(self) -> bool:
        return self.inner.has_machine_code()

    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        total = self.inner.attend(*(x.repeat(self.num_trees, 1, 1) for x in (q, k, v)))
        return total.view(self.num_trees, *v.shape).mean(0)

    def attend_backward(self, learnable: Sequence[int], q: Tensor, k: Tensor, v: Tensor, grad: Tensor) -> list[Tensor]:
        repeated = (x.repeat(self.num_trees, 1, 1) for x in (q, k, v, grad / self.num_trees))
        grads = self.inner.attend_backward(learnable, *repeated)
        return [*(x.view(self.num_trees, *q.shape[:2], -1).sum(0) for x in grads[:3]), *grads[3:]]
