"""Normals of meshes: their areas and weights, patches, and splits."""

from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import torch
from scipy.spatial import ConvexHull
from torch_geometric.utils import to_networkx

from pyg_topomask.apps.datasets import MeshNormals
from pyg_topomask.apps.datasets.public_files import cut_patch, read_mesh


def _write_hull(path: Path, num_nodes: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Writes the convex hull of random points, and a vertex without faces."""
    pos = np.random.default_rng(seed).standard_normal((num_nodes, 3))
    pos /= np.linalg.norm(pos, axis=1, keepdims=True)
    hull = ConvexHull(pos)
    first, second, third = (pos[hull.simplices[:, corner]] for corner in range(3))
    inward = (np.cross(second - first, third - first) * first).sum(1) < 0
    face = np.where(inward[:, None], hull.simplices[:, ::-1], hull.simplices)
    pos = np.vstack([pos, np.zeros(3)])
    np.savez(path, pos=pos, face=face)
    return pos, face


def test_normals_are_means_of_those_of_faces_by_area(tmp_path: Path) -> None:
    pos, face = _write_hull(tmp_path / 'hull.npz', 60, 0)
    edges, position, normal = read_mesh(tmp_path / 'hull.npz')
    np.testing.assert_array_equal(position, pos)
    for vertex in range(60):
        total = np.zeros(3)
        for a, b, c in face[(face == vertex).any(1)]:
            cross = np.cross(pos[b] - pos[a], pos[c] - pos[a])
            total += np.linalg.norm(cross) / 2 * (cross / np.linalg.norm(cross))
        np.testing.assert_allclose(normal[vertex], total / np.linalg.norm(total), atol=1e-12)
    assert (normal[60] == 0).all()
    pairs = {tuple(pair) for triangle in face.tolist() for pair in [triangle[:2], triangle[1:], triangle[::2]]}
    expected = {*pairs, *((j, i) for i, j in pairs)}
    assert set(zip(*(index.tolist() for index in edges.tocoo().coords), strict=True)) == expected
    assert set(edges.data) == {1.0}


def test_patch_is_the_nearest_vertices(tmp_path: Path) -> None:
    pos, _ = _write_hull(tmp_path / 'hull.npz', 200, 0)
    edges, position, normal = read_mesh(tmp_path / 'hull.npz')
    data = cut_patch(edges, position, normal, 50, 0.4, np.random.default_rng(3))
    nodes = [int(np.abs(pos - each).sum(1).argmin()) for each in data.pos.double().numpy()]
    graph = nx.from_scipy_sparse_array(edges)
    steps = nx.single_source_shortest_path_length(graph, nodes[0])
    outside = set(range(200)) - set(nodes)
    assert max(steps[node] for node in nodes) <= min(steps[node] for node in outside)
    expected = nx.relabel_nodes(graph.subgraph(nodes), {node: index for index, node in enumerate(nodes)})
    assert set(map(frozenset, to_networkx(data, to_undirected=True).edges)) == set(map(frozenset, expected.edges))
    torch.testing.assert_close(data.y, torch.from_numpy(normal[nodes]).float())
    assert torch.equal(data.x[:, :3], torch.where(data.known[:, None], data.y, 0.0))
    assert torch.equal(data.x[:, 3], data.known.float())
    assert 0 < data.known.sum() < 50


@pytest.fixture
def root(tmp_path: Path) -> Path:
    _write_hull(tmp_path / 'first.npz', 80, 1)
    _write_hull(tmp_path / 'second.npz', 80, 2)
    return tmp_path


def test_splits_and_seeds(root: Path) -> None:
    options = {'train': 'first', 'test': 'second', 'num_nodes': 30}
    dataset, other = (MeshNormals(str(root), **options, seed=seed) for seed in (0, -1))
    assert {split: len(index) for split, index in dataset.split_indices().items()} == {'train': 16, 'val': 8, 'test': 16}
    assert len(MeshNormals(str(root), 'val', **options)) == 8
    assert not torch.equal(dataset[0].pos, other[0].pos)
    for mesh, graphs in (('first', range(24)), ('second', range(24, 40))):
        points = torch.from_numpy(np.load(root / f'{mesh}.npz')['pos']).float()
        assert all((torch.cdist(dataset[index].pos, points).min(1).values < 1e-3).all() for index in graphs)


@pytest.mark.parametrize('other', [{'num_nodes': 40}, {'fraction': 1.0}])
def test_patches_of_other_sizes_and_fractions_are_stored_side_by_side(root: Path, other: dict[str, float]) -> None:
    for options in ({'num_nodes': 30, 'fraction': 0.0}, {'num_nodes': 30, 'fraction': 0.0} | other):
        for data in MeshNormals(str(root), 'val', 'first', 'second', **options):
            assert (data.num_nodes, data.known.float().mean()) == (options['num_nodes'], options['fraction'])


def test_bad_input(root: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r'no mesh_bunny\.npz, mesh_armadillo\.npz'):
        MeshNormals(str(root))
    with pytest.raises(ValueError, match=r'num_nodes: got 81; .*at most 80'):
        MeshNormals(str(root), train='first', test='second', num_nodes=81)
    with pytest.raises(ValueError, match=r'fraction: got 1\.5'):
        MeshNormals(str(root), train='first', test='second', fraction=1.5)
    with pytest.raises(ValueError, match="split: got 'all'"):
        MeshNormals(str(root), 'all')
