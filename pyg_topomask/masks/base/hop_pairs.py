r"""The pairs of nodes within a number of hops: listed by a search, or from labels stored on data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy
import torch
from torch import Tensor

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.segments import Segments
from pyg_topomask.graphs.sparse_pattern import SparsePattern
from pyg_topomask.machine.backend import kernel
from pyg_topomask.masks.base.power_entries import count_within
from pyg_topomask.utils.functorch import outside_transforms

# The largest number of pairs to list, which needs about four gigabytes.
_MOST = 2**26


# A custom operator, because neither torch.compile nor torch.export reads SciPy.
@torch.library.custom_op(
    'pyg_topomask::pairs_within', mutates_args=(), schema='(Tensor[] pattern, int max_hops) -> (Tensor, Tensor, Tensor)'
)
def pairs_within(tensors: Sequence[Tensor], max_hops: int) -> tuple[Tensor, Tensor, Tensor]:
    r"""Returns the pairs of nodes within :obj:`max_hops` edges, in ascending order, and their distances."""
    pattern = SparsePattern(*tensors)
    if pattern.num_rows**2 > _MOST:
        _check_count(count_within(pattern, max_hops), max_hops)
    if compiled := kernel('pairs_within', pattern.col.device):
        count, pairs = compiled(pattern, max_hops, _MOST)
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
    if count > _MOST:
        given = f'{max_hops} hops on a graph with about {count:,} pairs of nodes within this distance'
        accepted = f'up to {_MOST:,} pairs: use fewer hops, or PowerSeriesMask or GRFMask, which do not list pairs'
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


@dataclass(frozen=True)
class StoredHops:
    r"""The pairs of nodes within :obj:`max_hops` edges, given a label of each pair of nodes of the same graph in int16,
    :obj:`[1, num_pairs]`: one more than the distance, or 0 beyond. They are listed when they are called for.
    """

    label: Tensor
    segments: Segments

    @cached_property
    def nnz(self) -> int:
        return int(self.label.count_nonzero())

    @cached_property
    @outside_transforms
    def _pairs(self) -> Hops:
        with torch.inference_mode(False):  # kept, and possibly used in training later
            return Hops(*self._listed(), self.segments.num_nodes)

    def _listed(self) -> tuple[Tensor, Tensor, Tensor]:
        if compiled := kernel('labelled_pairs', self.label.device):
            pairs: tuple[Tensor, Tensor, Tensor] = compiled(self.label, self.segments.ptr, self.nnz)
            return pairs
        place, size = self.label[0].nonzero().squeeze(1), self.segments.sizes[self.segments.index]
        ends = size.cumsum(0)  # of the pairs of each node
        start = torch.searchsorted(ends, place, right=True)
        visited = place - (ends - size - self.segments.first)[start]
        return start.int(), visited.int(), self.label[0, place].int() - 1

    @property
    def pattern(self) -> SparsePattern:
        return self._pairs.pattern

    @property
    def distance(self) -> Tensor:
        return self._pairs.distance

    def labels(self, segments: Segments) -> Tensor:
        return self.label
