"""Road networks: the eccentricity of crossings, their features and splits."""

from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

from pyg_topomask.apps.datasets import RoadEccentricity
from pyg_topomask.apps.datasets.public_files import read_roads, within_hops


@pytest.mark.parametrize('hops', [1, 3, 16])
def test_eccentricity_is_the_longest_shortest_way_within_the_edges(hops: int) -> None:
    generator = np.random.default_rng(0)
    graph = nx.connected_watts_strogatz_graph(60, 4, 0.3, seed=1)
    for ends in graph.edges:
        graph.edges[ends]['weight'] = generator.random() + 0.1
    matrix = csr_array(nx.to_scipy_sparse_array(graph, nodelist=range(60)))
    actual = within_hops(matrix, hops)
    for node in range(60):
        near = graph.subgraph(nx.single_source_shortest_path_length(graph, node, cutoff=hops))
        assert actual[node] == pytest.approx(max(nx.single_source_dijkstra_path_length(near, node).values()))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A road of 40 crossings with one-way links, and one link of length 0."""
    edges = np.stack([np.arange(39), np.arange(1, 40)], 1)
    links = np.stack([np.linspace(0, 2, 39), np.full(39, 100.0), np.arange(39.0)], 1)
    columns = np.array(['length', 'capacity', 'toll'])
    np.savez(tmp_path / 'road.npz', edges=edges, links=links, link_columns=columns, pos=np.zeros((40, 2)), volume=np.ones(39))
    return tmp_path


def test_features_and_lengths(root: Path) -> None:
    matrix, x, volume = read_roads(root / 'road.npz')
    assert matrix.nnz == 78
    assert (matrix != matrix.T).nnz == 0
    degree = np.log1p(np.r_[1, np.full(38, 2), 1])
    np.testing.assert_allclose(x[:, 0], (degree - degree.mean()) / (degree.std() + 1e-6))
    assert x.shape == (40, 3)  # degree, capacity and length: the toll is left out
    np.testing.assert_allclose(x[:, 1], 0.0, atol=1e-6)
    logarithm = np.log1p(np.linspace(0, 2, 39))
    mean = np.r_[logarithm[0], (logarithm[:-1] + logarithm[1:]) / 2, logarithm[-1]]
    np.testing.assert_allclose(x[:, 2], (mean - mean.mean()) / (mean.std() + 1e-6))
    np.testing.assert_allclose(volume, np.log1p(np.r_[1, np.full(38, 2), 1]))


def test_the_shortest_of_parallel_roads_counts(tmp_path: Path) -> None:
    edges = np.array([[0, 1], [0, 1], [1, 0], [1, 2], [2, 1]])
    np.savez(tmp_path / 'x.npz', edges=edges, links=[[1.0], [5], [3], [9], [4]], link_columns=['length'], pos=np.zeros((3, 2)))
    matrix, _, _ = read_roads(tmp_path / 'x.npz')
    np.testing.assert_allclose(matrix.toarray(), [[0, 1.001, 0], [1.001, 0, 4.001], [0, 4.001, 0]])


@pytest.mark.parametrize('other', [{'hops': 5}, {'num_classes': 2}])
def test_classes_are_quantiles_of_the_eccentricity_in_graphs_stored_side_by_side(tmp_path: Path, other: dict[str, int]) -> None:
    # Lengths for which no eccentricity is near a bound.
    length, crossing = np.sqrt(np.abs(np.arange(39) - 8.37)), np.arange(40)
    edges = np.stack([crossing[:-1], crossing[1:]], 1)
    np.savez(tmp_path / 'x.npz', edges=edges, links=length[:, None], link_columns=['length'], pos=np.zeros((40, 2)))
    place = np.r_[0, np.cumsum(length + 1e-3)]
    for options in ({'hops': 2, 'num_classes': 4}, {'hops': 2, 'num_classes': 4} | other):
        before, after = (crossing - options['hops']).clip(0), (crossing + options['hops']).clip(None, 39)
        eccentricity = np.maximum(place - place[before], place[after] - place)
        bounds = np.quantile(eccentricity, np.arange(1, options['num_classes']) / options['num_classes'])
        data = RoadEccentricity(str(tmp_path), name='x', **options)[0]
        assert data.y.tolist() == (eccentricity[:, None] > bounds).sum(1).tolist()


def test_graph_classes_and_splits(root: Path) -> None:
    data = RoadEccentricity(str(root), name='road', hops=2, num_classes=4, seed=1)[0]
    again = RoadEccentricity(str(root), name='road', hops=2, num_classes=4, seed=2)[0]
    assert data.is_undirected()
    assert data.y.bincount().tolist() == [10, 10, 10, 10]
    assert torch.equal(data.y, again.y)
    assert not torch.equal(data.train_mask, again.train_mask)
    masks = torch.stack([data.train_mask, data.val_mask, data.test_mask])
    assert masks.sum(1).tolist() == [4, 4, 32]
    assert masks.sum(0).unique().tolist() == [1]


def test_bad_input(root: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r'no paris\.npz'):
        RoadEccentricity(str(root), name='paris')
    with pytest.raises(ValueError, match="split: got 'train'"):
        RoadEccentricity(str(root), split='train', name='road')
    with pytest.raises(ValueError, match='hops: got 0'):
        RoadEccentricity(str(root), name='road', hops=0)
