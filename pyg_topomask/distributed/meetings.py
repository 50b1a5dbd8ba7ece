r"""The pairs of nodes whose walks meet, in the rows of one process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import torch

from pyg_topomask.distributed.entries import ShardEntries
from pyg_topomask.distributed.halo import Halo
from pyg_topomask.distributed.shard import Shard
from pyg_topomask.distributed.walks import ShardWalks, shard_walks
from pyg_topomask.operators.forms import Entries, SparseEntries
from pyg_topomask.walks import WalkSettings
from pyg_topomask.walks.features import WalkFeatures
from pyg_topomask.walks.paired import PairedWalks, paired_walks
from pyg_topomask.walks.uniform import draw_seed

#: The number of meetings per visit, up to which a mask lists its entries.
MOST = 16


@dataclass(frozen=True)
class Meetings:
    r"""The halo of the keys whose walks meet those of the queries of this process, both walks on its extended nodes, and the
    number of meetings.
    """

    halo: Halo
    walks: PairedWalks
    count: int


@dataclass
class ShardEnsembles(PairedWalks):
    r"""The walks of the queries and of the keys of this process, which may be the same."""

    query: ShardWalks
    key: ShardWalks
    graph: Shard = field(kw_only=True)

    def listed(self, make: Callable[[PairedWalks], Entries], estimated: bool = False) -> SparseEntries | None:
        meetings = self.meetings
        if meetings is None:
            return None
        return ShardEntries(lambda: make(meetings.walks), meetings.count, halo=meetings.halo, union=self.graph.union)

    @cached_property
    def meetings(self) -> Meetings | None:
        r"""The meetings of the walks of this process with the walks of all processes. It is :obj:`None` in all processes if
        walks meet more than :obj:`MOST` times per visit, as on graphs with hubs. All processes call this.
        """
        with torch.inference_mode(False):  # kept, and possibly used in training later
            return _meet(self.graph, self.query, self.key)


@paired_walks.register
def _(
    graph: Shard,
    settings: WalkSettings,
    seed: int | None,
    generator: torch.Generator | None,
    again: bool,
    learned: bool = False,
) -> ShardEnsembles:
    # Process 0 draws the seed of new walks.
    seed = graph.group.gather(draw_seed(generator))[0] if seed is None else seed
    return ShardEnsembles(*shard_walks(graph, settings, seed, again), graph=graph)


@torch.no_grad()
def _meet(graph: Shard, query: ShardWalks, key: ShardWalks) -> Meetings | None:
    group = graph.group
    visits = key.halo.scatter(torch.bincount(key.visited, minlength=key.halo.size))
    count = query.halo.gather(visits)[query.visited].sum()
    total, most = group.sum(torch.stack([count, count.new_tensor(MOST * (query.nnz + key.nnz))])).tolist()
    if total > most:
        return None
    # Each process collects the visits to its nodes. The others then read the visits to the nodes that their queries visit.
    visited = key.halo.ids()[key.visited]
    owner = torch.searchsorted(graph.offsets, visited, right=True) - 1
    visited, *visit = group.exchange_any([visited, key.start.long() + graph.first, key.length, key.load], owner)
    visited, order = (visited - graph.first).sort(stable=True)
    visit = [each[order] for each in visit]
    degree, remote = query.halo.rows(visits, visit)
    others = torch.arange(graph.num_nodes, query.halo.size, device=visited.device)
    visited = torch.cat([visited, others.repeat_interleave(degree)])
    start, length, load = (torch.cat(both) for both in zip(visit, remote, strict=True))
    # Walks visit their start, so visited nodes are among the starts.
    halo = Halo.of_columns(group, graph.offsets, start)
    place, longest = halo.extended(query.halo.ids()), query.max_walk_length
    queries = WalkFeatures(query.start, place[query.visited].to(query.visited), query.length, query.load, halo.size, longest)
    keys = WalkFeatures.from_visits(halo.extended(start), place[visited], length, load, halo.size, longest)
    return Meetings(halo, PairedWalks(queries, keys), int(count))
