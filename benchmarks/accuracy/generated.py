r"""Generated tasks in which the answer of a node depends on nodes that are many edges away."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import from_networkx, to_scipy_sparse_matrix

from benchmarks.graphs import in_batches
from pyg_topomask.datasets import MajorityTrees

__all__ = ['distances_on_trees', 'distances_to_infected', 'lookup_on_trees', 'majority_on_trees', 'transfer_on_rings']

NODES = 500
INFECTED, FARTHEST, DEGREE = 10, 5, 3.0
FARTHEST_ON_TREES = 16
RING, RING_CLASSES = 40, 5


def majority_on_trees(seed: int) -> tuple[list[Data], list[Data], list[Data]]:
    r"""Returns the trees of :class:`~pyg_topomask.datasets.MajorityTrees` in batches of 20."""
    return _trees(MajorityTrees(seed=seed))


def _trees(dataset: MajorityTrees) -> tuple[list[Data], list[Data], list[Data]]:
    parts = [[dataset[int(index)] for index in indices] for indices in dataset.split_indices().values()]
    for data in (data for part in parts for data in part):
        data.mask = torch.ones(data.num_nodes, dtype=torch.bool)
    first, second, third = (in_batches(part, 20) for part in parts)
    return first, second, third


def distances_on_trees(seed: int) -> tuple[list[Data], list[Data], list[Data]]:
    r"""Returns the trees of :class:`~pyg_topomask.datasets.MajorityTrees`, in which 1 % of the nodes is marked. Each node has
    to say how many edges the next marked node is away: 0 to 15, or more.
    """
    parts = majority_on_trees(seed)
    generator = np.random.default_rng(seed)
    for data in (data for part in parts for data in part):
        size = data.num_nodes // data.num_graphs
        marked = np.concatenate(
            [generator.choice(size, size // 100, replace=False) + start for start in data.ptr[:-1].tolist()]
        )
        data.x, data.y = _marks_and_hops(data.edge_index, data.num_nodes, marked, FARTHEST_ON_TREES)
    return parts


def lookup_on_trees(seed: int) -> tuple[list[Data], list[Data], list[Data]]:
    r"""Returns the trees of :class:`~pyg_topomask.datasets.MajorityTrees` with eight keys in batches of 20."""
    return _trees(MajorityTrees(radius=4, num_keys=8, seed=seed))


def _marks_and_hops(edge_index: Tensor, size: int, marked: NDArray[Any], farthest: int) -> tuple[Tensor, Tensor]:
    r"""Returns a column of ones and a column of marks, and the edges to the next mark."""
    matrix = csr_array(to_scipy_sparse_matrix(edge_index, num_nodes=size))
    hops = np.minimum(dijkstra(matrix, unweighted=True, indices=marked, min_only=True), farthest)
    x = torch.ones(size, 2)
    x[:, 1] = 0.0
    x[marked, 1] = 1.0
    return x, torch.from_numpy(hops.astype(np.int64))


def _random_graph(seed: int) -> Data:
    generator = np.random.default_rng(seed)
    data = from_networkx(nx.fast_gnp_random_graph(NODES, DEGREE / NODES, seed=int(generator.integers(2**31))))
    infected = generator.choice(NODES, INFECTED, replace=False)
    data.x, data.y = _marks_and_hops(data.edge_index, NODES, infected, FARTHEST)
    data.mask = torch.ones(NODES, dtype=torch.bool)
    return data


def distances_to_infected(seed: int) -> tuple[list[Data], list[Data], list[Data]]:
    r"""Returns Erdos-Renyi graphs of 500 nodes with 3 neighbors on average and 10 infected nodes. Each node has to say how many
    edges the next infected node is away: 0 to 4, or more.
    """
    graphs = [_random_graph(seed * 100 + index) for index in range(100)]
    first, second, third = (in_batches(part, 20) for part in (graphs[:40], graphs[40:60], graphs[60:]))
    return first, second, third


def transfer_on_rings(seed: int) -> tuple[list[Data], list[Data], list[Data]]:
    r"""Returns rings of 40 nodes. One node has one of five classes, and the node opposite has to say which, from `"On
    Over-Squashing in Message Passing Neural Networks" <https://arxiv.org/abs/2302.02941>`_ (graph transfer).
    """
    generator = torch.Generator().manual_seed(seed)
    one_way = torch.stack([torch.arange(RING), torch.arange(1, RING + 1) % RING])
    edge_index = torch.cat([one_way, one_way.flip(0)], 1)
    target = torch.arange(RING) == RING // 2
    graphs = []
    for label in torch.randint(RING_CLASSES, (1000,), generator=generator).tolist():
        x = torch.ones(RING, RING_CLASSES)
        x[0], x[RING // 2] = torch.eye(RING_CLASSES)[label], 0.0
        graphs.append(Data(x=x, edge_index=edge_index, y=torch.full((RING,), label), mask=target))
    first, second, third = (in_batches(part, 100) for part in (graphs[:400], graphs[400:600], graphs[600:]))
    return first, second, third
