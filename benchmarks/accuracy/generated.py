r"""Generated tasks in which the answer of a node depends on nodes that are many edges away."""

from __future__ import annotations

import networkx as nx
import numpy as np
import torch
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra
from torch_geometric.data import Data
from torch_geometric.utils import from_networkx, to_scipy_sparse_matrix

from benchmarks.graphs import in_batches
from pyg_topomask.datasets import MajorityTrees

__all__ = ['distances_to_infected', 'majority_on_trees']

NODES = 500
INFECTED, FARTHEST, DEGREE = 10, 5, 3.0


def majority_on_trees(seed: int) -> tuple[list[Data], list[Data], list[Data]]:
    r"""Returns the trees of :class:`~pyg_topomask.datasets.MajorityTrees` in batches of 20."""
    dataset = MajorityTrees(seed=seed)
    parts = [[dataset[int(index)] for index in indices] for indices in dataset.split_indices().values()]
    for data in (data for part in parts for data in part):
        data.mask = torch.ones(data.num_nodes, dtype=torch.bool)
    first, second, third = (in_batches(part, 20) for part in parts)
    return first, second, third


def _random_graph(seed: int) -> Data:
    generator = np.random.default_rng(seed)
    data = from_networkx(nx.fast_gnp_random_graph(NODES, DEGREE / NODES, seed=int(generator.integers(2**31))))
    infected = generator.choice(NODES, INFECTED, replace=False)
    matrix = csr_array(to_scipy_sparse_matrix(data.edge_index, num_nodes=NODES))
    hops = np.minimum(dijkstra(matrix, unweighted=True, indices=infected).min(0), FARTHEST)
    data.x = torch.ones(NODES, 2)
    data.x[:, 1] = 0.0
    data.x[infected, 1] = 1.0
    data.y = torch.from_numpy(hops.astype(np.int64))
    data.mask = torch.ones(NODES, dtype=torch.bool)
    return data


def distances_to_infected(seed: int) -> tuple[list[Data], list[Data], list[Data]]:
    r"""Returns Erdos-Renyi graphs of 500 nodes with 3 neighbors on average and 10 infected nodes. Each node has to say how many
    edges the next infected node is away: 0 to 4, or more.
    """
    graphs = [_random_graph(seed * 100 + index) for index in range(100)]
    first, second, third = (in_batches(part, 20) for part in (graphs[:40], graphs[40:60], graphs[60:]))
    return first, second, third
