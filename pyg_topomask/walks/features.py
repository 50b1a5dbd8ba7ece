r"""Sparse graph random features, and the entries of their masks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, starmap
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from pyg_topomask.functorch import int_or_symint, is_exporting, outside_transforms, transformable
from pyg_topomask.ops.numba_backend import Array, array_of, in_blocks, uses_numba
from pyg_topomask.ops.sparse_matmul import multiply
from pyg_topomask.segments import Segments
from pyg_topomask.sparse_pattern import SparsePattern, estimate_entries, sampled_rows, stable_argsort

# The number of meetings to sort at a time, which fits into the cache of a CPU and the memory of a GPU.
_MEETINGS, _MEETINGS_GPU = 2**18, 2**26
# The number of meetings per call of compiled code, which does not sort, and its largest number of combinations of hops.
_MEETINGS_COMPILED, _KINDS = 2**22, 63


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

    @classmethod
    def from_visits(
        cls, start: Tensor, visited: Tensor, length: Tensor, load: Tensor, num_nodes: int, max_walk_length: int
    ) -> WalkFeatures:
        r"""Adds up the loads of visits to the same node after the same number of hops."""
        key = (start.long() * num_nodes + visited) * (max_walk_length + 1) + length
        order = stable_argsort(key)
        key, group = torch.unique_consecutive(key.index_select(0, order), return_inverse=True)
        total = load.new_zeros(key.numel()).index_add_(0, group, load.index_select(0, order))
        pair = torch.div(key, max_walk_length + 1, rounding_mode='floor')
        length = key - pair * (max_walk_length + 1)
        start = torch.div(pair, num_nodes, rounding_mode='floor')
        index = torch.int32 if num_nodes < 2**31 else torch.int64
        start, visited, length = start.to(index), (pair - start * num_nodes).to(index), length.to(index)
        return cls(start, visited, length, total, num_nodes, max_walk_length)

    @property
    def nnz(self) -> int:
        return self.load.numel()

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
            new = self._first
            slot = new.cumsum(0) - 1
            first = new.nonzero().squeeze(1)
            features = SparsePattern.from_sorted(self.start[first], self.visited[first], self.num_nodes, self.num_nodes)
            return features, SparsePattern.from_sorted(slot, self.length, first.numel(), self.max_walk_length + 1)

    @property
    def pattern(self) -> SparsePattern:
        r"""The positions of the features, :math:`N \times N`."""
        return self._slots[0]

    def values(self, modulation: Tensor) -> Tensor:
        r"""Returns the features :math:`\hat{\Phi}_{iq} = \sum_l f_l P_{l,iq}` at :attr:`pattern`.

        Args:
            modulation (torch.Tensor): :math:`f`, :obj:`[H, L + 1]`.

        Returns:
            torch.Tensor: :obj:`[H, nnz]`, differentiable in :obj:`modulation`.
        """
        return _combine(self._slots[1], self.load.to(modulation.dtype), modulation)

    @cached_property
    @outside_transforms
    def squares(self) -> Tensor:
        r"""The sums :math:`\sum_q \sum_{l + l' = s} P_{l,iq} P_{l',iq}` for all :math:`s`, :obj:`[N, 2L + 1]`. They
        determine the squared norms of features whose modulation is a power.
        """
        with torch.inference_mode(False):
            if uses_numba(self.load.device) and not is_exporting():
                return _squares_compiled(self)
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

    def truncate(self, max_walk_length: int) -> WalkFeatures:
        r"""Returns the features of the first :obj:`max_walk_length` hops."""
        if max_walk_length >= self.max_walk_length:
            return self
        keep = self.length <= max_walk_length
        start, visited, length, load = (tensor[keep] for tensor in (self.start, self.visited, self.length, self.load))
        return WalkFeatures(start, visited, length, load, self.num_nodes, max_walk_length)


class PairLoads:
    r"""The entries of :math:`\hat{\mathbf{M}} = \hat{\Phi} \hat{\Psi}^{\top}` as a linear function of the modulations:

    .. math::
        \hat{M}_{ij} = \sum_{l, l'} f_l f'_{l'} \sum_u P_{l,iu} P'_{l',ju}

    The inner sums do not depend on parameters. They are computed once for all heads, layers and steps.

    Args:
        query (WalkFeatures): The loads :math:`P` of the queries' walks.
        key (WalkFeatures): The loads :math:`P'` of the keys' walks.
        dtype (torch.dtype): The data type of the computation. (default: :obj:`torch.float32`)
        kinds (str): The pairs of hops :math:`(l, l')` to combine: :obj:`"ordered"` for none; :obj:`"unordered"` for
            :math:`(l, l')` and :math:`(l', l)`, if queries and keys have the same modulation; :obj:`"sums"` for pairs with
            equal sums, if the modulations are powers. (default: :obj:`"ordered"`)
    """

    def __init__(
        self, query: WalkFeatures, key: WalkFeatures, dtype: torch.dtype = torch.float32, kinds: str = 'ordered'
    ) -> None:
        kind = _kinds(query.max_walk_length, key.max_walk_length, kinds)
        #: The hops of each kind, as indices into the products of both modulations.
        self._hops = torch.from_numpy(np.unique(kind, return_index=True)[1] if kinds == 'sums' else np.arange(kind.size))
        self._hops = self._hops.to(query.load.device)
        compiled = self._hops.numel() <= _KINDS and uses_numba(query.load.device)
        # Of sums there are few, and most pairs have loads of most of them.
        meet: Callable[..., tuple[Tensor, ...]] = _meet_compiled if compiled else _meet
        row, col, slot, of_load, load = meet(query, key, dtype, kind, kinds == 'sums')
        # Computed immediately, because torch.compile may use the entries instead of the blocks later.
        self.pattern = SparsePattern.from_sorted(row, col, query.num_nodes, query.num_nodes)
        #: The loads, or those of all kinds of each pair, :obj:`[nnz, kinds]`.
        self.loads: Tensor = load
        self._loads = None if load.dim() == 2 else SparsePattern.from_sorted(slot, of_load, row.numel(), self._hops.numel())

    def values(self, query_modulation: Tensor, key_modulation: Tensor) -> Tensor:
        r"""Returns :math:`\hat{M}` at :attr:`pattern`, :obj:`[H, nnz]`, for modulations :obj:`[H, L + 1]`."""
        outer = (query_modulation.unsqueeze(2) * key_modulation.unsqueeze(1)).flatten(1).index_select(1, self._hops)
        return outer @ self.loads.t() if self._loads is None else _combine(self._loads, self.loads, outer)


def blocks_of_sums(query: WalkFeatures, key: WalkFeatures, dtype: torch.dtype, segments: Segments) -> Tensor:
    r"""Returns the inner sums of :class:`PairLoads` for the sums :math:`l + l'` of hops, at all pairs of nodes of the same
    graph, by row, :obj:`[2L + 1, num_pairs]`.

    Args:
        query (WalkFeatures): The loads of the queries' walks.
        key (WalkFeatures): The loads of the keys' walks.
        dtype (torch.dtype): The data type to compute in.
        segments (Segments): The division of the nodes into graphs.
    """
    if uses_numba(query.load.device):
        return _blocks_compiled(query, key, dtype, segments)
    pairs = PairLoads(query, key, dtype, 'sums')
    blocks = pairs.loads.new_zeros(pairs.loads.size(1), segments.num_pairs)
    return blocks.index_copy_(1, segments.pairs(pairs.pattern.row, pairs.pattern.col), pairs.loads.t())


@torch.compiler.disable  # torch.compile would read the kernels as Python
def _blocks_compiled(query: WalkFeatures, key: WalkFeatures, dtype: torch.dtype, segments: Segments) -> Tensor:
    from pyg_topomask.walks.compiled_pairs import add_blocks

    hops = query.max_walk_length
    out = np.zeros((2 * hops + 1, segments.num_pairs), torch.empty(0, dtype=dtype).numpy().dtype)
    ptr, pairs = (array_of(x) for x in (segments.ptr, F.pad(segments.sizes.square().cumsum(0), (1, 0))))
    tables: list[Array] = []
    for walks in (query, key):
        rowptr = F.pad(torch.bincount(walks.start, minlength=walks.num_nodes).cumsum(0), (1, 0))
        tables += map(array_of, (rowptr, walks.start, walks.visited, walks.length, walks.load.to(dtype)))
    in_blocks(lambda first, last: add_blocks(first, last, ptr, pairs, *tables, hops, out), pairs, 2 * hops + 1)
    return torch.from_numpy(out)


def _kinds(query_hops: int, key_hops: int, kinds: str) -> NDArray[np.int64]:
    r"""Returns the kind of a meeting, given the hops of the query's and the key's walk."""
    hops, other = np.indices((query_hops + 1, key_hops + 1))
    if kinds == 'sums':
        return hops + other
    if kinds == 'unordered':
        hops, other = np.minimum(hops, other), np.maximum(hops, other)
    return hops * (key_hops + 1) + other


def _meet(
    query: WalkFeatures, key: WalkFeatures, dtype: torch.dtype, kind: NDArray[np.int64], every: bool
) -> tuple[Tensor, ...]:
    r"""Returns the sorted rows and columns of pairs whose walks meet, and the pair, kind and load of each kind of meeting. With
    :obj:`every`, the loads are those of all kinds, :obj:`[nnz, kinds]`.
    """
    num_nodes, width, size = query.num_nodes, kind.shape[1], int(kind.max()) + 1
    kind_of_hops = torch.from_numpy(kind).flatten().to(query.load.device)
    # Every visit of a query's walk meets every visit of a key's walk to the same node.
    by_node = stable_argsort(key.visited, num_nodes)
    of_keys = [tensor.index_select(0, by_node) for tensor in (key.start.long() * size, key.length, key.load.to(dtype))]
    visits = torch.bincount(key.visited, minlength=num_nodes)
    first, meetings = visits.cumsum(0) - visits, visits[query.visited]

    def meet(block: slice) -> tuple[Tensor, Tensor]:
        r"""Returns sorted codes of both starts and both numbers of hops, and the summed loads of these meetings."""
        number = meetings[block]
        total = int(number.sum())
        skipped = first[query.visited[block]] - (number.cumsum(0) - number)
        start = query.start[block].long() * (num_nodes * size)
        skipped, code, hops, load = (
            tensor.repeat_interleave(number, output_size=total)
            for tensor in (skipped, start, query.length[block], query.load[block].to(dtype))
        )
        other = skipped.add_(torch.arange(total, device=skipped.device))
        other_start, other_hops, other_load = (tensor.index_select(0, other) for tensor in of_keys)
        code += other_start + kind_of_hops[hops * width + other_hops]
        order = stable_argsort(code)
        code, group = torch.unique_consecutive(code.index_select(0, order), return_inverse=True)
        load *= other_load
        return code, load.new_zeros(code.numel()).index_add_(0, group, load.index_select(0, order))

    codes, loads = zip(*map(meet, _blocks(query.start, meetings)), strict=True)
    pair, combination = _divide(torch.cat(codes), size)
    pair, slot = torch.unique_consecutive(pair, return_inverse=True)
    load = torch.cat(loads)
    if every:
        load = load.new_zeros(pair.numel(), size).index_put((slot, combination), load)
    return *_divide(pair, num_nodes), slot, combination, load


@torch.compiler.disable  # torch.compile would read the kernels as Python
def _squares_compiled(walks: WalkFeatures) -> Tensor:
    from pyg_topomask.walks.compiled_pairs import add_squares

    squares = walks.load.new_zeros(walks.num_nodes, 2 * walks.max_walk_length + 1)
    arrays = (tensor.contiguous().numpy() for tensor in (walks.start, walks.visited, walks.length, walks.load))
    add_squares(*arrays, squares.size(1), squares.view(-1).numpy())
    return squares


@torch.compiler.disable
def _meet_compiled(
    query: WalkFeatures, key: WalkFeatures, dtype: torch.dtype, kind: NDArray[np.int64], every: bool
) -> tuple[Tensor, ...]:
    from pyg_topomask.walks.compiled_pairs import meet

    size = query.num_nodes
    by_node = stable_argsort(key.visited, size)
    arrays = [tensor.numpy() for tensor in (query.visited, query.length, query.load.to(dtype))]
    of_keys = [tensor.index_select(0, by_node).numpy() for tensor in (key.start, key.length, key.load.to(dtype))]
    rowptr, pointers = (F.pad(torch.bincount(x, minlength=size).cumsum(0), (1, 0)) for x in (query.start, key.visited))
    total = F.pad(pointers.diff()[query.visited].cumsum(0), (1, 0))[rowptr]
    blocks = torch.div(total[1:], _MEETINGS_COMPILED, rounding_mode='floor')
    bounds = [0, *((blocks.diff() > 0).nonzero().squeeze(1) + 1).tolist(), size]
    tables = rowptr.numpy(), tuple(arrays), pointers.numpy(), tuple(of_keys), kind
    parts = [meet(range(*bound), *tables, every) for bound in pairwise(bounds)]
    row, col, *counted, load = (torch.from_numpy(np.concatenate(column)) for column in zip(*parts, strict=True))
    if every:
        return row, col, row, col, load.view(row.numel(), int(kind.max()) + 1)
    count, combination = counted
    slot = torch.arange(row.numel(), dtype=torch.int32).repeat_interleave(count, output_size=load.numel())
    return row, col, slot, combination, load


def _combine(pattern: SparsePattern, load: Tensor, coefficients: Tensor) -> Tensor:
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


def _setup_combine(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    _, load, ctx.transpose, pattern = inputs
    ctx.save_for_backward(load, *pattern)


def _backward_combine(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    load, *pattern = ctx.saved_tensors
    return _combined_loads(grad.contiguous(), load, not ctx.transpose, pattern), None, None, [None] * len(pattern)


_combine_loads.register_autograd(_backward_combine, setup_context=_setup_combine)
_combined_loads = transformable(_combine_loads, _setup_combine, _backward_combine)


def _blocks(start: Tensor, meetings: Tensor) -> list[slice]:
    r"""Splits visits, sorted by start, into blocks with about equal numbers of meetings. Visits of a start stay together."""
    ends = F.pad(start.diff().nonzero().squeeze(1) + 1, (0, 1), value=start.numel())
    limit = _MEETINGS if start.device.type == 'cpu' else _MEETINGS_GPU
    block = torch.div(F.pad(meetings.cumsum(0), (1, 0))[ends], limit, rounding_mode='floor')
    bounds = [0, *ends[F.pad(block.diff() > 0, (0, 1), value=True)].tolist()]
    return list(starmap(slice, pairwise(bounds)))


def _divide(code: Tensor, size: int) -> tuple[Tensor, Tensor]:
    quotient = torch.div(code, max(size, 1), rounding_mode='floor')
    return quotient, code - quotient * size


def count_pairs(query: WalkFeatures, key: WalkFeatures) -> int:
    r"""Returns the number of pairs of features that meet at a node, an upper bound on the entries of :class:`PairLoads`."""
    return int_or_symint((query.visitors * key.visitors).sum())


@torch.compiler.disable  # torch.compile would read SciPy as Python
@outside_transforms
def estimate_pairs(query: WalkFeatures, key: WalkFeatures) -> int:
    r"""Estimates the number of entries of :class:`PairLoads` from a sample of rows. On a GPU, returns :func:`count_pairs`."""
    size = query.num_nodes
    if size == 0 or query.load.device.type != 'cpu' or is_exporting():
        return count_pairs(query, key)
    return estimate_entries(query.pattern.to_scipy()[sampled_rows(size)] @ key.pattern.to_scipy().T, size)
