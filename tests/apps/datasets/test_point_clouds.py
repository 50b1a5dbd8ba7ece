from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import pyg_topomask
from pyg_topomask.apps.datasets.point_clouds import SCENES, SceneBlocks, UrbanObjects, cut_into_blocks
from pyg_topomask.ops.knn import knn_graph

REAL = Path(pyg_topomask.__file__).parents[2] / 'shared' / 'data' / 'pointcloud'


def write_objects(root: Path) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(0)
    label = np.repeat(np.arange(3), 20).astype(np.int8)
    sizes = generator.integers(2, 30, label.size)
    arrays = {
        'pos_cm': generator.integers(0, 5000, (sizes.sum(), 3)).astype(np.uint16),
        'ptr': np.concatenate([[0], sizes.cumsum()]).astype(np.int32),
        'y': generator.permutation(label),
    }
    np.savez(root / 'urban_objects.npz', **arrays)
    return arrays


def write_scenes(root: Path) -> dict[str, dict[str, np.ndarray]]:
    generator, scenes = np.random.default_rng(0), {}
    for file in (file for files, _ in SCENES.values() for file in files):
        scenes[file] = {
            'pos': generator.random((500, 3)).astype(np.float32),
            'rgb': generator.integers(0, 256, (500, 3)).astype(np.uint8),
            'intensity': generator.integers(0, 900, 500).astype(np.uint16),
            'tree_id': generator.integers(-1, 3, 500).astype(np.int16),
            'y': generator.choice([1, 2, 9] if 'topography' in file else [1, 2, 20, 35], 500).astype(np.uint8),
        }
        np.savez(root / file, **scenes[file])
    return scenes


def check_splits(splits: dict[str, torch.Tensor], strata: torch.Tensor) -> None:
    assert torch.cat(list(splits.values())).sort().values.equal(torch.arange(strata.numel()))
    for name, share in zip(('train', 'val', 'test'), (0.7, 0.15, 0.15), strict=True):
        for stratum in strata.unique():
            members = (strata == stratum).sum()
            assert abs((strata[splits[name]] == stratum).sum() - share * members) <= 1


def test_objects(tmp_path: Path) -> None:
    arrays = write_objects(tmp_path)
    dataset = UrbanObjects(str(tmp_path))
    assert len(dataset) == 60
    assert dataset.num_classes == 3
    for index in (0, 7, 59):
        data, rows = dataset[index], slice(arrays['ptr'][index], arrays['ptr'][index + 1])
        np.testing.assert_allclose(data.pos.numpy(), arrays['pos_cm'][rows] / 100, rtol=1e-6)
        torch.testing.assert_close(data.x, data.pos - data.pos.mean(0))
        assert data.y.tolist() == [arrays['y'][index]]
    check_splits(dataset.split_indices(), torch.from_numpy(arrays['y']))
    test = UrbanObjects(str(tmp_path), split='test')
    assert len(test) == len(dataset.split_indices()['test'])
    assert torch.equal(test[2].pos, dataset[int(dataset.split_indices()['test'][2])].pos)


@pytest.mark.parametrize('name', SCENES)
def test_scenes(name: str, tmp_path: Path) -> None:
    scenes = write_scenes(tmp_path)
    files = [scenes[file] for file in SCENES[name][0]]
    dataset = SceneBlocks(str(tmp_path), name, max_points=40)
    assert all(data.num_nodes <= 40 for data in dataset)
    pos = np.concatenate([file['pos'] for file in files])
    whole = SceneBlocks(str(tmp_path), name, max_points=None)
    assert [data.num_nodes for data in whole] == [500] * len(files)
    np.testing.assert_array_equal(torch.cat([data.pos for data in whole]).numpy(), pos)
    classes = {
        'table': lambda file: file['y'] >= 20,
        'forest': lambda file: file['tree_id'] >= 0,
        'lake': lambda file: np.select([file['y'] == 1, file['y'] == 2], [0, 1], 2),
    }
    np.testing.assert_array_equal(whole._data.y.numpy(), np.concatenate([classes[name](file) for file in files]))
    color = {'table': lambda file: file['rgb'] / 255}.get(
        name, lambda file: file['intensity'][:, None] / file['intensity'].max()
    )
    np.testing.assert_allclose(whole._data.x[:, 3:].numpy(), np.concatenate([color(file) for file in files]), rtol=1e-6)

    # Every point is in one block, with its label.
    points = np.concatenate([np.concatenate([data.pos, data.y[:, None]], axis=1) for data in dataset])
    expected = np.concatenate([np.concatenate([data.pos, data.y[:, None]], axis=1) for data in whole])
    np.testing.assert_array_equal(points[np.lexsort(points.T)], expected[np.lexsort(expected.T)])
    np.testing.assert_allclose(dataset[3].x[:, :3].mean(0), np.zeros(3), atol=1e-6)
    blocks = len(dataset) // len(files)
    check_splits(dataset.split_indices(), torch.arange(len(files)).repeat_interleave(blocks))


def test_blocks_halve_the_longest_side() -> None:
    pos = torch.rand(100, 3, generator=torch.Generator().manual_seed(0)) * torch.tensor([1.0, 10.0, 1.0])
    blocks = cut_into_blocks(pos, 30)
    assert [block.numel() for block in blocks] == [25] * 4
    assert torch.cat(blocks).sort().values.equal(torch.arange(100))
    for before, after in pairwise(blocks):
        assert pos[before, 1].max() <= pos[after, 1].min()
    assert len(cut_into_blocks(torch.zeros(7, 3), 1)) == 7
    assert [block.tolist() for block in cut_into_blocks(torch.zeros(0, 3), 5)] == [[]]


def test_pre_transform_is_applied_once(tmp_path: Path) -> None:
    write_objects(tmp_path)

    def join(data: Any) -> Any:
        data.edge_index = knn_graph(data.pos, 4)
        return data

    assert all(data.num_edges > 0 for data in UrbanObjects(str(tmp_path), pre_transform=join))


def test_bad_arguments_are_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r'^UrbanObjects: no urban_objects.npz in '):
        UrbanObjects(str(tmp_path))
    with pytest.raises(ValueError, match=r"^split: got 'dev'"):
        UrbanObjects(str(tmp_path), split='dev')
    with pytest.raises(ValueError, match=r"^name: got 'kitchen'; accepted: table"):
        SceneBlocks(str(tmp_path), 'kitchen')
    write_scenes(tmp_path)
    with pytest.raises(ValueError, match=r"^split: got 'val', which has no graphs; accepted: train and None"):
        SceneBlocks(str(tmp_path), 'forest', max_points=None, split='val')
    assert len(SceneBlocks(str(tmp_path), 'forest', max_points=None, split='train')) == 1
    for wrong in (0, 2.5):
        with pytest.raises(ValueError, match=rf'^max_points: got {wrong}; accepted: whole numbers from 1'):
            SceneBlocks(str(tmp_path), max_points=wrong)
        with pytest.raises(ValueError, match=rf'^max_points: got {wrong}; accepted: whole numbers from 1'):
            cut_into_blocks(torch.zeros(2, 3), wrong)


@pytest.mark.skipif(not REAL.is_dir(), reason='the point clouds lie beside the repository, in shared/data, and are absent')
def test_real_scans(tmp_path: Path) -> None:
    for file in ('urban_objects.npz', 'lidar_mixedconifer.npz'):
        (tmp_path / file).symlink_to(REAL / file)
    dataset = UrbanObjects(str(tmp_path))
    assert len(dataset) == 499
    assert dataset._data.pos.size(0) == 1_150_902
    assert torch.bincount(dataset._data.y).tolist() == [99, 100, 100, 100, 100]
    assert [len(index) for index in dataset.split_indices().values()] == [349, 75, 75]
    assert SceneBlocks(str(tmp_path), 'forest')._data.y.sum() == 37_657 - 8_296
