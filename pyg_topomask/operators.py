r"""The contract of a bound mask operator, and the algebra of operators.

A bound mask is an :math:`H \times N \times N` matrix :math:`\mathbf{M}` that is never formed. It is given by *tensors* and a
hashable *structure*, which knows one pure function: :meth:`~pyg_topomask.structures.MaskStructure.apply`, the product
:math:`\mathbf{M} \mathbf{x}`. Everything else (masked attention, transposes, sums, the dense oracle) follows from it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import torch
from torch import Tensor

from pyg_topomask.sparse_pattern import SparsePattern
from pyg_topomask.structures import (
    HadamardLowRankStructure,
    HeadsStructure,
    MaskStructure,
    ScaledStructure,
    SumStructure,
)

__all__ = ['Entries', 'MaskOperator']


@dataclass(frozen=True)
class Entries:
    r"""The entries of a sparse mask: a :class:`SparsePattern` and their values of shape :obj:`[H, nnz]` or :obj:`[1, nnz]`."""

    pattern: SparsePattern
    value: Tensor


class MaskOperator:
    r"""A mask bound to the nodes of a batch of graphs: an :math:`H \times N \times N` matrix, block-diagonal over the graphs.

    Operators add (:obj:`a + b`), scale (:obj:`2.0 * a`, or a tensor with one number per head), transpose (:obj:`a.T`), and
    multiply entry by entry (:obj:`a * b`) when one of the two has low rank.

    Args:
        structure (MaskStructure): How the tensors multiply.
        tensors (tuple of torch.Tensor, or callable): What they are, or a function that returns them, called when they are
            needed: the entries of a sparse mask often serve instead.
        num_nodes (int): The number of nodes :math:`N`.
        heads (int): The number of heads :math:`H`; :obj:`1` acts alike on any number of heads. (default: :obj:`1`)
        batch (torch.Tensor, optional): The graph of each node, ascending, :obj:`[N]`. (default: :obj:`None`, one graph)
        num_graphs (int, optional): The number of graphs. (default: :obj:`1`)
        cost (int, optional): Multiplications per head and column of :meth:`matmul`, which the choice of route compares.
            (default: :obj:`num_nodes`)
        factors (tuple of torch.Tensor, optional): :math:`\mathbf{A}, \mathbf{B}` of shape :obj:`[N, H or 1, r]` where the mask
            is :math:`\mathbf{A} \mathbf{B}^{\top}` within each graph. (default: :obj:`None`)
        entries (callable, optional): Returns the :class:`Entries` of a sparse mask; called when they are needed.
            (default: :obj:`None`)
        num_entries (int, optional): An upper bound of the number of entries per head. (default: :obj:`None`)
        parts (tuple of MaskOperator, optional): Operators that each have heads of their own, which attention may take one by
            one, see :meth:`side_by_side`. (default: :obj:`None`)
    """

    def __init__(
        self,
        structure: MaskStructure,
        tensors: Sequence[Tensor] | Callable[[], Sequence[Tensor]],
        num_nodes: int,
        heads: int = 1,
        batch: Tensor | None = None,
        num_graphs: int = 1,
        *,
        cost: int | None = None,
        factors: tuple[Tensor, Tensor] | None = None,
        entries: Callable[[], Entries] | None = None,
        num_entries: int | None = None,
        parts: tuple[MaskOperator, ...] | None = None,
    ) -> None:
        self.structure = structure
        self._make_tensors = tensors if callable(tensors) else lambda: tensors
        self._tensors: tuple[Tensor, ...] | None = None
        self.num_nodes = num_nodes
        self.heads = heads
        self.batch = batch
        self.num_graphs = num_graphs
        self.cost = num_nodes if cost is None else cost
        self.factors = factors
        self.entries = entries
        self.num_entries = num_entries
        self.parts = parts

    @classmethod
    def side_by_side(cls, *parts: MaskOperator) -> MaskOperator:
        r"""Gives each of two or more operators, bound to the same graphs, heads of its own: those of the first come first."""
        first, *rest = parts
        for part in rest:
            first._check_graphs(part)
        heads = tuple(part.heads for part in parts)
        structure = HeadsStructure(tuple(part.structure for part in parts), tuple(len(part.tensors) for part in parts), heads)
        cost = sum(part.cost * part.heads for part in parts) // sum(heads)
        tensors = [tensor for part in parts for tensor in part.tensors]

        def join(pattern: SparsePattern, slots: list[Tensor], values: list[Tensor]) -> Tensor:
            rows = (
                value.new_zeros(own, pattern.nnz).index_copy(1, slot, value.expand(own, -1))
                for own, slot, value in zip(heads, slots, values, strict=True)
            )
            return torch.cat(list(rows))

        return cls(
            structure,
            tensors,
            first.num_nodes,
            sum(heads),
            first.batch,
            first.num_graphs,
            cost=cost,
            parts=parts,
            **_joint_entries(parts, join),
        )

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        r"""The tensors of the operator, in the order that :attr:`structure` expects."""
        if self._tensors is None:  # cached_property has a lock in Python 3.11, at which torch.compile would break the graph
            self._tensors = tuple(self._make_tensors())
        return self._tensors

    def matmul(self, x: Tensor) -> Tensor:
        r"""Returns :math:`\mathbf{M}_h \mathbf{x}_h` for every head :math:`h`; :obj:`x` has shape :obj:`[N, H, c]`."""
        fits = x.dim() == 3 and x.size(0) == self.num_nodes and self.heads in (1, x.size(1))
        if not fits or not x.is_floating_point():
            heads = 'H' if self.heads == 1 else self.heads
            raise ValueError(
                f'x: got shape {tuple(x.shape)} of {x.dtype}; accepted are floating point numbers of shape '
                f'[{self.num_nodes}, {heads}, channels]'
            )
        # Sparse products know no shorter types, in which sums would stand still.
        dtype = torch.promote_types(x.dtype, torch.float32)
        with torch.autocast(device_type=x.device.type, enabled=False):
            return self.structure.apply(self.tensors, x.to(dtype)).to(x.dtype)

    def to_dense(self) -> Tensor:
        r"""Returns the matrix, :obj:`[H, N, N]`. For tests and pictures: it costs :math:`O(H N^2)`."""
        eye = torch.eye(self.num_nodes, dtype=self.dtype, device=self._device)
        return self.matmul(eye.unsqueeze(1).expand(-1, self.heads, -1)).permute(1, 0, 2)

    @property
    def T(self) -> MaskOperator:
        r"""The transpose, head by head."""
        structure, tensors = self.structure.transpose(self.tensors)

        def entries(own: Entries) -> Entries:
            return Entries(own.pattern.T, own.value.index_select(1, own.pattern.perm_t))

        factors = None if self.factors is None else (self.factors[1], self.factors[0])
        return self._derive(structure, tensors, self.heads, factors=factors, entries=entries)

    def __add__(self, other: MaskOperator) -> MaskOperator:
        if not isinstance(other, MaskOperator):
            return NotImplemented
        heads = self._common_heads(other)
        structure = SumStructure((self.structure, other.structure), (len(self.tensors), len(other.tensors)))
        factors = None
        if self.factors is not None and other.factors is not None:
            factors = _concatenate(self.factors[0], other.factors[0]), _concatenate(self.factors[1], other.factors[1])

        def join(pattern: SparsePattern, slots: list[Tensor], values: list[Tensor]) -> Tensor:
            total = values[0].new_zeros(heads, pattern.nnz)
            for slot, value in zip(slots, values, strict=True):
                total = total.index_add(1, slot, value.expand(heads, -1))
            return total

        return MaskOperator(
            structure,
            self.tensors + other.tensors,
            self.num_nodes,
            heads,
            self.batch,
            self.num_graphs,
            cost=self.cost + other.cost,
            factors=factors,
            **_joint_entries((self, other), join),
        )

    def __radd__(self, other: object) -> MaskOperator:
        # What sum() begins with.
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def __mul__(self, other: MaskOperator | Tensor | float) -> MaskOperator:
        if isinstance(other, MaskOperator):
            if other.factors is not None:
                return self._hadamard(other, *other.factors)
            if self.factors is not None:
                return other._hadamard(self, *self.factors)
            raise ValueError(
                f'mask: got the entrywise product of {self!r} and {other!r}; accepted are products with a mask of low '
                f'rank, a number, or a tensor with one number per head'
            )
        if isinstance(other, (int, float)):
            other = torch.tensor(float(other), dtype=self.dtype, device=self._device)
        return self._scaled(other) if isinstance(other, Tensor) else NotImplemented

    __rmul__ = __mul__

    def __truediv__(self, other: Tensor | float) -> MaskOperator:
        return self * reciprocal(other)

    def __neg__(self) -> MaskOperator:
        return self * -1.0

    def __sub__(self, other: MaskOperator) -> MaskOperator:
        return self + (-other) if isinstance(other, MaskOperator) else NotImplemented

    def _scaled(self, scale: Tensor) -> MaskOperator:
        if scale.dim() > 1 or (scale.numel() != 1 and self.heads not in (1, scale.numel())):
            raise ValueError(
                f'scale: got a tensor of shape {tuple(scale.shape)} for {self.heads} heads; accepted are a number, a tensor '
                f'without dimensions, and a tensor of shape [heads]'
            )

        def entries(own: Entries) -> Entries:
            return Entries(own.pattern, own.value * scale.to(own.value.dtype).unsqueeze(-1))

        factors = None
        if self.factors is not None:
            factors = self.factors[0] * scale.to(self.factors[0].dtype).unsqueeze(-1), self.factors[1]
        heads = max(self.heads, scale.numel())
        structure = ScaledStructure(self.structure)
        return self._derive(structure, lambda: (scale, *self.tensors), heads, factors=factors, entries=entries)

    def _hadamard(self, other: MaskOperator, left: Tensor, right: Tensor) -> MaskOperator:
        def entries(own: Entries) -> Entries:
            row, col = own.pattern.row, own.pattern.col
            factor = (left.index_select(0, row) * right.index_select(0, col)).sum(-1)
            return Entries(own.pattern, own.value * factor.t())

        factors = None
        if self.factors is not None:
            factors = _expand(left, self.factors[0]), _expand(right, self.factors[1])
        return self._derive(
            HadamardLowRankStructure(self.structure),
            lambda: (left, right, *self.tensors),
            self._common_heads(other),
            cost=self.cost * left.size(-1),
            factors=factors,
            entries=entries,
        )

    def _derive(
        self,
        structure: MaskStructure,
        tensors: Sequence[Tensor] | Callable[[], Sequence[Tensor]],
        heads: int,
        *,
        cost: int | None = None,
        factors: tuple[Tensor, Tensor] | None = None,
        entries: Callable[[Entries], Entries] | None = None,
    ) -> MaskOperator:
        own = self.entries
        return MaskOperator(
            structure,
            tensors,
            self.num_nodes,
            heads,
            self.batch,
            self.num_graphs,
            cost=self.cost if cost is None else cost,
            factors=factors,
            entries=None if own is None or entries is None else lambda: entries(own()),
            num_entries=None if entries is None else self.num_entries,
        )

    def _common_heads(self, other: MaskOperator) -> int:
        self._check_graphs(other)
        if self.heads != other.heads and 1 not in (self.heads, other.heads):
            raise ValueError(f'heads: got masks with {self.heads} and {other.heads} heads; accepted are equal numbers, or 1')
        return max(self.heads, other.heads)

    def _check_graphs(self, other: MaskOperator) -> None:
        same_batch = self.batch is other.batch or (
            self.batch is not None and other.batch is not None and torch.equal(self.batch, other.batch)
        )
        if self.num_nodes != other.num_nodes or self.num_graphs != other.num_graphs or not same_batch:
            raise ValueError(
                f'mask: {self!r} and {other!r} are bound to different graphs; accepted are masks bound to the same batch'
            )

    @property
    def _device(self) -> torch.device | None:
        return self.tensors[0].device if self.tensors else None

    @property
    def dtype(self) -> torch.dtype:
        r"""The data type of the entries."""
        floating = [tensor.dtype for tensor in self.tensors if tensor.is_floating_point()]
        return reduce(torch.promote_types, floating) if floating else torch.get_default_dtype()

    def __repr__(self) -> str:
        return (
            f'{type(self).__name__}({self.structure!r}, heads={self.heads}, num_nodes={self.num_nodes}, '
            f'num_graphs={self.num_graphs})'
        )


def reciprocal(divisor: Tensor | float) -> Tensor | float:
    r"""Returns what to multiply by in order to divide a mask."""
    if not isinstance(divisor, Tensor) and divisor == 0:
        raise ValueError(f'scale: got a division by {divisor!r}; accepted are other numbers')
    return 1.0 / divisor


def _joint_entries(
    parts: Sequence[MaskOperator], join: Callable[[SparsePattern, list[Tensor], list[Tensor]], Tensor]
) -> dict[str, Any]:
    r"""Returns the arguments of an operator made of several about its entries, which it has where all of them have any."""
    makers = [part.entries for part in parts if part.entries is not None]
    numbers = [part.num_entries for part in parts if part.num_entries is not None]
    if len(makers) < len(parts):
        return {}

    def entries() -> Entries:
        own = [make() for make in makers]
        pattern, slots = SparsePattern.union(*(part.pattern for part in own))
        dtype = reduce(torch.promote_types, (part.value.dtype for part in own))
        return Entries(pattern, join(pattern, slots, [part.value.to(dtype) for part in own]))

    return {'entries': entries, 'num_entries': sum(numbers) if len(numbers) == len(parts) else None}


def _concatenate(left: Tensor, right: Tensor) -> Tensor:
    heads = max(left.size(1), right.size(1))
    return torch.cat([left.expand(-1, heads, -1), right.expand(-1, heads, -1)], dim=-1)


def _expand(factor: Tensor, x: Tensor) -> Tensor:
    return (factor.to(x.dtype).unsqueeze(-1) * x.unsqueeze(-2)).flatten(2)
