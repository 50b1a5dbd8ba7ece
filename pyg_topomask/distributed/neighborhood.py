r"""The rows of the adjacency matrix at the nodes of this process and at all nodes near them."""

from __future__ import annotations

import torch
from torch import Tensor

from pyg_topomask.distributed.halo import Halo
from pyg_topomask.distributed.shard import Shard


def neighborhood(graph: Shard, flow: str, hops: int) -> tuple[Halo, Tensor, Tensor, Tensor]:
    r"""Returns the subgraph of all walks of some hops from the nodes of this process: its nodes as a halo, and row, column and
    weight of its edges on the extended nodes. All processes call this.
    """
    extended, group = graph.extended(flow), graph.group
    row, col = extended.row_and_col(flow)
    order = torch.argsort(row, stable=True)
    row, col, weight = row[order], extended.halo.ids()[col[order]], extended.weight[order]
    degree = torch.bincount(row, minlength=graph.num_nodes)
    size = row.numel() if hops > 0 else 0
    rows, cols, weights = [row[:size] + graph.first], [col[:size]], [weight[:size]]
    known = torch.arange(graph.first, graph.first + graph.num_nodes, device=row.device)
    for _ in range(hops - 1):
        nodes = cols[-1].unique()
        nodes = nodes[~torch.isin(nodes, known)]
        known = torch.cat([known, nodes])
        received, (new_cols, new_weights) = Halo(group, graph.offsets, nodes).rows(degree, [col, weight])
        rows.append(nodes.repeat_interleave(received))
        cols.append(new_cols)
        weights.append(new_weights)
    ids = torch.cat(cols)
    halo = Halo.of_columns(group, graph.offsets, ids)
    return halo, halo.extended(torch.cat(rows)), halo.extended(ids), torch.cat(weights)
