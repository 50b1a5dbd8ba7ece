r"""The capabilities of a mask operator. Each is an object that implements the algebra of operators.

All classes but :class:`Blocks` have the same five methods, so that :class:`~pyg_topomask.operators.MaskOperator` treats them
alike: :obj:`transposed`, :obj:`scaled`, :obj:`hadamard` (the entrywise product with a mask of low rank), :obj:`plus`, and
:obj:`side_by_side`. They return :obj:`None` where the capability is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.segments import Segments
from pyg_topomask.graphs.sparse_pattern import SparsePattern
from pyg_topomask.operators.structures import (
    ChainStructure,
    HadamardLowRankStructure,
    HeadsStructure,
    MaskStructure,
    ScaledStructure,
    SumStructure,
)
from pyg_topomask.utils.functorch import is_exporting, outside_transforms

__all__ = ['Blocks', 'LowRank', 'Product', 'SparseEntries']

Tensors = Sequence[Tensor]

#: Entries of a mask are formed only up to this number per head.
MAX_ENTRIES = 2**28


class Product:
    r"""The product :math:`\mathbf{M} \mathbf{x}`, which every mask has.

    Args:
        structure (MaskStructure): How the tensors multiply.
        tensors (tuple of torch.Tensor, or callable): What they are, or a function that returns them. It is called when they
            are needed: the entries of a sparse mask often serve instead.
        cost (int): Multiplications per head and column, which the choice of route compares.
    """

    def __init__(self, structure: MaskStructure, tensors: Tensors | Callable[[], Tensors], cost: int) -> None:
        self.structure = structure
        self.cost = cost
        self._make = tensors if callable(tensors) else lambda: tensors
        self._tensors: tuple[Tensor, ...] | None = None

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        r"""The tensors, in the order that :attr:`structure` expects."""
        if self._tensors is None:  # cached_property has a lock in Python 3.11, at which torch.compile would break the graph
            self._tensors = tuple(self._make())
        return self._tensors

    def __call__(self, x: Tensor) -> Tensor:
        return self.structure.apply(self.tensors, x)

    def magnitude(self, x: Tensor) -> Tensor:
        r"""Returns :math:`|\mathbf{M}| \mathbf{x}` for :math:`\mathbf{x} \ge 0`, or an upper bound of it."""
        return self.structure.magnitude(self.tensors, x)

    def transposed(self) -> Product:
        return Product(*self.structure.transpose(self.tensors), self.cost)

    def scaled(self, scale: Tensor) -> Product:
        return Product(ScaledStructure(self.structure), lambda: (scale, *self.tensors), self.cost)

    def hadamard(self, factors: LowRank) -> Product:
        rank = factors.left.size(-1)
        structure = HadamardLowRankStructure(self.structure)
        return Product(structure, lambda: (factors.left, factors.right, *self.tensors), self.cost * rank)

    @staticmethod
    def plus(terms: Sequence[Product], heads: int) -> Product:
        structure = SumStructure(*_joined(terms))
        return Product(structure, [tensor for term in terms for tensor in term.tensors], sum(term.cost for term in terms))

    @staticmethod
    def chain(*factors: Product) -> Product:
        r"""Returns the matrix product :math:`\mathbf{M}_1 \mathbf{M}_2 \cdots`."""
        tensors = [tensor for factor in factors for tensor in factor.tensors]
        return Product(ChainStructure(*_joined(factors)), tensors, sum(factor.cost for factor in factors))

    @staticmethod
    def side_by_side(terms: Sequence[Product], heads: Sequence[int]) -> Product:
        structure = HeadsStructure(*_joined(terms), tuple(heads))
        cost = sum(term.cost * count for term, count in zip(terms, heads, strict=True)) // sum(heads)
        return Product(structure, [tensor for term in terms for tensor in term.tensors], cost)


def _joined(terms: Sequence[Product]) -> tuple[tuple[MaskStructure, ...], tuple[int, ...]]:
    return tuple(term.structure for term in terms), tuple(len(term.tensors) for term in terms)


@dataclass(frozen=True)
class LowRank:
    r"""The factors of a mask :math:`\mathbf{A} \mathbf{B}^{\top}` within each graph.

    Args:
        left (torch.Tensor): :math:`\mathbf{A}`, :obj:`[N, H or 1, r]`.
        right (torch.Tensor): :math:`\mathbf{B}`, likewise.
    """

    left: Tensor
    right: Tensor

    def transposed(self) -> LowRank:
        return LowRank(self.right, self.left)

    def scaled(self, scale: Tensor) -> LowRank:
        return LowRank(self.left * scale.to(self.left.dtype).unsqueeze(-1), self.right)

    def hadamard(self, factors: LowRank) -> LowRank:
        return LowRank(_products(factors.left, self.left), _products(factors.right, self.right))

    @staticmethod
    def plus(terms: Sequence[LowRank], heads: int) -> LowRank:
        sides = ([getattr(term, side).expand(-1, heads, -1) for term in terms] for side in ('left', 'right'))
        return LowRank(*(torch.cat(factors, dim=-1) for factors in sides))

    @staticmethod
    def side_by_side(terms: Sequence[LowRank], heads: Sequence[int]) -> LowRank:
        rank = max(term.left.size(-1) for term in terms)

        def joined(side: str) -> Tensor:
            # Masks of a lower rank have zero factors.
            factors = [getattr(term, side).expand(-1, count, -1) for term, count in zip(terms, heads, strict=True)]
            dtype = reduce(torch.promote_types, (each.dtype for each in factors))
            return torch.cat([pad(each.to(dtype), (0, rank - each.size(-1))) for each in factors], dim=1)

        return LowRank(joined('left'), joined('right'))


def _products(factor: Tensor, x: Tensor) -> Tensor:
    return (factor.to(x.dtype).unsqueeze(-1) * x.unsqueeze(-2)).flatten(2)


@dataclass(frozen=True)
class Blocks:
    r"""The blocks of a mask in the graphs of a batch, as combinations of blocks that no parameter changes:
    :math:`\mathbf{M}_h = \mathbf{L}_h \sum_k c_{hk} \mathbf{B}_k \mathbf{R}_h` with diagonal matrices :math:`\mathbf{L}_h` and
    :math:`\mathbf{R}_h`. The :math:`\mathbf{L}_h` are positive and not stored, because they cancel in normalized attention.

    A mask may also be a function of labels of the pairs, such as distances. The entries of :math:`\mathbf{B}_k` are then 1 at
    the pairs with label :math:`k`, and 0 elsewhere, and only the labels are stored.

    Args:
        coefficients (torch.Tensor): :math:`c`, :obj:`[H, K]`.
        make (callable): Returns the entries of :math:`\mathbf{B}` at all pairs of nodes of the same graph, by row,
            :obj:`[K, num_pairs]`, for the division of the nodes into graphs and a data type, or the labels in int16,
            :obj:`[labels, num_pairs]`.
        cache (dict): Stores :math:`\mathbf{B}` for all heads, layers and steps.
        cost (int): Multiplications that :obj:`make` takes for each node of the largest graph.
        column_scale (torch.Tensor, optional): The diagonals of :math:`\mathbf{R}`, :obj:`[N, H]`. (default: :obj:`None`, ones)
        magnitude (callable, optional): Returns a second bound, beside :math:`|\mathbf{M}| \mathbf{x}`, that detects rows
            without weight, for :math:`\mathbf{x} \ge 0`, :obj:`[N, H, m]`. (default: :obj:`None`, nothing)
        labels (int): The number of labels of each pair, whose coefficients are added up, or 0 for the entries of
            :math:`\mathbf{B}`. (default: :obj:`0`)
    """

    coefficients: Tensor
    make: Callable[[Segments, torch.dtype], Tensor]
    cache: dict[Hashable, Any]
    cost: int
    column_scale: Tensor | None = None
    magnitude: Callable[[Tensor], Tensor] | None = None
    labels: int = 0

    @property
    def count(self) -> int:
        r"""The numbers that are stored for each pair of nodes."""
        return self.labels or self.coefficients.size(1)

    @outside_transforms
    def terms(self, segments: Segments, dtype: torch.dtype) -> Tensor:
        r"""Returns the entries of :math:`\mathbf{B}` or the labels of all pairs of nodes of the same graph, by row,
        :obj:`[count, num_pairs]`.
        """
        dtype = torch.int16 if self.labels else dtype
        if dtype not in self.cache:
            with torch.inference_mode(False), torch.no_grad():
                self.cache[dtype] = self.make(segments, dtype)
        return self.cache[dtype]

    def scaled(self, scale: Tensor) -> Blocks:
        factor, unscaled = scale.to(self.coefficients.dtype).view(-1, 1), self.magnitude

        def magnitude(x: Tensor) -> Tensor:
            assert unscaled is not None
            return factor.abs().to(x.dtype) * unscaled(x)

        changed = None if unscaled is None else magnitude
        return replace(self, coefficients=factor * self.coefficients, magnitude=changed)


def blocks_of(multiply: Callable[[Tensor], Iterable[Tensor]], basis: Tensor, segments: Segments) -> Tensor:
    r"""Returns the entries of combinations :math:`\sum_k u_{jk} \mathbf{T}_k` at all pairs of nodes of the same graph, by row,
    :obj:`[J, num_pairs]`.

    Args:
        multiply (callable): Yields the products :math:`\mathbf{T}_k \mathbf{x}` for :math:`\mathbf{x}`, :obj:`[N, c]`. One is
            valid until two more have been drawn.
        basis (torch.Tensor): :math:`u`, :obj:`[J, K]`, in the data type of the result.
        segments (Segments): The division of the nodes into graphs.
    """
    units = torch.zeros(segments.num_nodes, segments.largest, dtype=basis.dtype, device=segments.device)
    units.scatter_(1, segments.position.unsqueeze(1), 1.0)
    slots, size = torch.arange(segments.largest, device=segments.device), segments.sizes[segments.index]
    place = (slots < size.unsqueeze(1)).flatten().nonzero().squeeze(1)
    blocks = units.new_zeros(basis.size(0), segments.num_pairs)
    for factors, rows in zip(basis.t().tolist(), multiply(units), strict=True):
        term = rows.flatten()[place]
        for block, factor in zip(blocks, factors, strict=True):
            if factor != 0:
                block.add_(term, alpha=factor)
    return blocks


@dataclass(frozen=True)
class Entries:
    r"""The entries of a sparse mask.

    Args:
        pattern (SparsePattern): Their positions.
        value (torch.Tensor): Their values, :obj:`[H, nnz]`, or :obj:`[1, nnz]` for all heads.
    """

    pattern: SparsePattern
    value: Tensor


@dataclass(frozen=True)
class SparseEntries:
    r"""The entries of a sparse mask, formed when they are called for.

    Args:
        make (callable): Returns the :class:`Entries`.
        max_nnz (int, optional): An upper bound of their number per head. (default: :obj:`None`, unknown)
        make_without_row_scale (callable, optional): Returns the entries of :math:`\mathbf{P}` and the diagonal of
            :math:`\mathbf{R}`, :obj:`[N, H]`, for a mask :math:`\mathbf{L} \mathbf{P} \mathbf{R}` whose diagonal matrix
            :math:`\mathbf{L}` is positive, if the product takes time to form. (default: :obj:`None`)

    Raises:
        ValueError: At the call, if there may be more than :obj:`MAX_ENTRIES` per head.
    """

    make: Callable[[], Entries]
    max_nnz: int | None = None
    make_without_row_scale: Callable[[], tuple[Entries, Tensor]] | None = None

    def __call__(self) -> Entries:
        self._check()
        return self.make()

    def without_row_scale(self) -> tuple[Entries, Tensor | None]:
        r"""Returns entries :math:`\mathbf{P}` and factors :math:`\mathbf{r}` of columns, :obj:`[N, H]` or :obj:`None` for ones.
        The mask is :math:`\mathbf{L} \mathbf{P} \, \mathrm{diag}(\mathbf{r})` with some positive diagonal matrix
        :math:`\mathbf{L}`, which cancels in normalized attention.
        """
        self._check()
        return (self.make(), None) if self.make_without_row_scale is None else self.make_without_row_scale()

    def _check(self) -> None:
        if self.max_nnz is not None and not is_exporting() and self.max_nnz > MAX_ENTRIES:
            raise ArgumentError(
                'mask',
                f'a sparse mask of up to {self.max_nnz:,} entries per head',
                f'up to {MAX_ENTRIES:,}: for walks, set asymmetric=True, or take fewer or shorter ones',
            )

    def structure(self, product: MaskStructure) -> MaskStructure:
        r"""Returns how the mask multiplies.

        Args:
            product (MaskStructure): How the entries multiply, as those of a matrix.
        """
        return product

    def _changed(self, change: Callable[[Entries], Entries]) -> SparseEntries:
        return SparseEntries(lambda: change(self()), self.max_nnz)

    def transposed(self) -> SparseEntries:
        return self._changed(lambda each: Entries(each.pattern.T, each.value.index_select(1, each.pattern.perm_t)))

    def scaled(self, scale: Tensor) -> SparseEntries:
        return self._changed(lambda each: Entries(each.pattern, each.value * scale.to(each.value.dtype).unsqueeze(-1)))

    def hadamard(self, factors: LowRank) -> SparseEntries:
        def weighted(entries: Entries) -> Entries:
            row, col = entries.pattern.row, entries.pattern.col
            weight = (factors.left.index_select(0, row) * factors.right.index_select(0, col)).sum(-1)
            return Entries(entries.pattern, entries.value * weight.t())

        return self._changed(weighted)

    def intersection(self, other: SparseEntries) -> SparseEntries:
        r"""Returns the entrywise product with those of another sparse mask: the products of entries that both have."""

        def make() -> Entries:
            first, second = self(), other()
            pattern, left, right = first.pattern.intersection(second.pattern)
            return Entries(pattern, first.value.index_select(1, left) * second.value.index_select(1, right))

        known = [each for each in (self.max_nnz, other.max_nnz) if each is not None]
        return SparseEntries(make, min(known, default=None))

    @staticmethod
    def plus(terms: Sequence[SparseEntries], heads: int) -> SparseEntries:
        def make() -> Entries:
            pattern, slots, values = _united(terms)
            total = values[0].new_zeros(heads, pattern.nnz)
            for slot, value in zip(slots, values, strict=True):
                total = total.index_add(1, slot, value.expand(heads, -1))
            return Entries(pattern, total)

        return SparseEntries(make, _sum_of_max_nnz(terms))

    @staticmethod
    def side_by_side(terms: Sequence[SparseEntries], heads: Sequence[int]) -> SparseEntries:
        def make() -> Entries:
            pattern, slots, values = _united(terms)
            rows = [
                value.new_zeros(count, pattern.nnz).index_copy(1, slot, value.expand(count, -1))
                for count, slot, value in zip(heads, slots, values, strict=True)
            ]
            return Entries(pattern, torch.cat(rows))

        return SparseEntries(make, _sum_of_max_nnz(terms))


def _united(terms: Sequence[SparseEntries]) -> tuple[SparsePattern, list[Tensor], list[Tensor]]:
    r"""Returns the union of the patterns, the place in it of each mask's entries, and their values in one data type."""
    entries = [term() for term in terms]
    pattern, slots = SparsePattern.union(*(each.pattern for each in entries))
    dtype = reduce(torch.promote_types, (each.value.dtype for each in entries))
    return pattern, slots, [each.value.to(dtype) for each in entries]


def _sum_of_max_nnz(terms: Sequence[SparseEntries]) -> int | None:
    known = [term.max_nnz for term in terms if term.max_nnz is not None]
    return sum(known) if len(known) == len(terms) else None
