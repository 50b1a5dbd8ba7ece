r"""Sparse graph random features."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from pyg_topomask.graphs.graph import Graph
from pyg_topomask.graphs.sparse_pattern import SparsePattern, stable_argsort
from pyg_topomask.machine.backend import call_kernel, uses_numba
from pyg_topomask.operators.base import MaskOperator
from pyg_topomask.operators.sparse import sparse_operator
from pyg_topomask.operators.sparse_matmul import multiply, sddmm
from pyg_topomask.utils.functorch import int_or_symint, is_exporting, outside_transforms, transformable


@dataclass
class WalkFeatures:
    r"""The loads that walks deposit, from `"Linear Transformer Topological Masking with Graph Random Features"
    <https://arxiv.org/abs/2410.03462>`_ (Eq. 10), before the modulation :math:`f` is applied:

    .. math::
        P_{l,iq} = \frac{1}{n} \sum_{k=1}^{n} \sum_{\omega_{iq} : len(\omega_{iq}) = l}
        \frac{\tilde{\omega}(\omega_{iq})}{p(\omega_{iq})} \, \mathbb{I}(\omega_{iq} \text{ prefix subwalk of } \omega_k^{(i)}),
        \qquad \mathbb{E} \, P_{l} = \mathbf{W}^l

    Entries are distinct and sorted by start, visited node and length.

    Args:
        start (torch.Tensor): The start node :math:`i` of the walks, :obj:`[nnz]`.
        visited (torch.Tensor): The visited node :math:`q`, :obj:`[nnz]`.
        length (torch.Tensor): The number of hops :math:`l` before the visit, :obj:`[nnz]`.
        load (torch.Tensor): :math:`P_{l,iq}`, :obj:`[nnz]`.
        num_nodes (int): The number of nodes.
        max_walk_length (int): The largest number of hops :math:`L`.
    """

    start: Tensor
    visited: Tensor
    length: Tensor
    load: Tensor
    num_nodes: int
    max_walk_length: int
    #: What the positions decide.
    shared: dict[Hashable, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    @classmethod
    def from_visits(
        cls, start: Tensor, visited: Tensor, length: Tensor, load: Tensor, num_nodes: int, max_walk_length: int
    ) -> WalkFeatures:
        r"""Adds up the loads of visits to the same node after the same number of hops."""
        return cls.merged(start, visited, length, load, num_nodes, max_walk_length)[0]

    @classmethod
    def merged(
        cls, start: Tensor, visited: Tensor, length: Tensor, load: Tensor, num_nodes: int, max_walk_length: int
    ) -> tuple[WalkFeatures, Tensor]:
        r"""As :meth:`from_visits`, also returns the entry of each visit."""
        key = (start.long() * num_nodes + visited) * (max_walk_length + 1) + length
        order = stable_argsort(key)
        key, group = torch.unique_consecutive(key.index_select(0, order), return_inverse=True)
        total = load.new_zeros(key.numel()).index_add_(0, group, load.index_select(0, order))
        pair = torch.div(key, max_walk_length + 1, rounding_mode='floor')
        length = key - pair * (max_walk_length + 1)
        start = torch.div(pair, num_nodes, rounding_mode='floor')
        index = torch.int32 if num_nodes < 2**31 else torch.int64
        start, visited, length = start.to(index), (pair - start * num_nodes).to(index), length.to(index)
        slot = torch.empty_like(group).index_copy_(0, order, group)
        return cls(start, visited, length, total, num_nodes, max_walk_length), slot

    @property
    def nnz(self) -> int:
        return self.load.numel()

    def visits(self, dtype: torch.dtype | None = None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        r"""Returns start, visited node, length and load, the latter in the given data type."""
        return self.start, self.visited, self.length, self.load.to(dtype)

    @property
    def _first(self) -> Tensor:
        r"""Whether an entry is the first of its start and visited node, :obj:`[nnz]`."""
        new = torch.ones(self.nnz, dtype=torch.bool, device=self.load.device)
        new[1:] = (self.start[1:] != self.start[:-1]) | (self.visited[1:] != self.visited[:-1])
        return new

    @cached_property
    @outside_transforms
    def visitors(self) -> Tensor:
        r"""The number of nodes whose walks visit each node, :obj:`[N]`. They add up to the number of features."""
        count = torch.zeros(self.num_nodes, dtype=torch.long, device=self.load.device)
        return count.index_add_(0, self.visited, self._first.long())

    @cached_property
    @outside_transforms
    def _slots(self) -> tuple[SparsePattern, SparsePattern]:
        r"""The patterns of the features :math:`\hat{\Phi}` (start, visited) and of the loads (feature, length)."""
        with torch.inference_mode(False):  # kept, and possibly used in training later
            kinds = self.max_walk_length + 1
            narrow = self.visited.dtype == torch.int32 and self.nnz < 2**31
            if narrow and uses_numba(self.load.device) and not is_exporting():
                visits = self.start, self.visited, self.length
                patterns = call_kernel('patterns.patterns_of_visits', self.load.device, *visits, self.num_nodes, kinds)
                return SparsePattern(*patterns[0]), SparsePattern(*patterns[1])
            new = self._first
            slot = new.cumsum(0) - 1
            first = new.nonzero().squeeze(1)
            features = SparsePattern.from_sorted(self.start[first], self.visited[first], self.num_nodes, self.num_nodes)
            return features, SparsePattern.from_sorted(slot, self.length, first.numel(), kinds)

    @property
    def pattern(self) -> SparsePattern:
        r"""The positions of the features, :math:`N \times N`."""
        return self._slots[0]

    def values(self, modulation: Tensor) -> Tensor:
        r"""Returns the features :math:`\hat{\Phi}_{iq} = \sum_l f_l P_{l,iq}` at :attr:`pattern`, :obj:`[H, nnz]`, for a
        modulation :math:`f` of shape :obj:`[H, L + 1]`, in which they are differentiable.
        """
        return combine_loads(self._slots[1], self.load.to(modulation.dtype), modulation)

    @cached_property
    @outside_transforms
    def squares(self) -> Tensor:
        r"""The sums :math:`\sum_q \sum_{l + l' = s} P_{l,iq} P_{l',iq}` for all :math:`s`, :obj:`[N, 2L + 1]`. They
        determine the squared norms of features whose modulation is a power.
        """
        with torch.inference_mode(False):
            if uses_numba(self.load.device) and not is_exporting():
                squares: Tensor = call_kernel(
                    'pairs.squares', self.load.device, self.visits(), self.num_nodes, self.max_walk_length
                )
                return squares
            loads = self._slots[1]
            count = loads.rowptr.diff()[loads.row]
            total, each = int_or_symint(count.sum()), torch.arange(self.nnz, device=self.load.device)
            one = each.repeat_interleave(count, output_size=total)
            start = loads.rowptr[:-1][loads.row] - (count.cumsum(0) - count)
            other = torch.arange(total, device=one.device) + start[one]
            place = self.start.long()[one] * (2 * self.max_walk_length + 1) + self.length[one] + self.length[other]
            squares = self.load.new_zeros(self.num_nodes, 2 * self.max_walk_length + 1)
            squares.view(-1).index_add_(0, place, self.load[one] * self.load[other])
            return squares

    def operator(self, graph: Graph, value: Tensor, heads: int) -> MaskOperator:
        r"""Returns the mask of features :obj:`value` at :attr:`pattern`, :obj:`[H, nnz]`. Walks on shards have another one."""
        return sparse_operator(graph, self.pattern, value, heads)

    def renumbered(self, place: Tensor) -> WalkFeatures:
        r"""Returns the features of nodes with other numbers, :obj:`[N]`."""
        start, visited = place[self.start], place[self.visited]
        return self.from_visits(start, visited, self.length, self.load, self.num_nodes, self.max_walk_length)

    def with_loads(self, load: Tensor) -> WalkFeatures:
        r"""Returns features with other loads, :obj:`[nnz]`, at the same positions, which share what depends on these alone."""
        features = copy(self)
        features.load = load
        return features

    def truncate(self, max_walk_length: int) -> WalkFeatures:
        r"""Returns the features of the first :obj:`max_walk_length` hops."""
        if max_walk_length >= self.max_walk_length:
            return self
        keep = self.length <= max_walk_length
        start, visited, length, load = (tensor[keep] for tensor in (self.start, self.visited, self.length, self.load))
        return WalkFeatures(start, visited, length, load, self.num_nodes, max_walk_length)


def combine_loads(pattern: SparsePattern, load: Tensor, coefficients: Tensor) -> Tensor:
    r"""Sums loads, weighted by the coefficients of their kinds, :obj:`[H, kinds]`, for all heads in one product."""
    return _combined_loads(coefficients.contiguous(), load, False, list(pattern.tensors))


# A custom operator, because torch.compile does not trace sparse tensors.
@torch.library.custom_op(
    'pyg_topomask::combine_loads',
    mutates_args=(),
    schema='(Tensor coefficients, Tensor load, bool transpose, Tensor[] pattern) -> Tensor',
)
def _combine_loads(coefficients: Tensor, load: Tensor, transpose: bool, pattern: Sequence[Tensor]) -> Tensor:
    loads = SparsePattern(*pattern)
    rowptr, col = (loads.rowptr_t, loads.col_t) if transpose else (loads.rowptr, loads.col)
    out = coefficients.new_empty(coefficients.size(0), rowptr.numel() - 1)
    # Heads are contiguous columns of the product, so nothing is permuted before or after.
    multiply(rowptr, col, load.index_select(0, loads.perm_t) if transpose else load, coefficients.t(), out=out.t())
    return out


@_combine_loads.register_fake
def _(coefficients: Tensor, load: Tensor, transpose: bool, pattern: Sequence[Tensor]) -> Tensor:
    num_rows = pattern[2 if transpose else 0].shape[0] - 1
    return coefficients.new_empty(coefficients.shape[0], num_rows)


def _setup(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    coefficients, load, ctx.transpose, pattern = inputs
    ctx.save_for_backward(coefficients, load, *pattern)


def _backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    coefficients, load, *pattern = ctx.saved_tensors
    grad_load = None
    if ctx.needs_input_grad[1]:
        rows, columns = (coefficients, grad) if ctx.transpose else (grad, coefficients)
        grad_load = sddmm(SparsePattern(*pattern), *(x.t().unsqueeze(1).contiguous() for x in (rows, columns))).squeeze(0)
    grad_coefficients = _combined_loads(grad.contiguous(), load, not ctx.transpose, pattern)
    return grad_coefficients, grad_load, None, [None] * len(pattern)


_combine_loads.register_autograd(_backward, setup_context=_setup)
_combined_loads = transformable(_combine_loads, _setup, _backward)
