from itertools import combinations

import numpy as np
import pytest
import torch
from graphs import GRAPH_NAMES, GRAPHS, no_edges, ring, small_weighted_graph, undirected
from grids import covering
from numpy.typing import NDArray
from oracles import as_numpy, confidence, standard_scores
from scipy.sparse.csgraph import connected_components, shortest_path
from torch import Tensor
from torch_geometric.data import Data

from pyg_topomask.graphs import spanning_forest
from pyg_topomask.graphs.spanning_forest import spanning_forests

METHODS = {**spanning_forest.METHODS, 'clustered': spanning_forest._clustered, 'paths': spanning_forest._shortest_paths}
DIAMOND = undirected([(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)])  # of eight spanning trees


@pytest.fixture(autouse=True)
def _all_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spanning_forest, 'METHODS', METHODS)


def chosen(edge_index: Tensor, method: str, size: int, num_trees: int = 1, weight: Tensor | None = None, seed: int = 0) -> list:
    forests = spanning_forests(edge_index, weight, size, method, num_trees, seed)
    return [sorted(tuple(sorted(pair)) for pair in edges.t().tolist()) for edges in forests]


def wheel(size: int) -> Tensor:
    spokes = torch.stack([torch.full((size,), size), torch.arange(size)])
    return torch.cat([ring(size), spokes], dim=1)


def grid(side: int) -> Tensor:
    node = torch.arange(side * side).view(side, side)
    return torch.cat(
        [torch.stack([node[:, :-1], node[:, 1:]]).flatten(1), torch.stack([node[:-1], node[1:]]).flatten(1)], dim=1
    )


def mean_stretch(edge_index: Tensor, method: str, size: int) -> float:
    (tree,) = spanning_forests(edge_index, None, size, method, 1, 0)
    matrix = np.zeros((size, size))
    matrix[tuple(tree.numpy())] = 1
    return shortest_path(matrix, directed=False)[tuple(edge_index.numpy())].mean()


def joined(pairs: set[tuple[int, int]], size: int) -> NDArray[np.bool_]:
    matrix = np.zeros((size, size))
    for i, j in pairs:
        matrix[i, j] = 1
    label = connected_components(matrix, directed=False)[1] if size > 0 else np.zeros(0)
    return label[:, None] == label


@pytest.mark.parametrize(('method', 'name'), covering(METHODS, GRAPH_NAMES))
def test_forests_have_edges_of_the_graph_join_all_that_it_joins_and_have_no_cycle(method: str, name: str) -> None:
    data = GRAPHS[name]()
    edges, weight, size, _ = as_numpy(data)
    pairs = {(min(i, j), max(i, j)) for i, j in edges.T.tolist() if i != j}
    apart = joined(pairs, size)
    trees = chosen(torch.from_numpy(edges), method, size, 3, torch.from_numpy(weight).abs())
    assert len(trees) == 3
    for tree in trees:
        assert set(tree) <= pairs
        np.testing.assert_array_equal(joined(set(tree), size), apart)
        assert len(tree) == size - len(np.unique(apart, axis=0))  # so many edges and no more


@pytest.mark.parametrize('name', ['weighted', 'negative_weights', 'zero_weights', 'parallel_edges', 'undirected'])
def test_minimum_is_the_smallest_sum_of_all_forests(name: str) -> None:
    data = GRAPHS[name]()
    edges, weight, size, _ = as_numpy(data)
    length: dict[tuple[int, int], float] = {}
    for (i, j), w in zip(edges.T.tolist(), weight.tolist(), strict=True):
        if i != j:
            length[min(i, j), max(i, j)] = min(w, length.get((min(i, j), max(i, j)), np.inf))
    (tree,) = chosen(torch.from_numpy(edges), 'minimum', size, weight=torch.from_numpy(weight))
    expected = min(
        sum(length[pair] for pair in pairs)
        for pairs in combinations(length, len(tree))
        if np.array_equal(joined(set(pairs), size), joined(set(length), size))
    )
    assert sum(length[pair] for pair in tree) == pytest.approx(expected)


def test_random_forests_are_uniform() -> None:
    count = 600
    trees = chosen(DIAMOND, 'random', 4, count)
    each = {tree: np.array([other == list(tree) for other in trees], dtype=float) for tree in map(tuple, trees)}
    assert len(each) == 8
    scores = np.concatenate([np.ravel(standard_scores(hits[:, None], np.array([1 / 8]))) for hits in each.values()])
    assert np.abs(scores).max() < confidence(len(scores))


def test_minimum_forests_break_ties_at_random() -> None:
    assert len({tuple(tree) for tree in chosen(ring(4), 'minimum', 4, 40)}) == 4


def test_low_stretch_is_below_that_of_other_forests() -> None:
    # The spokes of a wheel; clusters on a grid, whose paths are long from any node.
    assert mean_stretch(wheel(50), 'low_stretch', 51) < 1.7 < mean_stretch(wheel(50), 'minimum', 51)
    assert mean_stretch(grid(30), 'low_stretch', 900) < 8 < mean_stretch(grid(30), 'paths', 900)
    assert mean_stretch(grid(30), 'clustered', 900) < 8


@pytest.mark.parametrize('method', METHODS)
def test_forests_depend_on_the_graph_and_the_seed_alone(method: str) -> None:
    data = small_weighted_graph()
    weight, trees = data.edge_weight.abs(), None
    for order in (torch.arange(14), torch.arange(13, -1, -1), torch.arange(7)):
        edges = torch.cat([data.edge_index[:, order], torch.tensor([[2], [2]])], dim=1)
        actual = chosen(edges, method, 6, 5, torch.cat([weight[order], weight[:1]]))
        assert actual == (trees or actual)
        trees = actual
    assert chosen(data.edge_index, method, 6, 2, weight) == trees[:2]
    if method in ('clustered', 'random', 'minimum'):
        assert len({str(chosen(grid(4), method, 16, seed=seed)) for seed in (0, 1, -1, 2**40)}) == 4


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match=r"^method: got 'bfs'; accepted: low_stretch, minimum, random"):
        spanning_forests(no_edges(), None, 1, 'bfs', 1, 0)
    data: Data = GRAPHS['negative_weights']()
    with pytest.raises(ValueError, match=r'^edge_weight: got -.* for method="low_stretch"; accepted: lengths from 0'):
        spanning_forests(data.edge_index, data.edge_weight, 6, 'low_stretch', 1, 0)
