"""The profile of graphs, against distances by breadth-first search from every node."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from pyg_topomask.apps.advise.candidates import HOPS, profile


def both(edges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    return edges + [(v, u) for u, v in edges]


PATH = both([(i, i + 1) for i in range(5)])
GRAPHS = {
    'path': (6, PATH),
    'two trees': (7, both([(0, 1), (1, 2), (1, 3), (4, 5), (5, 6)])),
    'cycle': (5, both([(i, (i + 1) % 5) for i in range(5)])),
    'directed path': (4, [(0, 1), (1, 2), (2, 3)]),
    'one edge of three back': (4, [*both([(0, 1)]), (1, 2), (2, 3), (2, 2)]),
}


def distances_to(size: int, edges: list[tuple[int, int]]) -> np.ndarray:
    """The numbers of edges on the way from each node (columns) to each node (rows)."""
    found = np.full((size, size), np.inf)
    for end in range(size):
        frontier, steps = {end}, 0
        while frontier:
            for node in frontier:
                found[end, node] = steps
            steps += 1
            frontier = {u for u, v in edges if v in frontier and np.isinf(found[end, u])}
    return found


@pytest.mark.parametrize('name', GRAPHS)
def test_distances_and_kinds(name: str) -> None:
    size, edges = GRAPHS[name]
    data = Data(edge_index=torch.tensor(edges).t(), num_nodes=size, y=torch.arange(size) % 2)
    found = profile([data], classes=True)
    expected = distances_to(size, edges)
    finite = np.isfinite(expected)
    np.testing.assert_allclose(found.within, [(expected <= hops).sum() / size for hops in range(HOPS + 1)])
    assert found.reaching == finite.sum() / size
    assert found.farthest == expected[finite].max()
    between = [(u, v) for u, v in edges if u != v]
    assert found.one_way == sum((v, u) not in between for u, v in between) / len(between)
    assert found.forest == (name != 'cycle')
    assert found.degree == len(edges) / size
    assert found.equal_labels == sum(u % 2 == v % 2 for u, v in between) / len(between)
    ones = sum(i % 2 for i in range(size)) / size
    assert found.by_chance == pytest.approx(ones**2 + (1 - ones) ** 2)
    assert found.majority == max(ones, 1 - ones)


def test_many_graphs() -> None:
    graphs = [Data(edge_index=torch.tensor(PATH).t(), num_nodes=6, y=torch.tensor([index % 4 == 0])) for index in range(8)]
    graphs[3].edge_weight = torch.arange(10.0)
    graphs[7].num_nodes = 9
    found = profile(graphs, classes=True)
    assert (found.graphs, found.nodes, found.largest) == (8, 6, 9)
    assert found.weighted
    assert found.majority == 0.75
    assert found.equal_labels is found.by_chance is None  # no classes of nodes
    assert profile(graphs, classes=False).majority is None


def test_equal_weights_are_no_weights() -> None:
    data = Data(edge_index=torch.tensor(PATH).t(), num_nodes=6, edge_weight=torch.full((10,), 2.0))
    assert not profile([data], classes=True).weighted


def test_nodes_in_no_split_have_no_label() -> None:
    data = Data(edge_index=torch.tensor(PATH).t(), num_nodes=6, y=torch.tensor([1, 1, 1, 2, 0, 0]))
    data.train_mask, data.val_mask, data.test_mask = (torch.tensor([0, 0, 1, 2, 3, 3]) == split for split in range(3))
    found = profile([data], classes=True)
    assert found.majority == 0.75
    assert found.equal_labels == 2 / 3  # 0 - 1 and 1 - 2, of these and 2 - 3
    assert found.by_chance == 0.75**2 + 0.25**2
