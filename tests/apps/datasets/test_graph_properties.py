from __future__ import annotations

from collections import deque

import networkx
import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.utils import to_networkx

from pyg_topomask.apps.datasets import GraphProperties
from pyg_topomask.apps.datasets.random_graphs import FAMILIES, PROPERTIES


def distances_from(node: int, data: Data) -> list[int]:
    """The number of edges on the way to each node, by breadth-first search."""
    neighbors = [data.edge_index[1, data.edge_index[0] == u].tolist() for u in range(data.num_nodes)]
    found, queue = {node: 0}, deque([node])
    while queue:
        u = queue.popleft()
        for v in neighbors[u]:
            if v not in found:
                found[v] = found[u] + 1
                queue.append(v)
    return [found[u] for u in range(data.num_nodes)]


@pytest.mark.parametrize('property', PROPERTIES)
def test_labels_are_distances(property: str) -> None:
    for data in GraphProperties(property=property, num_graphs=20, least=8, most=12, seed=1):
        assert data.x[:, 0].sum() == 1
        assert 8 <= data.num_nodes <= 12
        every = [distances_from(node, data) for node in range(data.num_nodes)]
        (source,) = data.x[:, 0].nonzero().flatten().tolist()
        labels = {'distances': every[source], 'eccentricity': [max(row) for row in every], 'diameter': [max(map(max, every))]}
        assert data.y.flatten().tolist() == labels[property]


@pytest.mark.parametrize('name', FAMILIES)
def test_families(name: str) -> None:
    for size in (8, 25, 34):
        assert_is_of_family(name, size)


def assert_is_of_family(name: str, size: int) -> None:
    edges = FAMILIES[name](size, np.random.default_rng(size))
    graph = networkx.Graph()
    graph.add_nodes_from(range(size))
    graph.add_edges_from(edges.T.tolist())
    assert graph.number_of_nodes() == size
    assert graph.number_of_edges() == edges.shape[1]  # no loops, no edge twice
    assert not list(networkx.selfloop_edges(graph))
    assert networkx.is_connected(graph) or name == 'Erdos-Renyi'
    degrees = sorted(degree for _, degree in graph.degree)
    if name in ('tree', 'line', 'star', 'caterpillar', 'lobster'):
        assert networkx.is_tree(graph)
    if name == 'line':
        assert degrees == [1, 1, *[2] * (size - 2)]
    if name == 'star':
        assert degrees == [*[1] * (size - 1), size - 1]
    legs = graph.subgraph([node for node, degree in graph.degree if degree > 1])  # without leaves
    if name == 'caterpillar':
        assert max((degree for _, degree in legs.degree), default=0) <= 2
    if name == 'lobster':
        spine = legs.subgraph([node for node, degree in legs.degree if degree > 1])
        assert max((degree for _, degree in spine.degree), default=0) <= 2
    if name in ('grid', 'ladder'):
        assert degrees[-1] <= 4
        assert networkx.is_bipartite(graph)
    if name == 'caveman':
        assert networkx.average_clustering(graph) >= 0.5


def test_graphs_are_connected_and_undirected_with_families_in_all_splits() -> None:
    dataset = GraphProperties(num_graphs=200)
    assert [len(index) for index in dataset.split_indices().values()] == [144, 20, 36]
    assert {data.num_nodes for data in dataset} == set(range(25, 35))
    for data in dataset:
        assert data.is_undirected()
        assert networkx.is_connected(to_networkx(data, to_undirected=True))
    again, other = GraphProperties(num_graphs=10), GraphProperties(num_graphs=10, seed=1)
    assert torch.equal(again[0].x, GraphProperties(num_graphs=10)[0].x)
    assert not torch.equal(again._data.y, other._data.y)


def test_arguments_outside_their_range(subtests: pytest.Subtests) -> None:
    for arguments, message in [
        ({'property': 'radius'}, "property: got 'radius'"),
        ({'num_graphs': 9}, 'num_graphs: got 9'),
        ({'least': 7}, 'least: got 7'),
        ({'least': 20, 'most': 19}, 'most: got 19; accepted: whole numbers from 20'),
    ]:
        with subtests.test(arguments=arguments, message=message), pytest.raises(ValueError, match=message):
            GraphProperties(**arguments)


def test_chosen_families() -> None:
    for data in GraphProperties(num_graphs=10, families=['line']):
        assert sorted(torch.bincount(data.edge_index[0]).tolist()) == [1, 1, *[2] * (data.num_nodes - 2)]


@pytest.mark.parametrize('families', [[], ['path']])
def test_unknown_families(families: list[str]) -> None:
    with pytest.raises(ValueError, match=r'families.*line'):
        GraphProperties(num_graphs=10, families=families)
