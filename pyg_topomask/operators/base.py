r"""A bound mask, and the algebra of operators.

A bound mask is an :math:`H \times N \times N` matrix :math:`\mathbf{M}` that is never formed. An operator multiplies with it,
and says where else it is cheap: at its entries, by its factors, or in prepared blocks. Sums, multiples, transposes, entrywise
products and chains of operators are operators.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce, singledispatch
from numbers import Real
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.nn.functional import pad

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.graphs.segments import Segments
from pyg_topomask.operators.description import build, describe, register
from pyg_topomask.operators.forms import PreparedBlocks, Slots, SparseEntries, entries_of_heads, sum_of_entries
from pyg_topomask.utils.precision import wide_dtype

__all__ = ['LowRank', 'MaskOperator']

Operand = TypeVar('Operand', bound='Arithmetic')
Value = TypeVar('Value')


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
class MaskOperator(Arithmetic, ABC):
    r"""A mask bound to the nodes of a batch of graphs: an :math:`H \times N \times N` matrix, block-diagonal over the graphs.

    Operators add (:obj:`a + b`), scale (:obj:`2.0 * a`, or a tensor with one number per head), transpose (:obj:`a.T`), and
    multiply entrywise (:obj:`a * b`) if one of them has low rank. Masks also multiply if both are sparse.

    A subclass is a dataclass whose fields are tensors, other operators and settings. It implements :meth:`apply` and :attr:`T`,
    and overrides what it knows better.

    Args:
        segments (Segments): The division of the :math:`N` nodes into graphs. Operators that custom operators of torch build
            know none, and only multiply.
        heads (int): The number of heads :math:`H`; :obj:`1` broadcasts to any number of heads. (default: :obj:`1`)
        cost (int): Multiplications of a product per head and column, which the choice of route compares. (default: :obj:`0`)
    """

    segments: Segments = field(default=None, kw_only=True)  # type: ignore[assignment]
    heads: int = field(default=1, kw_only=True)
    cost: int = field(default=0, kw_only=True)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        register(cls)

    @abstractmethod
    def apply(self, x: Tensor) -> Tensor:
        r"""Returns :math:`\mathbf{M} \mathbf{x}` for :obj:`x` of shape :obj:`[N, H, c]`. Pure and differentiable."""

    @property
    @abstractmethod
    def T(self) -> MaskOperator:
        r"""The transpose, head by head."""

    def rows(self, slots: Slots, dtype: torch.dtype) -> Tensor:
        r"""Returns the rows of nodes at some positions of each graph, :obj:`[N, H or 1, S]`: at node :math:`j` the entries
        :math:`M_{ij}` for the nodes :math:`i` at these positions in its graph, and any numbers beyond the graph.

        The default is a product with unit vectors. An operator whose products round entries of 0 overrides it.
        """
        return self.T.apply(slots.units(dtype).unsqueeze(1).expand(-1, self.heads, -1))

    def magnitude(self, x: Tensor) -> Tensor:
        r"""Returns :math:`|\mathbf{M}| \mathbf{x}` for :math:`\mathbf{x} \ge 0`, or an upper bound of it. A row whose
        denominator is below rounding errors relative to this bound counts as a zero row.

        The default is the product with the absolute values of the tensors. An operator that subtracts overrides it.
        """
        tensors, text = describe(self)
        absolute = [tensor.abs() if tensor.is_floating_point() else tensor for tensor in tensors]
        operator: MaskOperator = build(text, absolute)
        return operator.apply(x)

    @property
    def entries(self) -> SparseEntries | None:
        r"""The entries of a sparse mask, which are formed when they are called for."""
        return None

    @property
    def is_low_rank(self) -> bool:
        r"""Whether there is :attr:`low_rank`, which takes time to form."""
        return False

    @property
    def low_rank(self) -> LowRank | None:
        r"""A mask of low rank, by its factors."""
        return None

    @property
    def blocks(self) -> PreparedBlocks | None:
        r"""The blocks of small graphs, if they are combinations of blocks that no parameter changes."""
        return None

    def formed(self) -> MaskOperator:
        r"""Returns the operator itself, or the product of :class:`Alternatives`, which is then formed."""
        return self

    def diagonal(self) -> Tensor | None:
        r"""Returns the diagonal, :obj:`[N, H]`, or :obj:`None` if only products with unit vectors give it."""
        return None

    def root(self) -> MaskOperator | None:
        r"""Returns an :math:`\mathbf{R}` with :math:`\mathbf{M} = \mathbf{R} \mathbf{R}^{\top}`, or :obj:`None` if none is
        known.
        """
        return None

    def has_machine_code(self) -> bool:
        r"""Returns whether there is machine code of attention and of its gradients, where Numba is used."""
        return False

    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        r"""Returns :math:`\sum_j M_{ij} \, \mathbf{q}_i^{\top} \mathbf{k}_j \, \mathbf{v}_j`, :obj:`[N, H, d]`, by machine
        code.
        """
        raise NotImplementedError

    def attend_backward(self, learnable: Sequence[int], q: Tensor, k: Tensor, v: Tensor, grad: Tensor) -> list[Tensor]:
        r"""Returns the gradients of queries, keys, values and some tensors from that of :meth:`attend`."""
        raise NotImplementedError

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
        dtype = wide_dtype(x)
        with torch.autocast(device_type=x.device.type, enabled=False):
            return self.apply(x.to(dtype)).to(x.dtype)

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
        heads, (tensors, text) = torch.arange(self.heads, device=self.segments.device), describe(self)
        matrix = MaskLinearOperator(
            heads.squeeze(0) if self.heads == 1 else heads,
            *tensors,
            text=text,
            size=(self.segments.num_nodes, self.heads),
        )
        if check:
            check_covariance(matrix)
        return matrix

    def scaled(self, scale: Tensor) -> MaskOperator:
        r"""Returns the operator times a number, or times one number per head, :obj:`[H]`."""
        check_scale(scale, self.heads)
        return Scaled(scale, self)

    def __add__(self, other: MaskOperator) -> MaskOperator:
        return Sum((self, other)) if isinstance(other, MaskOperator) else NotImplemented

    def __mul__(self, other: MaskOperator | Tensor | float) -> MaskOperator:
        if isinstance(other, MaskOperator):
            check_graphs((self, other))
            common_heads((self, other))
            for inner, given in ((self, other), (other, self)):
                if (factors := given.low_rank) is not None:
                    return Hadamard(factors.left, factors.right, inner)
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

    def _refuse_shards(self) -> None:
        if not self.segments.is_whole:
            raise ArgumentError('graph', repr(self.segments), 'a graph of one process')

    @property
    def dtype(self) -> torch.dtype:
        r"""The data type of the entries."""
        floating = [tensor.dtype for tensor in describe(self)[0] if tensor.is_floating_point()]
        return reduce(torch.promote_types, floating) if floating else torch.get_default_dtype()

    def __repr__(self) -> str:
        segments: Segments | None = self.segments
        sizes = '' if segments is None else f', num_nodes={segments.num_nodes}, num_graphs={segments.num_graphs}'
        return f'{type(self).__name__}(heads={self.heads}{sizes})'


#: Multiplies an operator with a tensor; and returns a factor, or its magnitude.
Multiply = Callable[[MaskOperator, Tensor], Tensor]
Size = Callable[[Tensor], Tensor]


@dataclass(eq=False, repr=False)
class Composite(MaskOperator):
    r"""An operator whose products combine those of other operators, and whose magnitudes combine magnitudes alike."""

    @abstractmethod
    def combined(self, multiply: Multiply, x: Tensor, size: Size) -> Tensor:
        r"""Returns the product with :obj:`x`, given the function that multiplies another operator with a tensor, and the one
        that its factors go through.
        """

    def apply(self, x: Tensor) -> Tensor:
        return self.combined(lambda operator, x: operator.apply(x), x, lambda factor: factor)

    def magnitude(self, x: Tensor) -> Tensor:
        return self.combined(lambda operator, x: operator.magnitude(x), x, torch.abs)


def check_scale(scale: Tensor, heads: int) -> None:
    r"""Raises a :class:`ValueError` unless a tensor is a number, or has one number for each head."""
    if scale.dim() > 1 or scale.numel() == 0 or (scale.numel() != 1 and heads not in (1, scale.numel())):
        raise ArgumentError(
            'scale',
            f'a tensor of shape {tuple(scale.shape)} for {heads} heads',
            'a number, a tensor without dimensions, and a tensor of shape [heads]',
        )


def check_graphs(operators: Sequence[MaskOperator]) -> Segments:
    r"""Returns the graphs that operators have in common. Raises an error if they are bound to different ones."""
    first, *rest = operators
    for operator in rest:
        if first.segments is not None and not first.segments.equal(operator.segments):
            raise ArgumentError('mask', f'{first!r} and {operator!r} of different graphs', 'masks bound to the same batch')
    return first.segments


def common_heads(operators: Sequence[MaskOperator]) -> int:
    r"""Returns the number of heads of a combination of operators. Raises an error unless their numbers are equal or 1."""
    heads = max(operator.heads for operator in operators)
    for operator in operators:
        if operator.heads not in (1, heads):
            raise ArgumentError('heads', f'masks with {operator.heads} and {heads} heads', 'equal numbers, or 1')
    return heads


@dataclass(eq=False, repr=False)
class LowRank(MaskOperator):
    r""":math:`\mathbf{A} \mathbf{B}^{\top}` within each graph.

    Args:
        left (torch.Tensor): :math:`\mathbf{A}`, :obj:`[N, H or 1, r]`.
        right (torch.Tensor): :math:`\mathbf{B}`, likewise.
        index (torch.Tensor): The graph of each node, :obj:`[N]`.
        ptr (torch.Tensor): The first node of each graph, and :math:`N`, :obj:`[B + 1]`.
    """

    left: Tensor
    right: Tensor
    index: Tensor
    ptr: Tensor

    def apply(self, x: Tensor) -> Tensor:
        left, right = self.left.to(x.dtype), self.right.to(x.dtype)
        out = torch.zeros_like(x)
        for rank in range(left.size(-1)):
            out = out + left[..., rank, None] * self.sum_over_graphs(right[..., rank, None] * x)
        return out

    def rows(self, slots: Slots, dtype: torch.dtype) -> Tensor:
        return slots.low_rank_rows(self.left.to(dtype), self.right.to(dtype))

    def sum_over_graphs(self, x: Tensor) -> Tensor:
        r"""Returns the sum over the graph of each node, :obj:`[N or 1, H, c]`."""
        if self.ptr.numel() == 2:
            return x.sum(0, keepdim=True)
        # In float64, because these sums run sequentially over whole graphs.
        sums = x.new_zeros(self.ptr.numel() - 1, *x.shape[1:], dtype=torch.float64).index_add(0, self.index, x.double())
        return sums.to(x.dtype).index_select(0, self.index)

    @property
    def T(self) -> LowRank:
        return replace(self, left=self.right, right=self.left)

    @property
    def is_low_rank(self) -> bool:
        return True

    @property
    def low_rank(self) -> LowRank:
        return self

    def with_factors(self, left: Tensor, right: Tensor) -> LowRank:
        r"""Returns an operator with other factors on the same graphs."""
        heads, cost = max(left.size(1), right.size(1)), left.size(0) * left.size(-1)
        return replace(self, left=left, right=right, heads=heads, cost=cost)


def low_rank_operator(graph: Graph, left: Tensor, right: Tensor) -> MaskOperator:
    r"""Binds a low-rank mask: :math:`\mathbf{M} = \mathbf{A} \mathbf{B}^{\top}` within each graph, and 0 between graphs. A
    product costs :math:`O(N r)`.

    Args:
        graph (Graph): The graphs.
        left (torch.Tensor): :math:`\mathbf{A}`, :obj:`[N, heads, r]`, or :obj:`[N, 1, r]` for all heads. Gradients flow to it.
        right (torch.Tensor): :math:`\mathbf{B}`, with one of these shapes.

    Raises:
        ValueError: If the factors do not fit each other or the nodes.

    Example:
        >>> import torch
        >>> graph = Graph.from_tensors(torch.empty(2, 0, dtype=torch.long), num_nodes=2)
        >>> low_rank_operator(graph, torch.tensor([[[1.0]], [[2.0]]]), torch.tensor([[[3.0]], [[4.0]]])).to_dense()
        tensor([[[3., 4.],
                 [6., 8.]]])
    """
    shapes = tuple(left.shape), tuple(right.shape)
    fit = all(len(shape) == 3 and shape[0] == graph.num_nodes for shape in shapes)
    if not fit or left.size(2) != right.size(2) or len({left.size(1), right.size(1)} - {1}) > 1:
        raise ArgumentError(
            'left, right',
            f'shapes {shapes[0]} and {shapes[1]} for {graph.num_nodes} nodes',
            '[N, heads, r] and [N, 1, r], with equal r',
        )
    return low_rank_within(graph.segments, left, right)


@singledispatch
def low_rank_within(segments: Segments, left: Tensor, right: Tensor) -> MaskOperator:
    r"""Returns the operator with the given factors. Nodes of several processes have another one."""
    heads, cost = max(left.size(1), right.size(1)), segments.num_nodes * left.size(-1)
    return LowRank(left, right, segments.index, segments.ptr, segments=segments, heads=heads, cost=cost)


@dataclass(eq=False, repr=False)
class Scaled(Composite):
    r""":math:`c_h \mathbf{M}_h` for one number :math:`c`, or one for each head."""

    scale: Tensor
    inner: MaskOperator

    def __post_init__(self) -> None:
        self.segments, self.cost = self.inner.segments, self.inner.cost
        self.heads = max(self.inner.heads, self.scale.numel())

    def combined(self, multiply: Multiply, x: Tensor, size: Size) -> Tensor:
        return multiply(self.inner, x) * size(self.scale.to(x.dtype)).unsqueeze(-1)

    def rows(self, slots: Slots, dtype: torch.dtype) -> Tensor:
        return self.inner.rows(slots, dtype) * self.scale.to(dtype).unsqueeze(-1)

    @property
    def T(self) -> MaskOperator:
        return Scaled(self.scale, self.inner.T)

    @property
    def entries(self) -> SparseEntries | None:
        entries = self.inner.entries
        return None if entries is None else entries.scaled(self.scale)

    @property
    def is_low_rank(self) -> bool:
        return self.inner.is_low_rank

    @property
    def low_rank(self) -> LowRank | None:
        given = self.inner.low_rank
        if given is None:
            return None
        return given.with_factors(given.left * self.scale.to(given.left.dtype).unsqueeze(-1), given.right)

    @property
    def blocks(self) -> PreparedBlocks | None:
        blocks = self.inner.blocks
        return None if blocks is None else blocks.scaled(self.scale)


@dataclass(eq=False, repr=False)
class Hadamard(Composite):
    r"""The entrywise product with a mask of low rank, :math:`\mathbf{A} \mathbf{B}^{\top}` with factors :obj:`[N, H or 1, r]`:
    :math:`(\mathbf{M} \circ \mathbf{A} \mathbf{B}^{\top}) \mathbf{x} = \sum_r \mathbf{a}_r \circ \mathbf{M} (\mathbf{b}_r \circ
    \mathbf{x})`.
    """

    left: Tensor
    right: Tensor
    inner: MaskOperator

    def __post_init__(self) -> None:
        self.segments, self.cost = self.inner.segments, self.inner.cost * self.left.size(-1)
        self.heads = max(self.inner.heads, self.left.size(1), self.right.size(1))

    def combined(self, multiply: Multiply, x: Tensor, size: Size) -> Tensor:
        ranks = zip(_ranks(size(self.left), x), _ranks(size(self.right), x), strict=True)
        return sum((a * multiply(self.inner, b * x) for a, b in ranks), start=torch.zeros_like(x))

    def rows(self, slots: Slots, dtype: torch.dtype) -> Tensor:
        return self.inner.rows(slots, dtype) * slots.low_rank_rows(self.left.to(dtype), self.right.to(dtype))

    @property
    def T(self) -> MaskOperator:
        return Hadamard(self.right, self.left, self.inner.T)

    @property
    def entries(self) -> SparseEntries | None:
        entries = self.inner.entries
        return None if entries is None else entries.weighted(self.left, self.right)

    @property
    def is_low_rank(self) -> bool:
        return self.inner.is_low_rank

    @property
    def low_rank(self) -> LowRank | None:
        given = self.inner.low_rank
        if given is None:
            return None
        return given.with_factors(_products(self.left, given.left), _products(self.right, given.right))


def _ranks(factor: Tensor, x: Tensor) -> tuple[Tensor, ...]:
    return factor.to(x.dtype).unsqueeze(-2).unbind(-1)


def _products(factor: Tensor, x: Tensor) -> Tensor:
    return (factor.to(x.dtype).unsqueeze(-1) * x.unsqueeze(-2)).flatten(2)


@dataclass(eq=False, repr=False)
class _Terms(Composite):
    r"""A combination of masks that is sparse, or of low rank, if all of them are."""

    terms: tuple[MaskOperator, ...]

    @property
    def is_low_rank(self) -> bool:
        return all(term.is_low_rank for term in self.terms)


def _all_or_none(values: Sequence[Value | None]) -> list[Value] | None:
    r"""Returns the values, or :obj:`None` if one of them is missing."""
    present = [value for value in values if value is not None]
    return present if len(present) == len(values) else None


@dataclass(eq=False, repr=False)
class Sum(_Terms):
    r""":math:`\sum_i \mathbf{M}_i`."""

    def __post_init__(self) -> None:
        self.segments, self.heads = check_graphs(self.terms), common_heads(self.terms)
        self.cost = sum(term.cost for term in self.terms)

    def combined(self, multiply: Multiply, x: Tensor, size: Size) -> Tensor:
        return reduce(torch.add, (multiply(term, x) for term in self.terms))

    def rows(self, slots: Slots, dtype: torch.dtype) -> Tensor:
        return reduce(torch.add, (term.rows(slots, dtype) for term in self.terms))

    @property
    def T(self) -> MaskOperator:
        return Sum(tuple(term.T for term in self.terms))

    @property
    def entries(self) -> SparseEntries | None:
        entries = _all_or_none([term.entries for term in self.terms])
        return None if entries is None else sum_of_entries(entries, self.heads)

    @property
    def low_rank(self) -> LowRank | None:
        given = _all_or_none([term.low_rank for term in self.terms])
        if given is None:
            return None
        left, right = (
            torch.cat([getattr(each, side).expand(-1, self.heads, -1) for each in given], dim=-1) for side in ('left', 'right')
        )
        return given[0].with_factors(left, right)


@dataclass(eq=False, repr=False)
class Heads(_Terms):
    r"""Masks side by side: the first acts on the first heads, and so on. Widths are the numbers of heads of each."""

    widths: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        self.widths = self.widths or tuple(term.heads for term in self.terms)
        self.segments, self.heads = check_graphs(self.terms), sum(self.widths)
        costs = (term.cost * width for term, width in zip(self.terms, self.widths, strict=True))
        self.cost = sum(costs) // self.heads

    def combined(self, multiply: Multiply, x: Tensor, size: Size) -> Tensor:
        return torch.cat(list(map(multiply, self.terms, x.split(self.widths, dim=1))), dim=1)

    def rows(self, slots: Slots, dtype: torch.dtype) -> Tensor:
        parts = zip(self.terms, self.widths, strict=True)
        return torch.cat([term.rows(slots, dtype).expand(-1, width, -1) for term, width in parts], dim=1)

    @property
    def T(self) -> MaskOperator:
        return Heads(tuple(term.T for term in self.terms), self.widths)

    @property
    def entries(self) -> SparseEntries | None:
        entries = _all_or_none([term.entries for term in self.terms])
        return None if entries is None else entries_of_heads(entries, self.widths)

    @property
    def low_rank(self) -> LowRank | None:
        given = _all_or_none([term.low_rank for term in self.terms])
        if given is None:
            return None
        rank = max(each.left.size(-1) for each in given)

        def joined(factors: Sequence[Tensor]) -> Tensor:
            # Masks of a lower rank have zero factors.
            dtype = reduce(torch.promote_types, (each.dtype for each in factors))
            each_head = (each.expand(-1, width, -1) for each, width in zip(factors, self.widths, strict=True))
            return torch.cat([pad(each.to(dtype), (0, rank - each.size(-1))) for each in each_head], dim=1)

        return given[0].with_factors(joined([each.left for each in given]), joined([each.right for each in given]))
