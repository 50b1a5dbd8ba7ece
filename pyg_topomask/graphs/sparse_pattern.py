r"""The positions of the entries of a sparse matrix."""

from __future__ import annotations

from operator import is_
from typing import Any

import numpy as np
import scipy
import torch
from numpy.typing import NDArray
from torch import Tensor

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.locality import inverse
from pyg_topomask.machine.backend import kernel
from pyg_topomask.utils.functorch import is_exporting, outside_transforms

__all__ = ['SparsePattern']

# Pairs that are counted in place of sorted: what counts them stays in the cache of a core.
_COUNTED = 2**17


def sampled_rows(num_rows: int) -> NDArray[np.int64]:
    r"""Returns up to 64 evenly spaced rows, from which to estimate the number of entries of a product."""
    number = min(num_rows, 64)
    return np.arange(number) * (num_rows - 1) // max(number - 1, 1)


def estimate_entries(counts: NDArray[Any], num_rows: int) -> int:
    r"""Estimates the number of entries of a matrix from those of its rows :func:`sampled_rows`. The fullest of them may be a
    hub, and stands for itself alone.
    """
    most = int(counts.max())
    return most + round((int(counts.sum()) - most) * (num_rows - 1) / max(len(counts) - 1, 1))


def count_within(pattern: SparsePattern, order: int) -> int:
    r"""Estimates the number of entries of the powers up to an order, which is the number of pairs of nodes within so many
    edges, from a sample of rows.
    """
    size = pattern.num_rows
    if size == 0:
        return 0
    rows = sampled_rows(size)
    if compiled := kernel('patterns.counts_within', pattern.col.device):
        return estimate_entries(compiled(pattern, rows, order), size)
    step = pattern.to_scipy()
    reached = power = scipy.sparse.eye_array(size, dtype=bool, format='csr')[rows]
    for _ in range(order):
        power = power @ step
        reached = reached + power
    return estimate_entries(np.diff(reached.indptr), size)


def stable_argsort(key: Tensor, bound: int = 2**63) -> Tensor:
    r"""Returns the stable order that sorts integer keys from 0 to below :obj:`bound`."""
    if key.device.type != 'cpu' or torch.compiler.is_compiling():
        return torch.argsort(key, stable=True)
    if bound <= 2**15:
        return torch.from_numpy(key.short().numpy().argsort(kind='stable'))
    keys = key.numpy()
    falls = int((keys[1:] < keys[:-1]).sum())
    # NumPy merges sorted runs, and uses radix sort for 16-bit keys.
    if 8 * falls <= keys.size or int(keys.max()) >= 2**32:
        return torch.from_numpy(keys.argsort(kind='stable'))
    order = _half(keys, 0).argsort(kind='stable')
    return torch.from_numpy(order[_half(keys, 16)[order].argsort(kind='stable')])


def _half(keys: NDArray[np.integer[Any]], shift: int) -> NDArray[np.uint16]:
    return (keys >> shift & 0xFFFF).astype(np.uint16)


def matches(keys: Tensor, wanted: Tensor) -> tuple[Tensor, Tensor]:
    r"""Returns which of the wanted keys are among the ascending ones, and where."""
    place = torch.searchsorted(keys, wanted)
    present = (torch.nn.functional.pad(keys, (0, 1), value=-1)[place] == wanted).nonzero().squeeze(1)
    return present, place[present]


class SparsePattern:
    r"""The positions of the entries of a sparse matrix and of its transpose, in CSR order.

    Args:
        rowptr (torch.Tensor): Row pointers, :obj:`[num_rows + 1]`.
        col (torch.Tensor): Column of each entry, ascending within a row, :obj:`[nnz]`.
        rowptr_t (torch.Tensor, optional): Row pointers of the transpose, :obj:`[num_cols + 1]`. The tensors of the transpose
            are made when they are called for, unless they are given: sums along rows do not need them. (default: :obj:`None`)
        col_t (torch.Tensor, optional): Columns of the transpose, :obj:`[nnz]`. (default: :obj:`None`)
        perm_t (torch.Tensor, optional): Entry :obj:`e` of the transpose is entry :obj:`perm_t[e]` of the matrix, :obj:`[nnz]`.
            (default: :obj:`None`)
        num_cols (int, optional): The number of columns. (default: that of :obj:`rowptr_t`)
    """

    def __init__(
        self,
        rowptr: Tensor,
        col: Tensor,
        rowptr_t: Tensor | None = None,
        col_t: Tensor | None = None,
        perm_t: Tensor | None = None,
        *,
        num_cols: int | None = None,
    ) -> None:
        self.rowptr, self.col = rowptr, col
        self._transposed = tuple(tensor for tensor in (rowptr_t, col_t, perm_t) if tensor is not None)
        self.num_cols: int = self._transposed[0].numel() - 1 if num_cols is None else num_cols
        #: The patterns that this one was last united with, and their union, which most steps need again.
        self._union: list[Any] = []

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), '_transposed': (), '_union': []}  # without what may come and go

    @classmethod
    @outside_transforms
    def from_sorted(cls, row: Tensor, col: Tensor, num_rows: int, num_cols: int, with_transpose: bool = True) -> SparsePattern:
        r"""Builds a pattern from distinct entries in ascending order of :obj:`(row, col)`."""
        _check_pairs(row, col, num_rows, num_cols)
        return cls._from_checked(row, col, num_rows, num_cols, with_transpose)

    @classmethod
    @outside_transforms
    def _from_checked(
        cls, row: Tensor, col: Tensor, num_rows: int, num_cols: int, with_transpose: bool = True
    ) -> SparsePattern:
        index = _index_dtype(row.numel(), num_rows, num_cols)
        pattern = cls(_pointers(row.to(index), num_rows), col.to(index), num_cols=num_cols)
        return cls(*pattern.tensors) if with_transpose else pattern

    @classmethod
    @outside_transforms
    def from_pairs(
        cls, row: Tensor, col: Tensor, num_rows: int, num_cols: int, by_row: bool = False
    ) -> tuple[SparsePattern, Tensor]:
        r"""Returns the pattern of the distinct pairs, and the position of each given pair in it, in the shape of :obj:`row`.
        Many pairs are faster if their rows are ascending, :obj:`by_row`.
        """
        _check_pairs(row, col, num_rows, num_cols)
        few = not torch.compiler.is_compiling() and (by_row or max(row.numel(), num_rows, num_cols) <= _COUNTED)
        if few and (compiled := kernel('patterns.pattern_of_pairs', col.device)):
            *tensors, slot = compiled(row, col, num_rows, num_cols, _index_dtype(row.numel(), num_rows, num_cols))
            return cls(*tensors), slot
        size = max(num_cols, 1)
        key, slot = torch.unique(row.long() * size + col, return_inverse=True)
        row = torch.div(key, size, rounding_mode='floor')
        return cls._from_checked(row, key - row * size, num_rows, num_cols), slot

    @classmethod
    @outside_transforms
    def union(cls, *patterns: SparsePattern) -> tuple[SparsePattern, list[Tensor]]:
        r"""Returns the union of patterns of equal size, and for each of them the positions of its entries in the union,
        :obj:`[nnz]`.
        """
        first, *rest = patterns
        if all(pattern is first for pattern in rest):
            return first, [torch.arange(first.nnz, device=first.col.device)] * len(patterns)
        others, made = tuple(first._union) or ((), None)
        if made is None or len(others) != len(rest) or not all(map(is_, others, rest)):
            with torch.inference_mode(False):
                row, col = (torch.cat([getattr(pattern, name) for pattern in patterns]) for name in ('row', 'col'))
                pattern, slot = cls.from_pairs(row, col, first.num_rows, first.num_cols)
            made = pattern, slot.split([pattern.nnz for pattern in patterns])
            first._union[:] = rest, made
        return made[0], list(made[1])

    @outside_transforms
    def intersection(self, other: SparsePattern) -> tuple[SparsePattern, Tensor, Tensor]:
        r"""Returns the intersection of two patterns of equal size, and the positions of its entries in both."""
        key, of_other = (pattern.row.long() * self.num_cols + pattern.col for pattern in (self, other))  # both ascending
        left, right = matches(of_other, key)
        return self._from_checked(self.row[left], self.col[left], self.num_rows, self.num_cols), left, right

    @property
    def nnz(self) -> int:
        return self.col.numel()

    @property
    def num_rows(self) -> int:
        return self.rowptr.numel() - 1

    @property
    def rowptr_t(self) -> Tensor:
        r"""Row pointers of the transpose, :obj:`[num_cols + 1]`."""
        return self.tensors[2]

    @property
    def col_t(self) -> Tensor:
        r"""Columns of the transpose, :obj:`[nnz]`."""
        return self.tensors[3]

    @property
    def perm_t(self) -> Tensor:
        r"""Entry :obj:`e` of the transpose is entry :obj:`perm_t[e]` of the matrix, :obj:`[nnz]`."""
        return self.tensors[4]

    def from_transpose(self, value: Tensor) -> Tensor:
        r"""Returns numbers of the entries, given them in the order of the transpose, :obj:`[nnz, ...]`."""
        return torch.empty_like(value).index_copy_(0, self.perm_t.long(), value)

    @property
    def row(self) -> Tensor:
        r"""The row of each entry, :obj:`[nnz]`."""
        rows = torch.arange(self.num_rows, device=self.col.device, dtype=self.col.dtype)
        return rows.repeat_interleave(self.rowptr.diff(), output_size=self.nnz)

    def to_scipy(self, value: Tensor | None = None) -> scipy.sparse.csr_array:
        r"""Returns the matrix with the given entries, :obj:`[nnz]`, by default boolean ones."""
        rowptr, col = self.rowptr.cpu().numpy(), self.col.cpu().numpy()
        entries = np.ones(self.nnz, dtype=bool) if value is None else value.detach().cpu().numpy()
        return scipy.sparse.csr_array((entries, col, rowptr), shape=(self.num_rows, self.num_cols))

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        r"""The row pointers and columns of the matrix and of its transpose, and :attr:`perm_t`."""
        transposed = self._transposed or self._transpose()
        if not torch.compiler.is_compiling():  # traced code keeps nothing
            self._transposed = transposed
        return self.rowptr, self.col, *transposed

    @outside_transforms
    def _transpose(self) -> tuple[Tensor, ...]:
        with torch.inference_mode(False):  # kept, and possibly used in training later
            if self.col.device.type == 'cpu' and not torch.compiler.is_compiling():  # SciPy counts in place of sorting
                entry = np.arange(self.nnz, dtype=self.col.numpy().dtype)
                shape = self.num_rows, self.num_cols
                matrix = scipy.sparse.csr_array((entry, self.col.numpy(), self.rowptr.numpy()), shape=shape).tocsc()
                found = (matrix.indptr, matrix.indices, matrix.data)
                return tuple(torch.from_numpy(x).to(self.col.dtype) for x in found)
            perm = stable_argsort(self.col, self.num_cols)
            ends = _pointers(self.col.index_select(0, perm), self.num_cols)
            return ends, self.row.index_select(0, perm), perm.to(self.col.dtype)

    @property
    @outside_transforms
    def T(self) -> SparsePattern:
        return SparsePattern(self.rowptr_t, self.col_t, self.rowptr, self.col, inverse(self.perm_t))


def _index_dtype(*sizes: int) -> torch.dtype:
    return torch.int64 if is_exporting() or max(sizes) >= 2**31 else torch.int32


def _check_pairs(row: Tensor, col: Tensor, num_rows: int, num_cols: int) -> None:
    r"""Raises a :class:`ValueError` for pairs outside a matrix, if they are on the CPU: a GPU would have to be waited for."""
    if torch.compiler.is_compiling():  # sizes and numbers may be symbols
        return
    if row.shape != col.shape or row.is_floating_point() or col.is_floating_point():
        given = ' and '.join(f'shape {tuple(index.shape)} of {index.dtype}' for index in (row, col))
        raise ArgumentError('row, col', given, 'whole numbers of equal shapes')
    if row.device.type != 'cpu' or row.numel() == 0:
        return
    for name, index, size in (('row', row, num_rows), ('col', col, num_cols)):
        least, most = map(int, index.aminmax())
        if least < 0 or most >= size:
            raise ArgumentError(name, f'numbers from {least} to {most}', f'0 to {size - 1}')


def _pointers(sorted_index: Tensor, size: int) -> Tensor:
    if sorted_index.device.type == 'cpu' and not torch.compiler.is_compiling():
        counts = torch.bincount(sorted_index, minlength=size)
        return torch.nn.functional.pad(counts.cumsum(0, dtype=sorted_index.dtype), (1, 0))
    each = torch.arange(size + 1, device=sorted_index.device, dtype=sorted_index.dtype)
    return torch.searchsorted(sorted_index, each, out_int32=sorted_index.dtype == torch.int32)
