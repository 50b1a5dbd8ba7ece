r"""A bound mask, and the algebra of operators.

A bound mask is an :math:`H \times N \times N` matrix :math:`\mathbf{M}` that is never formed. Its capabilities define it: the
product with any :math:`\mathbf{x}`, and optional factors or entries. Masked attention, transposes, sums and the dense matrix
follow from these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from numbers import Real
from typing import Any, TypeVar

import torch
from torch import Tensor

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.segments import Segments
from pyg_topomask.operators.capabilities import Blocks, LowRank, Product, SparseEntries

__all__ = ['MaskOperator']

Operand = TypeVar('Operand', bound='Arithmetic')


class Arithmetic:
    r"""What follows from sums and products: negatives, differences, quotients and :func:`sum`."""

    def __radd__(self: Operand, other: object) -> Operand:
        # sum() begins with 0.
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def __truediv__(self: Operand, divisor: Tensor | float) -> Operand:
        if isinstance(divisor, Sequence):
            divisor = torch.as_tensor(divisor)
        if isinstance(divisor, Real) and divisor == 0:
            raise ArgumentError('scale', f'a division by {divisor!r}', 'other numbers')
        return self * (1.0 / divisor)  # type: ignore[operator, return-value]

    def __neg__(self: Operand) -> Operand:
        return self * -1.0  # type: ignore[operator, return-value]

    def __sub__(self: Operand, other: Operand) -> Operand:
        return self + (-other) if isinstance(other, Arithmetic) else NotImplemented  # type: ignore[operator]


@dataclass(eq=False, repr=False)
class MaskOperator(Arithmetic):
    r"""A mask bound to the nodes of a batch of graphs: an :math:`H \times N \times N` matrix, block-diagonal over the graphs.

    Operators add (:obj:`a + b`), scale (:obj:`2.0 * a`, or a tensor with one number per head), transpose (:obj:`a.T`), and
    multiply entrywise (:obj:`a * b`) if one of them has low rank. Masks also multiply if both are sparse.

    Args:
        segments (Segments): The division of the :math:`N` nodes into graphs.
        heads (int): The number of heads :math:`H`; :obj:`1` broadcasts to any number of heads.
        product (Product): The product with the mask.
        low_rank (LowRank, optional): The factors of a low-rank mask. (default: :obj:`None`)
        entries (SparseEntries, optional): The entries of a sparse mask. (default: :obj:`None`)
        blocks (Blocks, optional): The blocks of the graphs. (default: :obj:`None`)
    """

    segments: Segments
    heads: int
    product: Product
    low_rank: LowRank | None = None
    entries: SparseEntries | None = None
    blocks: Blocks | None = None
    #: The operators joined by :meth:`side_by_side`, which attention may apply one at a time.
    operators: tuple[MaskOperator, ...] = field(default=(), init=False)

    @classmethod
    def side_by_side(cls, *operators: MaskOperator) -> MaskOperator:
        r"""Concatenates two or more operators on the same graphs along the heads. The heads of the first come first."""
        first, *rest = operators
        for operator in rest:
            first._check_graphs(operator)
        heads = [operator.heads for operator in operators]
        joined = first._combined(operators, sum(heads), 'side_by_side', heads)
        joined.operators = operators
        return joined

    def matmul(self, x: Tensor) -> Tensor:
        r"""Returns :math:`\mathbf{M}_h \mathbf{x}_h` for every head :math:`h`; :obj:`x` has shape :obj:`[N, H, c]`."""
        fits = x.dim() == 3 and x.size(0) == self.segments.num_nodes and self.heads in (1, x.size(1))
        if not fits or not x.is_floating_point():
            heads = 'H' if self.heads == 1 else self.heads
            raise ArgumentError(
                'x',
                f'shape {tuple(x.shape)} of {x.dtype}',
                f'floating point numbers of shape [{self.segments.num_nodes}, {heads}, channels]',
            )
        # Sparse products do not support shorter types, in which sums would saturate.
        dtype = torch.promote_types(x.dtype, torch.float32)
        with torch.autocast(device_type=x.device.type, enabled=False):
            return self.product(x.to(dtype)).to(x.dtype)

    def to_dense(self) -> Tensor:
        r"""Returns the matrix, :obj:`[H, N, N]`, for tests and plots. This costs :math:`O(H N^2)`."""
        self._refuse_shards()
        eye = torch.eye(self.segments.num_nodes, dtype=self.dtype, device=self.segments.device)
        return self.matmul(eye.unsqueeze(1).expand(-1, self.heads, -1)).permute(1, 0, 2)

    def to_linear_operator(self, check: bool = True) -> Any:
        r"""Returns the matrix as a :class:`LinearOperator` of the library `linear_operator
        <https://github.com/cornellius-gp/linear_operator>`_, which computes solves, log-determinants and samples from products
        with it, and never forms it. Its shape is :obj:`[N, N]` for one head, and else :obj:`[H, N, N]`. Rows and columns are
        selected by nodes, as in :obj:`matrix[nodes][:, others]`. Gradients flow to the parameters of the mask. The diagonal of
        a mask estimated by walks, and its root :math:`\hat{\Phi}` in :obj:`matrix.root_decomposition().root`, take
        :math:`O(nnz)`. The diagonal of other masks takes a product for each node.

        Args:
            check (bool): Multiply 22 vectors to find that the matrix is symmetric, and that it has no negative eigenvalue.
                Not every negative eigenvalue is found. :obj:`False` skips this. (default: :obj:`True`)

        Raises:
            ValueError: If :obj:`check=True` and the matrix is asymmetric or has a negative eigenvalue.
            ImportError: If linear_operator is not installed.
        """
        from pyg_topomask.operators.linear_operator import MaskLinearOperator, check_covariance

        self._refuse_shards()
        heads = torch.arange(self.heads, device=self.segments.device)
        matrix = MaskLinearOperator(
            heads.squeeze(0) if self.heads == 1 else heads,
            *self.product.tensors,
            structure=self.product.structure,
            size=(self.segments.num_nodes, self.heads),
        )
        if check:
            check_covariance(matrix)
        return matrix

    @property
    def T(self) -> MaskOperator:
        r"""The transpose, head by head."""
        return self._changed(self.heads, 'transposed')

    def scaled(self, scale: Tensor) -> MaskOperator:
        r"""Returns the operator times a number, or times one number per head, :obj:`[H]`."""
        check_scale(scale, self.heads)
        changed = self._changed(max(self.heads, scale.numel()), 'scaled', scale)
        if self.blocks is not None:  # no other change keeps them
            changed.blocks = self.blocks.scaled(scale)
        return changed

    def __add__(self, other: MaskOperator) -> MaskOperator:
        if not isinstance(other, MaskOperator):
            return NotImplemented
        heads = self._common_heads(other)
        return self._combined((self, other), heads, 'plus', heads)

    def __mul__(self, other: MaskOperator | Tensor | float) -> MaskOperator:
        if isinstance(other, MaskOperator):
            heads = self._common_heads(other)
            if other.low_rank is not None:
                return self._changed(heads, 'hadamard', other.low_rank)
            if self.low_rank is not None:
                return other._changed(heads, 'hadamard', self.low_rank)
            raise ArgumentError(
                'mask',
                f'the entrywise product of {self!r} and {other!r}',
                'products with a mask of low rank, a number, or a tensor with one number per head',
            )
        if isinstance(other, (int, float)):
            if not abs(other) <= torch.finfo(self.dtype).max:
                raise ArgumentError('scale', repr(other), f'finite numbers of {self.dtype}')
            other = torch.tensor(float(other), dtype=self.dtype, device=self.segments.device)
        return self.scaled(other) if isinstance(other, Tensor) else NotImplemented

    __rmul__ = __mul__

    def _changed(self, heads: int, change: str, *arguments: Any) -> MaskOperator:
        r"""Returns the operator with transformed capabilities."""
        capabilities = (self.product, self.low_rank, self.entries)
        changed: list[Any] = [None if each is None else getattr(each, change)(*arguments) for each in capabilities]
        return MaskOperator(self.segments, heads, *changed)

    def _combined(self, operators: Sequence[MaskOperator], heads: int, combine: str, argument: Any) -> MaskOperator:
        r"""Returns the operator with the combined capabilities that all operators share."""
        combined: list[Any] = []
        for name in ('product', 'low_rank', 'entries'):
            terms = [getattr(operator, name) for operator in operators]
            combined.append(None if None in terms else getattr(terms[0], combine)(terms, argument))
        return MaskOperator(self.segments, heads, *combined)

    def _common_heads(self, other: MaskOperator) -> int:
        self._check_graphs(other)
        if self.heads != other.heads and 1 not in (self.heads, other.heads):
            raise ArgumentError('heads', f'masks with {self.heads} and {other.heads} heads', 'equal numbers, or 1')
        return max(self.heads, other.heads)

    def _check_graphs(self, other: MaskOperator) -> None:
        if not self.segments.equal(other.segments):
            raise ArgumentError('mask', f'{self!r} and {other!r} of different graphs', 'masks bound to the same batch')

    def _refuse_shards(self) -> None:
        if self.segments.shard is not None:
            raise ArgumentError('graph', repr(self.segments.shard), 'a graph of one process')

    @property
    def dtype(self) -> torch.dtype:
        r"""The data type of the entries."""
        floating = [tensor.dtype for tensor in self.product.tensors if tensor.is_floating_point()]
        return reduce(torch.promote_types, floating) if floating else torch.get_default_dtype()

    def __repr__(self) -> str:
        return (
            f'{type(self).__name__}({self.product.structure!r}, heads={self.heads}, num_nodes={self.segments.num_nodes}, '
            f'num_graphs={self.segments.num_graphs})'
        )


def check_scale(scale: Tensor, heads: int) -> None:
    r"""Raises a :class:`ValueError` unless a tensor is a number, or has one number for each head."""
    if scale.dim() > 1 or scale.numel() == 0 or (scale.numel() != 1 and heads not in (1, scale.numel())):
        raise ArgumentError(
            'scale',
            f'a tensor of shape {tuple(scale.shape)} for {heads} heads',
            'a number, a tensor without dimensions, and a tensor of shape [heads]',
        )
