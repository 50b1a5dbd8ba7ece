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

from benchmarks.graphs import Splits, in_batches
from pyg_topomask.apps.datasets import MajorityTrees

__all__ = [
    'distances_on_trees',
    'distances_to_infected',
    'lookup_on_trees',
    'majority_on_trees',
    'match_on_trees',
    'transfer_on_rings',
]

INFECTED_NODES, FARTHEST, DEGREE = 15_000, 5, 3.0
FARTHEST_ON_TREES = 16
RING, RING_CLASSES = 40, 5
DEPTH = 4


def majority_on_trees(seed: int) -> Splits:
    r"""Returns the trees of :class:`~pyg_topomask.apps.datasets.MajorityTrees` in batches of 20."""
    return _trees(MajorityTrees(seed=seed))


def _trees(dataset: MajorityTrees) -> Splits:
    parts = [[dataset[int(index)] for index in indices] for indices in dataset.split_indices().values()]
    for data in (data for part in parts for data in part):
        data.mask = torch.ones(data.num_nodes, dtype=torch.bool)
    first, second, third = (in_batches(part, 20) for part in parts)
    return first, second, third


def distances_on_trees(seed: int) -> Splits:
    r"""Returns the trees of :class:`~pyg_topomask.apps.datasets.MajorityTrees`, in which 1 % of the nodes is marked. Each node
    has to say how many edges the next marked node is away: 0 to 15, or more.
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


def lookup_on_trees(seed: int) -> Splits:
    r"""Returns the trees of :class:`~pyg_topomask.apps.datasets.MajorityTrees` with eight keys in batches of 20."""
    return _trees(MajorityTrees(radius=4, num_keys=8, seed=seed))


def _marks_and_hops(edge_index: Tensor, size: int, marked: NDArray[Any], farthest: int) -> tuple[Tensor, Tensor]:
    r"""Returns a column of ones and a column of marks, and the edges to the next mark."""
    matrix = csr_array(to_scipy_sparse_matrix(edge_index, num_nodes=size))
    hops = np.minimum(dijkstra(matrix, unweighted=True, indices=marked, min_only=True), farthest)
    x = torch.ones(size, 2)
    x[:, 1] = 0.0
    x[marked, 1] = 1.0
    return x, torch.from_numpy(hops.astype(np.int64))


def distances_to_infected(seed: int) -> Splits:
    r"""Returns three Erdos-Renyi graphs of 15,000 nodes with 3 neighbors on average, 2 % of the nodes infected, as in PyG's
    :class:`~torch_geometric.datasets.InfectionDataset`. Each node has to say how many edges the next infected node is away: 0
    to 4, or more.
    """
    generator = np.random.default_rng(seed)
    parts = []
    for _ in range(3):
        graph = nx.fast_gnp_random_graph(INFECTED_NODES, DEGREE / INFECTED_NODES, seed=int(generator.integers(2**31)))
        data = from_networkx(graph)
        infected = generator.choice(INFECTED_NODES, INFECTED_NODES // 50, replace=False)
        data.x, data.y = _marks_and_hops(data.edge_index, INFECTED_NODES, infected, FARTHEST)
        data.mask = torch.ones(INFECTED_NODES, dtype=torch.bool)
        parts.append([data])
    return parts[0], parts[1], parts[2]


def transfer_on_rings(seed: int, crossed: bool = False) -> Splits:
    r"""Returns rings of 40 nodes. One node has one of five classes, and the node opposite has to say which, from `"On
    Over-Squashing in Message Passing Neural Networks" <https://arxiv.org/abs/2302.02941>`_ (graph transfer).

    Args:
        seed (int): The seed of the classes.
        crossed (bool): Whether the k-th node of one side is joined to the (k + 1)-th node of the other side, too. The node
            opposite is as far as before. (default: :obj:`False`)
    """
    generator = torch.Generator().manual_seed(seed)
    one_way = torch.stack([torch.arange(RING), torch.arange(1, RING + 1) % RING])
    if crossed:
        step = torch.arange(1, RING // 2 - 1)
        one_way = torch.cat([one_way, torch.stack([step, RING - 1 - step]), torch.stack([RING - step, step + 1])], 1)
    edge_index = torch.cat([one_way, one_way.flip(0)], 1)
    target = torch.arange(RING) == RING // 2
    graphs = []
    for label in torch.randint(RING_CLASSES, (1000,), generator=generator).tolist():
        x = torch.ones(RING, RING_CLASSES)
        x[0], x[RING // 2] = torch.eye(RING_CLASSES)[label], 0.0
        graphs.append(Data(x=x, edge_index=edge_index, y=torch.full((RING,), label), mask=target))
    first, second, third = (in_batches(part, 100) for part in (graphs[:400], graphs[400:600], graphs[600:]))
    return first, second, third


def match_on_trees(seed: int) -> Splits:
    r"""Returns binary trees of depth 4. Each of the 16 leaves has another key, and one of 16 classes. The root asks for a key,
    and has to say the class of its leaf, from `"On the Bottleneck of Graph Neural Networks and its Practical Implications"
    <https://arxiv.org/abs/2006.05205>`_ (NeighborsMatch, Sec. 4.1, with the key and the class as features).
    """
    generator = torch.Generator().manual_seed(seed)
    leaves, size = 2**DEPTH, 2 ** (DEPTH + 1) - 1
    child = torch.arange(1, size)
    edge_index = torch.cat([torch.stack([child, (child - 1) // 2]), torch.stack([(child - 1) // 2, child])], 1)
    target = torch.arange(size) == 0
    graphs = []
    for _ in range(7000):
        keys, labels = torch.randperm(leaves, generator=generator), torch.randint(leaves, (leaves,), generator=generator)
        asked = int(torch.randint(leaves, (), generator=generator))
        x = torch.zeros(size, 2 * leaves)
        x[-leaves:] = torch.cat([torch.eye(leaves)[keys], torch.eye(leaves)[labels]], 1)
        x[0, keys[asked]] = 1.0
        graphs.append(Data(x=x, edge_index=edge_index, y=labels[asked].expand(size), mask=target))
    first, second, third = (in_batches(part, 200) for part in (graphs[:4000], graphs[4000:5000], graphs[5000:]))
    return first, second, third
