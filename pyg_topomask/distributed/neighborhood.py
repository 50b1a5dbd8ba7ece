r"""The rows of the adjacency matrix at the nodes of this process and at all nodes near them."""

from __future__ import annotations

from itertools import accumulate

import torch
from torch import Tensor

from pyg_topomask.distributed.halo import Halo
from pyg_topomask.distributed.shard import Shard


def neighborhood(graph: Shard, flow: str, hops: int) -> tuple[Halo, Tensor, Tensor, Tensor]:
    r"""Returns the subgraph of all walks of some hops from the nodes of this process: its nodes as a halo, and row, column and
    weight of its edges on the extended nodes. All processes call this.

    Args:
        graph (Shard): The graph.
        flow (str): The direction of attention along edges.
        hops (int): The number of hops.
    """
    extended, group = graph.extended(flow), graph.group
    row, col = extended.row_and_col(flow)
    order = torch.argsort(row, stable=True)
    row, col, weight = row[order], extended.halo.ids()[col[order]], extended.weight[order]
    degree = torch.bincount(row, minlength=graph.num_nodes)
    start = degree.cumsum(0) - degree
    size = row.numel() if hops > 0 else 0
    rows, cols, weights = [row[:size] + graph.first], [col[:size]], [weight[:size]]
    known = torch.arange(graph.first, graph.first + graph.num_nodes, device=row.device)
    for _ in range(hops - 1):
        nodes = cols[-1].unique()
        nodes = nodes[~torch.isin(nodes, known)]
        known = torch.cat([known, nodes])
        # The rows that other processes ask for, and those asked for.
        asked = Halo(group, graph.offsets, nodes)
        count = degree[asked.send]
        received = group.exchange(count, asked.sent, asked.received)
        first = count.cumsum(0) - count
        entry = torch.arange(int(count.sum()), device=row.device)
        entry = entry + (start[asked.send] - first).repeat_interleave(count)
        sent, arriving = _sums(count, asked.sent), _sums(received, asked.received)
        rows.append(nodes.repeat_interleave(received))
        cols.append(group.exchange(col[entry], sent, arriving))
        weights.append(group.exchange(weight[entry], sent, arriving))
    ids = torch.cat(cols)
    halo = Halo.of_columns(group, graph.offsets, ids)
    return halo, halo.extended(torch.cat(rows)), halo.extended(ids), torch.cat(weights)


def _sums(values: Tensor, sizes: list[int]) -> list[int]:
    r"""Returns the sums of consecutive groups of values."""
    ends = torch.nn.functional.pad(values.cumsum(0), (1, 0))[torch.tensor([0, *accumulate(sizes)])]
    sums: list[int] = ends.diff().tolist()
    return sums
