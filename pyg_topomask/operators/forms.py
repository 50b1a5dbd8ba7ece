r"""What operators offer beside products: rows at some positions of each graph, entries, and prepared blocks."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, TypeVar

import torch
from torch import Tensor

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.segments import SegmentGroup, Segments
from pyg_topomask.graphs.sparse_pattern import SparsePattern
from pyg_topomask.machine.backend import uses_numba
from pyg_topomask.utils.functorch import is_exporting, is_transforming, outside_transforms

__all__ = ['PreparedBlocks', 'Slots', 'SparseEntries']


@dataclass(frozen=True)
class Slots:
    r"""The nodes at the positions from :obj:`start` to before :obj:`stop` in each graph.

    Args:
        position (torch.Tensor): The position of each node in its graph, :obj:`[N]`.
        groups (sequence of SegmentGroup): All graphs, padded to common sizes.
        start (int): The first position.
        stop (int): The position after the last.
    """

    position: Tensor
    groups: Sequence[SegmentGroup]
    start: int
    stop: int

    @property
    def range(self) -> Tensor:
        r"""The positions, :obj:`[S]`."""
        return torch.arange(self.start, self.stop, device=self.position.device)

    def units(self, dtype: torch.dtype) -> Tensor:
        r"""Returns whether each node is at each of the positions, as numbers, :obj:`[N, S]`."""
        return (self.position.unsqueeze(1) == self.range).to(dtype)

    @property
    def nodes(self) -> Tensor:
        r"""The node at each position in the graph of each node, :obj:`[N, S]`; any node beyond the graph."""
        first = torch.arange(self.position.numel(), device=self.position.device) - self.position
        return (first.unsqueeze(1) + self.range).clamp_(max=self.position.numel() - 1)

    def repeated(self, times: int) -> Slots:
        r"""Returns the same positions in several copies of the graphs, the first copy first, without groups."""
        return Slots(self.position.repeat(times), (), self.start, self.stop)

    def low_rank_rows(self, left: Tensor, right: Tensor) -> Tensor:
        r"""Returns the rows of :math:`\mathbf{A} \mathbf{B}^{\top}` at these positions, see :meth:`MaskOperator.rows`."""
        heads = max(left.size(1), right.size(1))
        left, right = (factor.expand(-1, heads, -1) for factor in (left, right))
        rows = right.new_zeros(right.size(0) + 1, heads, self.stop - self.start)
        for keys in self.groups:
            queries = keys[:, self.start : self.stop]
            if queries.width > 0:
                keys.put(rows, keys.take(right) @ queries.take(left).transpose(-1, -2))
        return rows[:-1]


#: Entries of a mask are formed only up to this number per head.
MAX_ENTRIES = 2**28

Listed = TypeVar('Listed', bound='SparseEntries')


@dataclass(frozen=True)
class Entries:
    r"""The entries of a sparse mask: their positions, and their values, :obj:`[H, nnz]`, or :obj:`[1, nnz]` for all heads. If
    entries have labels, :obj:`[nnz]`, the values are those of the labels, :obj:`[H or 1, labels]`.
    """

    pattern: SparsePattern
    values: Tensor
    label: Tensor | None = None

    @property
    def value(self) -> Tensor:
        r"""The value of each entry, :obj:`[H or 1, nnz]`."""
        return self.values if self.label is None else self.values.index_select(1, self.label)

    @property
    def positions(self) -> list[Tensor]:
        r"""The tensors of the pattern and, if entries have labels, these, see :func:`positions_of`."""
        return positions_of(self.pattern, *([] if self.label is None else [self.label]))

    @property
    def pairs(self) -> Tensor:
        r"""The rows and columns, :obj:`[2, nnz]`, in int64."""
        return torch.stack([self.pattern.row, self.pattern.col]).long()


def positions_of(pattern: SparsePattern, *further: Tensor) -> list[Tensor]:
    r"""Returns the tensors of a pattern that sums along its rows read, and further constants. Machine code does not read those
    of the transpose, and functorch could not make them later.
    """
    lean = uses_numba(pattern.col.device) and not is_transforming()
    return [*((pattern.rowptr, pattern.col) if lean else pattern.tensors), *further]


def pattern_at(constants: Sequence[Tensor], num_cols: int) -> tuple[SparsePattern, Tensor | None]:
    r"""Returns the pattern of :func:`positions_of`, and the further constant, if there is one."""
    count = 2 if len(constants) < 5 else 5
    pattern = SparsePattern(*constants[:count], num_cols=num_cols)
    return pattern, constants[count] if len(constants) > count else None


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

    def with_values(self: Listed, change: Callable[[Entries], Entries]) -> Listed:
        r"""Returns the entries that a function makes of these."""
        return replace(self, make=lambda: change(self()), make_without_row_scale=None)

    def transposed(self) -> SparseEntries | None:
        r"""Returns the entries of the transpose, or :obj:`None` if other processes have them."""
        return self.with_values(lambda each: Entries(each.pattern.T, each.value.index_select(1, each.pattern.perm_t)))

    def scaled(self, scale: Tensor) -> SparseEntries:
        r"""Returns the entries times a number, or times one number per head, :obj:`[H]`."""
        return self.with_values(lambda each: replace(each, values=each.values * scale.to(each.values.dtype).unsqueeze(-1)))

    def weighted(self, left: Tensor, right: Tensor) -> SparseEntries:
        r"""Returns the entrywise product with a mask of low rank, given its factors, :obj:`[N, H or 1, r]`."""

        def change(entries: Entries) -> Entries:
            row, col, ranks = entries.pattern.row, entries.pattern.col, zip(left.unbind(-1), right.unbind(-1), strict=True)
            # One factor after the other: the product of two may underflow.
            terms = (entries.value * a.t().index_select(1, row) * b.t().index_select(1, col) for a, b in ranks)
            return Entries(entries.pattern, reduce(torch.add, terms))

        return self.with_values(change)

    def intersection(self, other: SparseEntries) -> SparseEntries:
        r"""Returns the entrywise product with those of another sparse mask: the products of entries that both have."""
        left, right = self.aligned([self, other])

        def make() -> Entries:
            first, second = left(), right()
            pattern, of_first, of_second = first.pattern.intersection(second.pattern)
            return Entries(pattern, first.value.index_select(1, of_first) * second.value.index_select(1, of_second))

        known = [each for each in (self.max_nnz, other.max_nnz) if each is not None]
        return replace(left, make=make, max_nnz=min(known, default=None), make_without_row_scale=None)

    def aligned(self, terms: Sequence[SparseEntries]) -> list[SparseEntries]:
        r"""Returns the entries of several masks on the same nodes, which they are on already unless processes share a graph."""
        return list(terms)


def sum_of_entries(terms: Sequence[SparseEntries], heads: int) -> SparseEntries:
    r"""Returns the entries of a sum of masks."""
    terms = terms[0].aligned(terms)

    def make() -> Entries:
        pattern, slots, values = _united(terms)
        total = values[0].new_zeros(heads, pattern.nnz)
        for slot, value in zip(slots, values, strict=True):
            total = total.index_add(1, slot, value.expand(heads, -1))
        return Entries(pattern, total)

    return _made_of(terms, make)


def entries_of_heads(terms: Sequence[SparseEntries], heads: Sequence[int]) -> SparseEntries:
    r"""Returns the entries of masks that stand side by side, each for some of the heads."""
    terms = terms[0].aligned(terms)

    def make() -> Entries:
        pattern, slots, values = _united(terms)
        rows = [
            value.new_zeros(count, pattern.nnz).index_copy(1, slot, value.expand(count, -1))
            for count, slot, value in zip(heads, slots, values, strict=True)
        ]
        return Entries(pattern, torch.cat(rows))

    return _made_of(terms, make)


def _made_of(terms: Sequence[SparseEntries], make: Callable[[], Entries]) -> SparseEntries:
    known = [term.max_nnz for term in terms if term.max_nnz is not None]
    return replace(terms[0], make=make, max_nnz=sum(known) if len(known) == len(terms) else None, make_without_row_scale=None)


def _united(terms: Sequence[SparseEntries]) -> tuple[SparsePattern, list[Tensor], list[Tensor]]:
    r"""Returns the union of the patterns, the place in it of each mask's entries, and their values in one data type."""
    entries = [term() for term in terms]
    pattern, slots = SparsePattern.union(*(each.pattern for each in entries))
    dtype = reduce(torch.promote_types, (each.value.dtype for each in entries))
    return pattern, slots, [each.value.to(dtype) for each in entries]


@dataclass(frozen=True)
class PreparedBlocks:
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
        cache (dict, optional): Stores :math:`\mathbf{B}` for all heads, layers and steps. :obj:`None` if :math:`\mathbf{B}` is
            learned. It is then made at every call, and gradients flow to it.
        cost (int): Multiplications that :obj:`make` takes for each node of the largest graph.
        column_scale (torch.Tensor, optional): The diagonals of :math:`\mathbf{R}`, :obj:`[N, H]`. (default: :obj:`None`, ones)
        magnitude (callable, optional): Returns a second bound, beside :math:`|\mathbf{M}| \mathbf{x}`, that detects rows
            without weight, for :math:`\mathbf{x} \ge 0`, :obj:`[N, H, m]`. (default: :obj:`None`, nothing)
        labels (int): The number of labels of each pair, whose coefficients are added up, or 0 for the entries of
            :math:`\mathbf{B}`. (default: :obj:`0`)
        error (float): Entries between this error below 0 and 0 are 0. (default: :obj:`0.0`)
    """

    coefficients: Tensor
    make: Callable[[Segments, torch.dtype], Tensor]
    cache: dict[Hashable, Any] | None
    cost: int
    column_scale: Tensor | None = None
    magnitude: Callable[[Tensor], Tensor] | None = None
    labels: int = 0
    error: float = 0.0

    @property
    def count(self) -> int:
        r"""The numbers that are stored for each pair of nodes."""
        return self.labels or self.coefficients.size(1)

    def terms(self, segments: Segments, dtype: torch.dtype) -> Tensor:
        r"""Returns the entries of :math:`\mathbf{B}` or the labels of all pairs of nodes of the same graph, by row,
        :obj:`[count, num_pairs]`.
        """
        if self.cache is None:
            return self.make(segments, dtype)
        return self._stored(self.cache, segments, torch.int16 if self.labels else dtype)

    @outside_transforms
    def _stored(self, cache: dict[Hashable, Any], segments: Segments, dtype: torch.dtype) -> Tensor:
        if dtype not in cache:
            with torch.inference_mode(False), torch.no_grad():
                cache[dtype] = self.make(segments, dtype)
        terms: Tensor = cache[dtype]
        return terms

    def scaled(self, scale: Tensor) -> PreparedBlocks:
        factor, unscaled = scale.to(self.coefficients.dtype).view(-1, 1), self.magnitude

        def magnitude(x: Tensor) -> Tensor:
            assert unscaled is not None
            return factor.abs().to(x.dtype) * unscaled(x)

        changed = None if unscaled is None else magnitude
        error = math.inf if self.error > 0 else 0.0
        return replace(self, coefficients=factor * self.coefficients, magnitude=changed, error=error)


def units_of(segments: Segments, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    r"""Returns the unit vector of the position of each node in its graph, :obj:`[N, n]` for :math:`n` nodes in the largest one,
    and the places of all pairs of nodes of the same graph in such a matrix, by row, :obj:`[num_pairs]`.
    """
    units = torch.zeros(segments.num_nodes, segments.largest, dtype=dtype, device=segments.device)
    units.scatter_(1, segments.position.unsqueeze(1), 1.0)
    slots, size = torch.arange(segments.largest, device=segments.device), segments.sizes[segments.index]
    return units, (slots < size.unsqueeze(1)).flatten().nonzero().squeeze(1)


def blocks_of(multiply: Callable[[Tensor], Iterable[Tensor]], basis: Tensor, segments: Segments) -> Tensor:
    r"""Returns the entries of combinations :math:`\sum_k u_{jk} \mathbf{T}_k` at all pairs of nodes of the same graph, by row,
    :obj:`[J, num_pairs]`. :obj:`multiply` yields the products :math:`\mathbf{T}_k \mathbf{x}`, of which one is valid until two
    more have been drawn. The basis is :math:`u`, in the data type of the result.
    """
    units, place = units_of(segments, basis.dtype)
    blocks = units.new_zeros(basis.size(0), segments.num_pairs)
    for factors, rows in zip(basis.t().tolist(), multiply(units), strict=True):
        term = rows.flatten()[place]
        for block, factor in zip(blocks, factors, strict=True):
            if factor != 0:
                block.add_(term, alpha=factor)
    return blocks
