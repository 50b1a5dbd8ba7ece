r"""Walks of queries that meet walks of keys: the entries of the masks of graph random features."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import cached_property, partial, singledispatch
from itertools import pairwise, starmap
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.graphs.segments import Segments
from pyg_topomask.graphs.sparse_pattern import SparsePattern, estimate_entries, sampled_rows, stable_argsort
from pyg_topomask.machine.backend import call_kernel, kernel, uses_numba
from pyg_topomask.operators.forms import Entries, SparseEntries
from pyg_topomask.utils.functorch import LoopedFunction, int_or_symint, is_exporting, kept, outside_transforms
from pyg_topomask.walks.features import WalkFeatures, combine_loads
from pyg_topomask.walks.settings import WalkSettings
from pyg_topomask.walks.walk import learned_walks, sample_ensembles, sample_walks

# The number of meetings to sort at a time, which fits into the cache of a CPU and the memory of a GPU.
_MEETINGS, _MEETINGS_GPU = 2**18, 2**26
# The number of meetings per call of compiled code, which does not sort, and its largest number of combinations of hops.
_MEETINGS_COMPILED, _KINDS = 2**22, 63


# The pattern of the pairs that meet, that of the loads (pair, kind), or None for loads of all kinds, and the loads.
_Loads = tuple[SparsePattern, SparsePattern | None, Tensor]


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
        meet: Callable[..., _Loads] = _meet_compiled if compiled else _meet
        #: The loads, or those of all kinds of each pair, :obj:`[nnz, kinds]`.
        self.loads: Tensor
        # Computed immediately, because torch.compile may use the entries instead of the blocks later. Of sums there are few,
        # and most pairs have loads of most of them.
        self.pattern, self._loads, self.loads = meet(query, key, dtype, kind, kinds == 'sums')

    def values(self, query_modulation: Tensor, key_modulation: Tensor) -> Tensor:
        r"""Returns :math:`\hat{M}` at :attr:`pattern`, :obj:`[H, nnz]`, for modulations :obj:`[H, L + 1]`."""
        outer = (query_modulation.unsqueeze(2) * key_modulation.unsqueeze(1)).flatten(1).index_select(1, self._hops)
        return outer @ self.loads.t() if self._loads is None else combine_loads(self._loads, self.loads, outer)


def blocks_of_sums(query: WalkFeatures, key: WalkFeatures, dtype: torch.dtype, segments: Segments) -> Tensor:
    r"""Returns the inner sums of :class:`PairLoads` for the sums :math:`l + l'` of hops, at all pairs of nodes of the same
    graph, by row, :obj:`[2L + 1, num_pairs]`.
    """
    if uses_numba(query.load.device):
        arguments = query.visits(dtype), key.visits(dtype), query.max_walk_length, segments.ptr
        return call_kernel('pairs.blocks_of_sums', query.load.device, *arguments)
    pairs = PairLoads(query, key, dtype, 'sums')
    blocks = pairs.loads.new_zeros(pairs.loads.size(1), segments.num_pairs)
    return blocks.index_copy_(1, segments.pairs(pairs.pattern.row, pairs.pattern.col), pairs.loads.t())


def _kinds(query_hops: int, key_hops: int, kinds: str) -> NDArray[np.int64]:
    r"""Returns the kind of a meeting, given the hops of the query's and the key's walk."""
    hops, other = np.indices((query_hops + 1, key_hops + 1))
    if kinds == 'sums':
        return hops + other
    if kinds == 'unordered':
        hops, other = np.minimum(hops, other), np.maximum(hops, other)
    return hops * (key_hops + 1) + other


def _meet(query: WalkFeatures, key: WalkFeatures, dtype: torch.dtype, kind: NDArray[np.int64], every: bool) -> _Loads:
    r"""Returns the loads of all meetings. With :obj:`every`, they are those of all kinds, :obj:`[nnz, kinds]`."""
    num_nodes, width, size = query.num_nodes, kind.shape[1], int(kind.max()) + 1
    kind_of_hops = torch.from_numpy(kind).flatten().to(query.load.device)
    # Every visit of a query's walk meets every visit of a key's walk to the same node.
    by_node = stable_argsort(key.visited, num_nodes)
    of_keys = [tensor.index_select(0, by_node) for tensor in (key.start.long() * size, key.length, key.load.to(dtype))]
    visits = torch.bincount(key.visited, minlength=num_nodes)
    first, meetings = visits.cumsum(0) - visits, visits[query.visited]

    def meet(chunk: slice) -> tuple[Tensor, Tensor]:
        r"""Returns sorted codes of both starts and both numbers of hops, and the summed loads of these meetings."""
        number = meetings[chunk]
        total = int(number.sum())
        skipped = first[query.visited[chunk]] - (number.cumsum(0) - number)
        start = query.start[chunk].long() * (num_nodes * size)
        skipped, code, hops, load = (
            tensor.repeat_interleave(number, output_size=total)
            for tensor in (skipped, start, query.length[chunk], query.load[chunk].to(dtype))
        )
        other = skipped.add_(torch.arange(total, device=skipped.device))
        other_start, other_hops, other_load = (tensor.index_select(0, other) for tensor in of_keys)
        code += other_start + kind_of_hops[hops * width + other_hops]
        order = stable_argsort(code)
        code, group = torch.unique_consecutive(code.index_select(0, order), return_inverse=True)
        load *= other_load
        return code, load.new_zeros(code.numel()).index_add_(0, group, load.index_select(0, order))

    codes, loads = zip(*map(meet, _chunks(query.start, meetings)), strict=True)
    pair, combination = _divide(torch.cat(codes), size)
    pair, slot = torch.unique_consecutive(pair, return_inverse=True)
    load = torch.cat(loads)
    pattern = SparsePattern.from_sorted(*_divide(pair, num_nodes), num_nodes, num_nodes)
    if every:
        return pattern, None, load.new_zeros(pair.numel(), size).index_put((slot, combination), load)
    return pattern, SparsePattern.from_sorted(slot, combination, pair.numel(), size), load


def _meet_compiled(query: WalkFeatures, key: WalkFeatures, dtype: torch.dtype, kind: NDArray[np.int64], every: bool) -> _Loads:
    arguments = query.visits(dtype), key.visits(dtype), query.num_nodes, kind, every, _MEETINGS_COMPILED
    pattern, loads, load = call_kernel('pairs.meet', query.load.device, *arguments)
    return SparsePattern(*pattern, num_cols=query.num_nodes), None if every else SparsePattern(*loads), load


def _chunks(start: Tensor, meetings: Tensor) -> list[slice]:
    r"""Splits visits, sorted by start, into chunks with about equal numbers of meetings. Visits of a start stay together."""
    ends = F.pad(start.diff().nonzero().squeeze(1) + 1, (0, 1), value=start.numel())
    limit = _MEETINGS if start.device.type == 'cpu' else _MEETINGS_GPU
    chunk = torch.div(F.pad(meetings.cumsum(0), (1, 0))[ends], limit, rounding_mode='floor')
    bounds = [0, *ends[F.pad(chunk.diff() > 0, (0, 1), value=True)].tolist()]
    return list(starmap(slice, pairwise(bounds)))


def _divide(code: Tensor, size: int) -> tuple[Tensor, Tensor]:
    quotient = torch.div(code, max(size, 1), rounding_mode='floor')
    return quotient, code - quotient * size


def count_pairs(query: WalkFeatures, key: WalkFeatures) -> int:
    r"""Returns the number of pairs of features that meet at a node, an upper bound on the entries of :class:`PairLoads`."""
    return int_or_symint((query.visitors * key.visitors).sum())


@torch.compiler.disable  # torch.compile would read machine code as Python
@outside_transforms
def estimate_pairs(query: WalkFeatures, key: WalkFeatures) -> int:
    r"""Estimates the number of entries of :class:`PairLoads` from a sample of rows. Without machine code, returns
    :func:`count_pairs`.
    """
    size, count = query.num_nodes, kernel('pairs.counts_met', query.load.device)
    if size == 0 or count is None or is_exporting():
        return count_pairs(query, key)
    return estimate_entries(count(query.visits(), key.visits(), size, sampled_rows(size)), size)


@dataclass(frozen=True)
class Meetings:
    r"""The meetings of the walks of queries and keys: which products of features the entries of a mask add up.

    Args:
        pattern (SparsePattern): The positions of the entries.
        slot (torch.Tensor): The entry of each meeting.
        query (torch.Tensor): The feature of the query in each meeting.
        key (torch.Tensor): The feature of the key in each meeting.
    """

    pattern: SparsePattern
    slot: Tensor
    query: Tensor
    key: Tensor

    @classmethod
    @outside_transforms
    def of(cls, query: SparsePattern, key: SparsePattern) -> Meetings:
        r"""Returns the meetings in nodes that both visit, given the positions of the features."""
        if compiled := kernel('pairs.list_meetings', query.col.device):
            return cls(*compiled(query, key))
        visited, first = query.col.long(), key.rowptr_t.long()
        count = first.diff().index_select(0, visited)
        of_query = torch.arange(query.nnz, device=count.device).repeat_interleave(count)
        place = torch.arange(of_query.numel(), device=count.device) + (first[visited] - (count.cumsum(0) - count))[of_query]
        ends = query.row[of_query], key.col_t[place]  # the rows of features are ascending
        pattern, slot = SparsePattern.from_pairs(*ends, query.num_rows, key.num_rows, by_row=True)
        return cls(pattern, slot, of_query, key.perm_t[place].long())

    def entries(self, query: Tensor, key: Tensor) -> Tensor:
        r"""Returns the entries, :obj:`[H, nnz]`, for the features of queries and keys, in the same shape."""
        places = self.query, self.key, self.slot
        return _Products.apply(query.t().contiguous(), key.t().contiguous(), *places, self.pattern.nnz).t().contiguous()


class _Products(LoopedFunction):
    r"""Adds products of rows, :math:`\mathbf{z}_{c_m} = \sum_m \mathbf{x}_{a_m} \odot \mathbf{y}_{b_m}`, :obj:`[size, H]`. The
    gradients are such sums too.
    """

    @staticmethod
    def forward(x: Tensor, y: Tensor, of_x: Tensor, of_y: Tensor, of_sum: Tensor, size: int) -> Tensor:
        total = x.new_zeros(size, x.size(1))
        if compiled := kernel('pairs.add_products', x.device):
            return compiled(x, y, of_x, of_y, of_sum, total)
        return total.index_add_(0, of_sum, x.index_select(0, of_x) * y.index_select(0, of_y))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        *tensors, _ = inputs
        ctx.save_for_backward(*tensors)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        x, y, of_x, of_y, of_sum = ctx.saved_tensors
        grad = grads[0].contiguous()
        grad_x = _Products.apply(grad, y, of_sum, of_y, of_x, x.size(0)) if ctx.needs_input_grad[0] else None
        grad_y = _Products.apply(x, grad, of_x, of_sum, of_y, y.size(0)) if ctx.needs_input_grad[1] else None
        return grad_x, grad_y, None, None, None, None


@dataclass
class PairedWalks:
    r"""The walks of the queries and of the keys of a mask, which may be the same."""

    query: WalkFeatures
    key: WalkFeatures
    #: The walks stitched to these.
    stitched: tuple[PairedWalks, ...] = ()
    #: The mask blocks of the graphs.
    cache: dict[Hashable, Any] = field(default_factory=dict)
    _pairs: dict[Hashable, PairLoads] = field(default_factory=dict)

    def renumbered(self, place: Tensor) -> PairedWalks:
        r"""Returns the walks on nodes with other numbers, :obj:`[N]`."""
        query = self.query.renumbered(place)
        key = query if self.key is self.query else self.key.renumbered(place)
        return PairedWalks(query, key, tuple(state.renumbered(place) for state in self.stitched))

    @cached_property
    def num_features(self) -> int:
        each = (int_or_symint(walks.visitors.sum()) for walks in (self.query, self.key))
        return sum(each) + sum(state.num_features for state in self.stitched)

    @cached_property
    def num_pairs(self) -> int:
        return count_pairs(self.query, self.key)

    @cached_property
    def estimated_entries(self) -> int:
        return estimate_pairs(self.query, self.key)

    def listed(self, make: Callable[[PairedWalks], Entries], estimated: bool = False) -> SparseEntries | None:
        r"""Returns the entries that a function makes of the walks, with a bound of their number, or an estimate. On shards, it
        makes them of the walks that meet walks of this process, if these are few.
        """
        return SparseEntries(lambda: make(self), self.estimated_entries if estimated else self.num_pairs)

    @property
    def learned(self) -> bool:
        r"""Whether loads hand gradients on to edge weights."""
        return self.query.load.requires_grad

    def entries(self, query_modulation: Tensor, key_modulation: Tensor) -> Entries:
        r"""Returns the entries of the mask for modulations of shape :obj:`[H, L + 1]`."""
        if self.learned:
            query = self.query.values(query_modulation)
            same = self.key is self.query and key_modulation is query_modulation
            return self.products(query, query if same else self.key.values(key_modulation))
        pairs = self.pairs(query_modulation.dtype, 'unordered' if key_modulation is query_modulation else 'ordered')
        return Entries(pairs.pattern, pairs.values(query_modulation, key_modulation))

    def products(self, query: Tensor, key: Tensor) -> Entries:
        r"""Returns the entries of the mask of features of queries and keys, :obj:`[H, nnz]`, which hand gradients on."""
        make = partial(Meetings.of, self.query.pattern, self.key.pattern)
        meetings = kept(self.query.shared, 'meetings', make) if self.key is self.query else make()
        return Entries(meetings.pattern, meetings.entries(query, key))

    def pairs(self, dtype: torch.dtype, kinds: str) -> PairLoads:
        r"""Returns the loads of all pairs of meeting walks, computed once."""
        known = self._pairs.get((dtype, kinds))
        return known or kept(self._pairs, (dtype, kinds), lambda: self._meet(dtype, kinds))

    def _meet(self, dtype: torch.dtype, kinds: str) -> PairLoads:
        if is_exporting():
            raise ArgumentError('mask', 'entries of a mask estimated by walks on a new graph', 'a Graph that was used before')
        return PairLoads(self.query, self.key, dtype, kinds)


@singledispatch
def paired_walks(
    graph: Graph,
    settings: WalkSettings,
    seed: int | None,
    generator: torch.Generator | None,
    again: bool,
    learned: bool = False,
) -> PairedWalks:
    r"""Samples walks as :func:`~pyg_topomask.walks.walk.sample_ensembles`. More walks may follow :obj:`again`. Shards sample
    those from their nodes. Loads hand gradients on to :obj:`learned` edge weights.
    """
    sample = partial(learned_walks, keep=seed is not None) if learned else sample_walks
    return PairedWalks(*sample_ensembles(graph, settings, seed, generator, sample))
