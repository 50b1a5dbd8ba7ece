r"""Loaders of the shards of one graph."""

from __future__ import annotations

from copy import copy
from typing import Any

import torch
from torch_geometric.graphgym.config import cfg
from torch_geometric.loader import DataLoader

from pyg_topomask.distributed import ShardedGraph
from pyg_topomask.errors import ArgumentError


def shard_loaders(loaders: list[Any]) -> tuple[ShardedGraph, list[Any]]:
    r"""Divides the nodes of the loaders' graph among the processes. Returns the sharded graph, and loaders of the shard of this
    process, with the graph as the attribute :obj:`sharded`. All processes must call this. The loaders are those of
    :func:`~pyg_topomask.graphgym.data.loaders.create_loaders`. Raises a :class:`ValueError` if they do not load a single graph,
    or the model does not support sharded graphs.
    """
    single = all(type(loader) is DataLoader and len(loader.dataset) == 1 for loader in loaders)
    if not single or cfg.dataset.task != 'node':
        raise ArgumentError(
            'topomask.shard',
            f"'graph' for dataset {cfg.dataset.name!r}, task {cfg.dataset.task!r}, train.sampler {cfg.train.sampler!r}",
            'data sets of one graph with the task node and the sampler full_batch, and for others batch',
        )
    if cfg.model.type != 'TopoGPSModel':
        raise ArgumentError('model.type', f'{cfg.model.type!r} for topomask.shard graph', 'TopoGPSModel')
    graph = ShardedGraph.from_data(loaders[0].dataset[0])
    shard: Any = copy(graph.data)
    shard.sharded = graph
    only: Any = [shard]  # torch uses it as a data set
    # Copies, because a model writes features to its batch.
    return graph, [torch.utils.data.DataLoader(only, batch_size=1, collate_fn=lambda shards: copy(shards[0])) for _ in loaders]
