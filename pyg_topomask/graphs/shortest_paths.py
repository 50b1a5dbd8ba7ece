r"""Pairs of nodes within a number of edges, and the weights of edges along the shortest paths between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy
import torch
from torch import Tensor

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.locality import inverse
from pyg_topomask.graphs.segments import Segments
from pyg_topomask.graphs.sparse_pattern import SparsePattern, count_within, stable_argsort
from pyg_topomask.machine.backend import kernel
from pyg_topomask.utils.functorch import outside_transforms

# The largest number of pairs to list, which needs about four gigabytes.
_MOST_PAIRS = 2**26


# A custom operator, because neither torch.compile nor torch.export reads SciPy.
@torch.library.custom_op(
    'pyg_topomask::pairs_within', mutates_args=(), schema='(Tensor[] pattern, int max_hops) -> (Tensor, Tensor, Tensor)'
)
def pairs_within(tensors: Sequence[Tensor], max_hops: int) -> tuple[Tensor, Tensor, Tensor]:
    r"""Returns the pairs of nodes within :obj:`max_hops` edges, in ascending order, and their distances."""
    pattern = SparsePattern(*tensors)
    if pattern.num_rows**2 > _MOST_PAIRS:
        _check_count(count_within(pattern, max_hops), max_hops)
    if compiled := kernel('patterns.pairs_within', pattern.col.device):
        count, pairs = compiled(pattern, max_hops, _MOST_PAIRS)
        _check_count(count, max_hops)
        return pairs
    edges, ring = pattern.to_scipy(), scipy.sparse.eye_array(pattern.num_rows, dtype=bool, format='csr')
    reached, steps = ring, ring.astype(np.int32)  # of each pair, one more than its distance
    for hops in range(1, max_hops + 1):
        ring = (ring @ edges) > reached
        if ring.nnz == 0:
            break
        reached, steps = reached + ring, steps + (hops + 1) * ring.astype(np.int32)
        _check_count(reached.nnz, max_hops)
    steps.sort_indices()
    row = np.repeat(np.arange(pattern.num_rows), np.diff(steps.indptr))
    start, visited, length = (torch.from_numpy(array).to(pattern.col) for array in (row, steps.indices, steps.data - 1))
    return start, visited, length


@pairs_within.register_fake
def _(tensors: Sequence[Tensor], max_hops: int) -> tuple[Tensor, Tensor, Tensor]:
    count = torch.library.get_ctx().new_dynamic_size()
    start, visited, length = (tensors[0].new_empty(count) for _ in range(3))
    return start, visited, length


def _check_count(count: int, max_hops: int) -> None:
    if count > _MOST_PAIRS:
        given = f'{max_hops} hops on a graph with about {count:,} pairs of nodes within this distance'
        accepted = f'up to {_MOST_PAIRS:,} pairs: use fewer hops, or PowerSeriesMask or GRFMask, which do not list pairs'
        raise ArgumentError('max_hops', given, accepted)


@dataclass(frozen=True)
class Hops:
    r"""The pairs of nodes within a number of hops, in ascending order, and their distances, :obj:`[nnz]`."""

    row: Tensor
    col: Tensor
    distance: Tensor
    num_nodes: int

    @property
    def nnz(self) -> int:
        return self.distance.numel()

    @cached_property
    @outside_transforms
    def pattern(self) -> SparsePattern:
        with torch.inference_mode(False):  # kept, and possibly used in training later
            return SparsePattern.from_sorted(self.row, self.col, self.num_nodes, self.num_nodes, with_transpose=False)

    def labels(self, segments: Segments) -> Tensor:
        r"""Returns the labels of :class:`StoredHops`."""
        labels = torch.zeros(1, segments.num_pairs, dtype=torch.int16, device=segments.device)
        labels[0, segments.pairs(self.row, self.col)] = 1 + self.distance.to(torch.int16)
        return labels


# The number of edges before pairs that are looked at in one go.
_CANDIDATES = 2**22


@dataclass(frozen=True)
class LastSteps:
    r"""The last edges of all shortest paths between the nodes of listed pairs, those of short paths first. A path from
    :math:`j` to :math:`i` that ends with the edge :math:`(k, i)` is a path from :math:`j` to :math:`k` before.
    """

    pair: Tensor  # the place of (i, j) among the pairs of equal distance, [T]
    edge: Tensor  # the number of the edge (k, i), [T]
    before: Tensor  # the place of (k, j) among the pairs of the distance before, [T]
    share: Tensor  # how many of the shortest paths of the pair end with this edge, as a share, [T]
    steps: list[int]  # the number of steps for each distance from 1 on
    pairs: list[int]  # the number of pairs for each distance from 0 on
    rank: Tensor  # the place of each pair if they are ordered by their distance, [nnz]

    @classmethod
    @outside_transforms
    def of(cls, pattern: SparsePattern, distance: Tensor, row: Tensor, col: Tensor, dtype: torch.dtype) -> LastSteps:
        r"""Finds the steps.

        Args:
            pattern (SparsePattern): The pairs.
            distance (torch.Tensor): Their distances, :obj:`[nnz]`.
            row (torch.Tensor): The row of each edge in the adjacency matrix, :obj:`[E]`.
            col (torch.Tensor): The column of each edge, :obj:`[E]`.
            dtype (torch.dtype): The data type of the shares.
        """
        with torch.inference_mode(False):  # kept, and possibly used in training later
            find = kernel('shortest_paths.last_steps', distance.device) or _last_steps
            pair, edge, before = find(pattern, distance, row, col)
            distance = distance.long()
            pairs, rank = distance.bincount(), inverse(stable_argsort(distance))
            place = rank - (pairs.cumsum(0) - pairs).index_select(0, distance)  # among the pairs of equal distance
            steps = distance.index_select(0, pair).bincount().tolist()[1:]
            pair, before = (place.index_select(0, found) for found in (pair, before))
            share = _shares(pair, before, steps, pairs.tolist())
            return cls(pair, edge, before, share.to(dtype), steps, pairs.tolist(), rank)

    def products(self, weight: Tensor, largest: bool) -> Tensor:
        r"""Returns the mean over the shortest paths of the product of the weights of their edges, :obj:`[nnz]`, or the largest
        of the products, if no weight is negative.
        """
        value = weight.new_ones(self.pairs[0] if self.pairs else 0)
        values, each = [value], (self.pair, self.edge, self.before, self.share)
        for size, pair, edge, before, share in zip(self.pairs[1:], *(part.split(self.steps) for part in each), strict=True):
            product = weight.index_select(0, edge) * value.index_select(0, before)
            if largest:
                value = weight.new_zeros(size).scatter_reduce(0, pair, product, 'amax', include_self=False)
            else:
                value = weight.new_zeros(size).index_add(0, pair, share * product)
            values.append(value)
        return torch.cat(values).index_select(0, self.rank)


def _shares(pair: Tensor, before: Tensor, steps: list[int], pairs: list[int]) -> Tensor:
    r"""Returns which share of the shortest paths of a pair ends with each step, in float64."""
    paths = torch.ones(pairs[0] if pairs else 0, dtype=torch.float64, device=pair.device)
    shares = [paths[:0]]
    for size, of_pair, of_rest in zip(pairs[1:], pair.split(steps), before.split(steps), strict=True):
        count = paths.index_select(0, of_rest)
        paths = paths.new_zeros(size).index_add(0, of_pair, count).clamp(min=1e-300)
        shares.append(count / paths.index_select(0, of_pair))
        paths = paths / paths.max()  # their number may be beyond the range of float64
    return torch.cat(shares)


def _last_steps(pattern: SparsePattern, distance: Tensor, row: Tensor, col: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    r"""Returns the last edges of all shortest paths, with the places of their pairs and of the pairs before, by distance."""
    order, count = stable_argsort(row, pattern.num_rows), row.bincount(minlength=pattern.num_rows)
    first = count.cumsum(0) - count
    start, visited = pattern.row.long(), pattern.col.long()
    key, found = start * pattern.num_cols + visited, [(start[:0], start[:0], start[:0])]
    ends = count.index_select(0, start).cumsum(0)  # of the candidates of each pair
    parts = torch.div(ends, _CANDIDATES, rounding_mode='floor').unique_consecutive(return_counts=True)[1].tolist()
    for pairs in torch.arange(pattern.nnz, device=row.device).split(parts):
        degree = count.index_select(0, start.index_select(0, pairs))
        pair = pairs.repeat_interleave(degree)
        place = torch.arange(pair.numel(), device=row.device) - (degree.cumsum(0) - degree).repeat_interleave(degree)
        edge = order.index_select(0, first.index_select(0, start.index_select(0, pair)) + place)
        wanted = col.index_select(0, edge) * pattern.num_cols + visited.index_select(0, pair)
        before = torch.searchsorted(key, wanted).clamp_(max=max(pattern.nnz - 1, 0))
        nearer = distance.index_select(0, before) + 1 == distance.index_select(0, pair)
        kept = (nearer & (key.index_select(0, before) == wanted)).nonzero().squeeze(1)
        found.append((pair.index_select(0, kept), edge.index_select(0, kept), before.index_select(0, kept)))
    pair, edge, before = map(torch.cat, zip(*found, strict=True))
    by_distance = stable_argsort(distance.index_select(0, pair))
    return pair.index_select(0, by_distance), edge.index_select(0, by_distance), before.index_select(0, by_distance)
