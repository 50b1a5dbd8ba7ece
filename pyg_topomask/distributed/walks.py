r"""Random walks from the nodes of one process over a graph that several processes hold."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from pyg_topomask.distributed.halo import Halo
from pyg_topomask.distributed.shard import Shard
from pyg_topomask.walks import WalkSettings
from pyg_topomask.walks.features import WalkFeatures
from pyg_topomask.walks.transitions import Transitions
from pyg_topomask.walks.walk import walks_from


@dataclass(frozen=True)
class ShardWalks:
    r"""What the walks of the nodes of this process leave behind, as features of the extended nodes, and the halo of the nodes
    that they visit in other processes.
    """

    features: WalkFeatures
    halo: Halo


def shard_ensembles(graph: Shard, settings: WalkSettings, seed: int) -> tuple[ShardWalks, ShardWalks]:
    r"""Walks from the nodes of this process as :func:`~pyg_topomask.walks.walk.sample_ensembles` walks in one process: the
    walks are the same. Returns the walks of the queries and of the keys, one object if they are the same.

    Args:
        graph (Shard): The graph.
        settings (WalkSettings): How to walk.
        seed (int): The seed.
    """
    query = _sample(graph, settings, 2 * seed)
    return query, _sample(graph, settings, 2 * seed + 1) if settings.independent_ensembles else query


def _sample(graph: Shard, settings: WalkSettings, seed: int) -> ShardWalks:
    transitions = shard_transitions(graph, settings)
    nodes = range(graph.first, graph.first + graph.num_nodes)
    start, visited, length, load = graph.group.together(
        lambda: walks_from(nodes, graph.segments.position, transitions, settings, seed)
    )
    halo, extended = Halo.of_columns(graph.group, graph.offsets, visited.long())
    longest = settings.max_walk_length
    features = WalkFeatures.from_visits(start.long() - graph.first, extended, length, load, halo.size, longest)
    return ShardWalks(features, halo)


def shard_transitions(graph: Shard, settings: WalkSettings) -> Transitions:
    r"""Returns the transitions at all nodes, which the graph keeps: in the memory of each process, or in its folder."""
    key = 'transitions', settings.normalization, settings.transition, settings.flow
    return graph.prepared(key, lambda: _transitions(graph, settings))


@torch.no_grad()
def _transitions(graph: Shard, settings: WalkSettings) -> Transitions:
    r"""Makes the rows of this process, as :class:`~pyg_topomask.walks.transitions.Transitions` makes all."""
    extended, group = graph.extended(settings.flow), graph.group
    row, col = extended.row_and_col(settings.flow)
    ids = extended.halo.ids()
    order = torch.arange(row.numel(), device=row.device) if extended.edge_weight is None else extended.edge_weight.argsort()
    pair = row * graph.total_nodes + graph.original(ids)[col]
    order = order[torch.argsort(pair[order], stable=True)]
    row, col = row[order], ids[col[order]]
    weight = extended.normalized_weight(settings.normalization, settings.flow).to(extended.weight_dtype)[order]
    degree = torch.bincount(row, minlength=graph.num_nodes)
    edges_before = sum(group.gather(row.numel())[: group.rank])
    start = degree.cumsum(0) - degree
    cumulative = None
    if settings.transition == 'uniform':
        factor = weight * degree[row].to(weight.dtype)
    else:
        size = weight.double().abs()
        total = size.new_zeros(graph.num_nodes).index_add_(0, row, size)
        degree = degree.masked_fill(total == 0, 0)
        running = (size / total.masked_fill(total == 0, 1.0)[row]).cumsum(0)
        before = torch.cat([running.new_zeros(1), running])[start[row]]
        cumulative = row + graph.first + (running - before)
        factor = weight.sign() * total[row].to(weight.dtype)
    small = max(graph.total_nodes, graph.total_edges) < 2**31
    local = torch.stack([start + edges_before, degree], dim=1).to(torch.int32 if small else torch.int64)
    name = f'{settings.normalization}-{settings.transition}-{settings.flow}'
    first = _whole(graph, local, f'{name}-first')
    bits = factor.view(torch.int32) if small and factor.dtype == torch.float32 else factor.double().view(torch.int64)
    columns = col.unsqueeze(1), first[col], bits.unsqueeze(1)
    edges = torch.cat([column.to(bits.dtype) for column in columns], dim=1)
    whole = None if cumulative is None else _whole(graph, cumulative, f'{name}-cumulative')
    return Transitions(first, _whole(graph, edges, f'{name}-edges'), whole)


def _whole(graph: Shard, rows: Tensor, name: str) -> Tensor:
    r"""Returns the rows of all processes: a copy in memory, or a file that all processes map, to which each writes its rows."""
    group = graph.group
    if graph.folder is None or group.size == 1:
        return group.concatenate(rows)
    counts = group.gather(rows.size(0))
    path = Path(graph.folder) / f'{name}.bin'
    dtype, shape = rows.numpy().dtype, (sum(counts), *rows.shape[1:])

    def write() -> None:
        begin = sum(counts[: group.rank]) * rows[:1].numel() * rows.element_size() if rows.size(0) > 0 else 0
        with path.open('r+b') as file:
            file.seek(begin)
            file.write(rows.contiguous().numpy().tobytes())

    def create() -> None:
        if group.rank == 0:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b'')

    group.together(create)
    group.together(write)
    # Private pages of the file: torch warns of arrays that it must not write to.
    return torch.from_numpy(np.memmap(path, dtype, 'c', shape=shape)) if 0 not in shape else rows.new_empty(shape)
