r"""Walks of queries that meet walks of keys."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import cached_property, partial, singledispatch
from typing import Any

import torch
from torch import Tensor

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.operators.forms import Entries, SparseEntries
from pyg_topomask.utils.functorch import int_or_symint, is_exporting, kept
from pyg_topomask.walks.features import WalkFeatures
from pyg_topomask.walks.learned import Meetings, learned_walks
from pyg_topomask.walks.pairs import PairLoads, count_pairs, estimate_pairs
from pyg_topomask.walks.settings import WalkSettings
from pyg_topomask.walks.walk import sample_ensembles, sample_walks


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
            make = partial(Meetings.of, self.query.pattern, self.key.pattern)
            meetings = kept(self.query.shared, 'meetings', make) if self.key is self.query else make()
            query, key = self.query.values(query_modulation), self.key.values(key_modulation)
            return Entries(meetings.pattern, meetings.entries(query, key))
        pairs = self.pairs(query_modulation.dtype, 'unordered' if key_modulation is query_modulation else 'ordered')
        return Entries(pairs.pattern, pairs.values(query_modulation, key_modulation))

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
