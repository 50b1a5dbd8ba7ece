r"""The graphs that benchmarks run on."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from pyg_topomask import Graph
from pyg_topomask.transforms import AddGridShape

__all__ = ['Splits', 'in_batches', 'make_data', 'random_graph', 'ring', 'with_graphs']

#: The graphs of training, validation and test. The attribute :obj:`mask` says which nodes count.
Splits = tuple[list[Data], list[Data], list[Data]]


def in_batches(graphs: Sequence[Data], size: int) -> list[Data]:
    r"""Returns batches of so many graphs each, in order."""
    return [Batch.from_data_list(list(graphs[start : start + size])) for start in range(0, len(graphs), size)]


def with_graphs(graphs: Sequence[Data], size: int) -> list[tuple[Data, Graph]]:
    r"""Returns batches, each with the graph that keeps what masks prepare."""
    return [(batch, Graph.from_data(batch)) for batch in in_batches(graphs, size)]


def make_data(kind: str, size: int, degree: int, seed: int = 0) -> Data:
    r"""Returns a graph of a kind.

    Args:
        kind (str): :obj:`"random"`, :obj:`"ring"`, :obj:`"tree"` (a random recursive one), :obj:`"grid"` (the square grid with
            about as many nodes) or :obj:`"none"` (no edges).
        size (int): The number of nodes.
        degree (int): The mean degree of a random graph.
        seed (int): Of a random graph or tree. (default: :obj:`0`)
    """
    if kind == 'random':
        return Data(edge_index=random_graph(size, degree, seed), num_nodes=size)
    if kind == 'ring':
        return Data(edge_index=ring(size), num_nodes=size)
    if kind == 'tree':
        node = torch.arange(1, size)
        parent = (torch.rand(size - 1, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)) * node).long()
        return Data(edge_index=torch.stack([parent, node]), num_nodes=size)
    if kind == 'grid':
        side = round(math.sqrt(size))
        data: Data = AddGridShape((side, side))(Data(num_nodes=side**2))
        return data
    return Data(edge_index=torch.empty(2, 0, dtype=torch.long), num_nodes=size)


def ring(size: int) -> Tensor:
    node = torch.arange(size)
    forward = torch.stack([node, (node + 1) % size])
    return torch.cat([forward, forward.flip(0)], dim=1)


def random_graph(size: int, degree: int = 4, seed: int = 0) -> Tensor:
    r"""Undirected edges with random ends, so that nodes have :obj:`degree` neighbors on average."""
    forward = torch.randint(size, (2, degree * size // 2), generator=torch.Generator().manual_seed(seed))
    return torch.cat([forward, forward.flip(0)], dim=1)
