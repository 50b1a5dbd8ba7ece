r"""The pairs of nodes whose walks meet, in the rows of one process."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch

from pyg_topomask.distributed.halo import Halo
from pyg_topomask.distributed.shard import Shard
from pyg_topomask.distributed.walks import ShardWalks
from pyg_topomask.walks.features import WalkFeatures
from pyg_topomask.walks.paired import PairedWalks

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
class ShardEnsembles:
    r"""The walks of the queries and of the keys of this process, which may be the same."""

    graph: Shard
    query: ShardWalks
    key: ShardWalks

    @cached_property
    def meetings(self) -> Meetings | None:
        r"""The meetings of the walks of this process with the walks of all processes. It is :obj:`None` in all processes if
        walks meet more than :obj:`MOST` times per visit, as on graphs with hubs. All processes call this.
        """
        with torch.inference_mode(False):  # kept, and possibly used in training later
            return _meet(self.graph, self.query, self.key)


@torch.no_grad()
def _meet(graph: Shard, query: ShardWalks, key: ShardWalks) -> Meetings | None:
    group, features, given = graph.group, query.features, key.features
    visits = key.halo.scatter(torch.bincount(given.visited, minlength=key.halo.size))
    count = query.halo.gather(visits)[features.visited].sum()
    total, most = group.sum(torch.stack([count, count.new_tensor(MOST * (features.nnz + given.nnz))])).tolist()
    if total > most:
        return None
    # Each process collects the visits to its nodes. The others then read the visits to the nodes that their queries visit.
    visited = key.halo.ids()[given.visited]
    owner = torch.searchsorted(graph.offsets, visited, right=True) - 1
    visited, *visit = group.exchange_any([visited, given.start.long() + graph.first, given.length, given.load], owner)
    visited, order = (visited - graph.first).sort(stable=True)
    visit = [each[order] for each in visit]
    degree, remote = query.halo.rows(visits, visit)
    others = torch.arange(graph.num_nodes, query.halo.size, device=visited.device)
    visited = torch.cat([visited, others.repeat_interleave(degree)])
    start, length, load = (torch.cat(both) for both in zip(visit, remote, strict=True))
    # Walks visit their start, so visited nodes are among the starts.
    halo = Halo.of_columns(group, graph.offsets, start)
    place, longest = halo.extended(query.halo.ids()), features.max_walk_length
    queries = WalkFeatures(
        features.start, place[features.visited].to(features.visited), features.length, features.load, halo.size, longest
    )
    keys = WalkFeatures.from_visits(halo.extended(start), place[visited], length, load, halo.size, longest)
    return Meetings(halo, PairedWalks(queries, keys), int(count))
