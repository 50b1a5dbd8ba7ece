r"""Operators on a sharded graph, whose products communicate.

They take and return the rows of this process, :obj:`[n, H, c]`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from pyg_topomask.distributed.communication import all_rows, some_rows, sum_before, sum_over_processes
from pyg_topomask.distributed.halo import BY_NUMBER, Halo, ShardEntries
from pyg_topomask.distributed.shard import Shard, ShardSegments
from pyg_topomask.operators.base import Composite, LowRank, MaskOperator, Multiply, Size, low_rank_within
from pyg_topomask.operators.composed import Alternatives
from pyg_topomask.operators.exponential import positive_off_diagonal, relative_error
from pyg_topomask.operators.sparse import Sparse, formed_sparse


@dataclass(eq=False, repr=False, kw_only=True)
class ShardLowRank(LowRank):
    r""":math:`\mathbf{A} \mathbf{B}^{\top}`: a sum over all nodes, then factors of each node of this process."""

    shard: int

    def apply(self, x: Tensor) -> Tensor:
        left, right = self.left.to(x.dtype), self.right.to(x.dtype)
        sums = torch.stack([(right[..., rank, None] * x).sum(0) for rank in range(right.size(-1))])
        sums = sum_over_processes(sums, BY_NUMBER[self.shard].group)
        terms = [left[..., rank, None] * each for rank, each in enumerate(sums)]
        return sum(terms[1:], start=terms[0])


@low_rank_within.register
def low_rank_within_on_shard(segments: ShardSegments, left: Tensor, right: Tensor) -> ShardLowRank:
    return ShardLowRank(
        left,
        right,
        segments.index,
        segments.ptr,
        shard=segments.shard.number,
        segments=segments,
        heads=max(left.size(1), right.size(1)),
    )


@dataclass(eq=False, repr=False)
class HaloRows(Composite):
    r"""The rows of this process of a mask on the extended nodes, or of its transpose, for which the product of every process
    with its rows is sent to the nodes that it belongs to.
    """

    inner: MaskOperator
    halo: int
    transposed: bool = False

    def combined(self, multiply: Multiply, x: Tensor, size: Size) -> Tensor:
        halo: Halo = BY_NUMBER[self.halo]
        if self.transposed:
            return halo.scatter(multiply(self.inner, halo.pad(x)))
        return multiply(self.inner, halo.gather(x))[: halo.num_nodes]

    @property
    def T(self) -> HaloRows:
        return replace(self, inner=self.inner.T, transposed=not self.transposed)


@formed_sparse.register
def formed_sparse_on_shard(entries: ShardEntries) -> HaloRows:
    formed = entries()
    return HaloRows(Sparse(formed.value, formed.pattern), entries.halo.number)


def rows_of_shard(graph: Shard, halo: Halo, operator: MaskOperator) -> MaskOperator:
    r"""Returns the rows of this process of an operator on the extended nodes."""
    entries = operator.entries
    listed = None if entries is None else ShardEntries(entries.make, entries.max_nnz, halo=halo, union=graph.union)
    rows = HaloRows(operator, halo.number)
    return Alternatives(rows, listed, segments=graph.segments, heads=operator.heads)


@dataclass(eq=False, repr=False)
class ShardPolynomial(MaskOperator):
    r""":math:`\sum_k c_k \mathbf{B}^k` or, with Chebyshev polynomials, :math:`\sum_k c_k T_k(\mathbf{B})`, one product at a
    time, for :math:`c` of shape :obj:`[H or 1, K + 1]`. The largest entry of :obj:`x` in the graph times the error of Chebyshev
    polynomials is added to the magnitude.
    """

    coefficients: Tensor
    matrix: HaloRows
    shard: int
    method: str = 'powers'
    error: float = 0.0

    def apply(self, x: Tensor) -> Tensor:
        coefficients = self.coefficients.to(x.dtype).unsqueeze(-1)
        before = current = x
        out = coefficients[:, 0] * x
        for k in range(1, coefficients.size(1)):
            product = self.matrix.apply(current)
            before, current = current, 2.0 * product - before if self.method == 'chebyshev' and k > 1 else product
            out = out + coefficients[:, k] * current
        return out

    def magnitude(self, x: Tensor) -> Tensor:
        if self.method == 'powers':
            return super().magnitude(x)
        matrix = self.matrix.inner
        assert isinstance(matrix, Sparse)  # a square matrix on the extended nodes
        positive = replace(matrix, value=positive_off_diagonal(matrix.value, matrix.pattern))
        product = replace(self, matrix=replace(self.matrix, inner=positive)).apply(x).clamp(min=0.0)
        largest = BY_NUMBER[self.shard].group.maximum(x.amax(0, keepdim=True))
        return product + relative_error(self.error, x.dtype) * largest

    @property
    def T(self) -> MaskOperator:
        return replace(self, matrix=self.matrix.T)


@dataclass(eq=False, repr=False)
class ShardPrefixSum(MaskOperator):
    r"""Prefix sums over the nodes of all processes: those of this process, plus the sums of the processes before it, or after
    it.
    """

    inner: MaskOperator
    shard: int
    after: bool = False

    def apply(self, x: Tensor) -> Tensor:
        return self.inner.apply(x) + sum_before(x.sum(0), BY_NUMBER[self.shard].group, self.after)

    @property
    def T(self) -> MaskOperator:
        return replace(self, inner=self.inner.T, after=not self.after)


@dataclass(eq=False, repr=False)
class ShardColumns(Composite):
    r"""A mask on all nodes, multiplied by some of the columns in each process."""

    inner: MaskOperator
    shard: int

    def combined(self, multiply: Multiply, x: Tensor, size: Size) -> Tensor:
        shard: Shard = BY_NUMBER[self.shard]
        columns = all_rows(x, shard.group, shard.sizes)
        if shard.new_of_original is not None:
            columns = columns.index_select(0, shard.new_of_original)
        columns = multiply(self.inner, columns)
        if shard.original_of_new is not None:
            columns = columns.index_select(0, shard.original_of_new)
        return some_rows(columns, shard.group, shard.sizes, x.size(2))

    @property
    def T(self) -> MaskOperator:
        return replace(self, inner=self.inner.T)
