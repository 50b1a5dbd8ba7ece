r"""How masks multiply on a sharded graph: structures whose products communicate.

They take and return the rows of this process, :obj:`[n, H, c]`. Most of them wrap the structure of a mask.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from pyg_topomask.distributed.collectives import all_rows, some_rows, sum_before, sum_over_processes
from pyg_topomask.distributed.halo import BY_NUMBER, Halo
from pyg_topomask.operators.exp_action import positive_off_diagonal, relative_error
from pyg_topomask.operators.structures import Combination, MaskStructure


@dataclass(frozen=True)
class SummedStructure(MaskStructure):
    r""":math:`\mathbf{A} \mathbf{B}^{\top}`: a sum over all nodes, then factors of each. Tensors: the factors of the nodes of
    this process, :obj:`[n, H or 1, r]`.

    Args:
        shard (int): The number of the graph.
    """

    shard: int

    def apply(self, tensors: Sequence[Tensor], x: Tensor) -> Tensor:
        left, right = (factor.to(x.dtype) for factor in tensors)
        sums = torch.stack([(right[..., rank, None] * x).sum(0) for rank in range(right.size(-1))])
        sums = sum_over_processes(sums, BY_NUMBER[self.shard].group)
        terms = [left[..., rank, None] * each for rank, each in enumerate(sums)]
        return sum(terms[1:], start=terms[0])

    def transpose(self, tensors: Sequence[Tensor]) -> tuple[MaskStructure, tuple[Tensor, ...]]:
        left, right = tensors
        return self, (right, left)


@dataclass(frozen=True)
class HaloStructure(Combination):
    r"""The rows of this process of a mask on the extended nodes, or of its transpose.

    Args:
        inner (MaskStructure): How it multiplies on the extended nodes.
        halo (int): The number of their halo.
        transposed (bool): The product of every process with its rows is sent to the nodes that it belongs to.
            (default: :obj:`False`)
    """

    inner: MaskStructure
    halo: int
    transposed: bool = False

    def _combine(self, method: str, tensors: Sequence[Tensor], x: Tensor) -> Tensor:
        halo: Halo = BY_NUMBER[self.halo]
        multiply = getattr(self.inner, method)
        if self.transposed:
            return halo.scatter(multiply(tensors, halo.pad(x)))
        return multiply(tensors, halo.gather(x))[: halo.num_nodes]

    def transpose(self, tensors: Sequence[Tensor]) -> tuple[MaskStructure, tuple[Tensor, ...]]:
        inner, transposed = self.inner.transpose(tensors)
        return HaloStructure(inner, self.halo, not self.transposed), transposed


@dataclass(frozen=True)
class ShardPolynomialStructure(MaskStructure):
    r""":math:`\sum_k c_k \mathbf{B}^k` or, with Chebyshev polynomials, :math:`\sum_k c_k T_k(\mathbf{B})`, one product at a
    time. Tensors: the coefficients, :obj:`[H or 1, K + 1]`, and those of :math:`\mathbf{B}`, whose entries come first.

    Args:
        inner (MaskStructure): How :math:`\mathbf{B}` multiplies.
        chebyshev (bool): Whether the polynomials are those of Chebyshev. (default: :obj:`False`)
        error (float): What is added to the magnitude, times the largest entry of the graph. (default: :obj:`0.0`)
        shard (int): The number of the graph. (default: :obj:`-1`)
    """

    inner: MaskStructure
    chebyshev: bool = False
    error: float = 0.0
    shard: int = -1

    def apply(self, tensors: Sequence[Tensor], x: Tensor) -> Tensor:
        coefficients, *matrix = tensors
        coefficients = coefficients.to(x.dtype).unsqueeze(-1)
        before = current = x
        out = coefficients[:, 0] * x
        for k in range(1, coefficients.size(1)):
            product = self.inner.apply(matrix, current)
            before, current = current, 2.0 * product - before if self.chebyshev and k > 1 else product
            out = out + coefficients[:, k] * current
        return out

    def magnitude(self, tensors: Sequence[Tensor], x: Tensor) -> Tensor:
        coefficients, value, *pattern = tensors
        if not self.chebyshev:
            return self.apply((coefficients.abs(), value.abs(), *pattern), x)
        # Pattern and entries are those of a square matrix on the extended nodes.
        product = self.apply((coefficients, positive_off_diagonal(value, pattern), *pattern), x).clamp(min=0.0)
        largest = BY_NUMBER[self.shard].group.maximum(x.amax(0, keepdim=True))
        return product + relative_error(self.error, x.dtype) * largest

    def transpose(self, tensors: Sequence[Tensor]) -> tuple[MaskStructure, tuple[Tensor, ...]]:
        inner, matrix = self.inner.transpose(tensors[1:])
        return replace(self, inner=inner), (tensors[0], *matrix)


@dataclass(frozen=True)
class ScanStructure(MaskStructure):
    r"""Prefix sums over the nodes of all processes: those of this process, plus the sums of the processes before it.

    Args:
        inner (MaskStructure): The prefix sums of the nodes of this process.
        shard (int): The number of the graph.
        after (bool): Suffix sums. (default: :obj:`False`)
    """

    inner: MaskStructure
    shard: int
    after: bool = False

    def apply(self, tensors: Sequence[Tensor], x: Tensor) -> Tensor:
        return self.inner.apply(tensors, x) + sum_before(x.sum(0), BY_NUMBER[self.shard].group, self.after)

    def transpose(self, tensors: Sequence[Tensor]) -> tuple[MaskStructure, tuple[Tensor, ...]]:
        inner, transposed = self.inner.transpose(tensors)
        return ScanStructure(inner, self.shard, not self.after), transposed


@dataclass(frozen=True)
class ColumnsStructure(Combination):
    r"""A mask on all nodes, multiplied by some of the columns in each process.

    Args:
        inner (MaskStructure): How it multiplies on all nodes.
        shard (int): The number of the graph.
    """

    inner: MaskStructure
    shard: int

    def _combine(self, method: str, tensors: Sequence[Tensor], x: Tensor) -> Tensor:
        shard = BY_NUMBER[self.shard]
        columns = all_rows(x, shard.group, shard.sizes)
        if shard.new_of_original is not None:
            columns = columns.index_select(0, shard.new_of_original)
        columns = getattr(self.inner, method)(tensors, columns)
        if shard.original_of_new is not None:
            columns = columns.index_select(0, shard.original_of_new)
        return some_rows(columns, shard.group, shard.sizes, x.size(2))

    def transpose(self, tensors: Sequence[Tensor]) -> tuple[MaskStructure, tuple[Tensor, ...]]:
        inner, transposed = self.inner.transpose(tensors)
        return ColumnsStructure(inner, self.shard), transposed
