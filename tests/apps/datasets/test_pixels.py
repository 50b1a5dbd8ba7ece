from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.transforms import NormalizeFeatures

from pyg_topomask.apps.datasets import CIFAR10Pixels, MNISTPixels
from pyg_topomask.apps.datasets.images import load_images

DATA = Path(os.environ.get('PYG_TOPOMASK_DATA', Path(__file__).parents[3] / 'shared' / 'data')) / 'images'
CLASSES = {'mnist': (MNISTPixels, (28, 28)), 'cifar10': (CIFAR10Pixels, (32, 32, 3))}


def write(root: Path, name: str) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(0)
    arrays = {}
    for split, count in (('train', 20), ('test', 3)):
        arrays[f'x_{split}'] = generator.integers(0, 256, (count, *CLASSES[name][1]), dtype=np.uint8)
        arrays[f'y_{split}'] = generator.integers(0, 10, count, dtype=np.uint8)
    np.savez(root / f'{name}_subset.npz', **arrays)
    return arrays


@pytest.mark.parametrize('name', CLASSES)
@pytest.mark.parametrize('pool', [1, 2, 4])
def test_nodes_are_means_of_squares(tmp_path: Path, name: str, pool: int) -> None:
    arrays = write(tmp_path, name)
    dataset = CLASSES[name][0](str(tmp_path), pool=pool)
    images = np.concatenate([arrays['x_train'], arrays['x_test']]).astype(np.float64) / 255
    assert [int(data.y) for data in dataset] == [*arrays['y_train'], *arrays['y_test']]
    for number in (0, 19, 22):
        image = np.atleast_3d(images[number])
        side = image.shape[0] // pool
        squares = image.reshape(side, pool, side, pool, -1).mean((1, 3))
        x = dataset[number].x.view(side, side, -1).numpy()
        np.testing.assert_allclose(x[..., :-2], squares, atol=1e-6)
        place = np.linspace(-1, 1, side)
        np.testing.assert_allclose(x[..., -2:], np.stack(np.meshgrid(place, place, indexing='ij'), -1), atol=1e-6)


def test_edges_are_steps_to_the_four_neighbors(tmp_path: Path) -> None:
    write(tmp_path, 'mnist')
    data = MNISTPixels(str(tmp_path))[5]
    edges = {tuple(edge) for edge in data.edge_index.t().tolist()}
    place = np.stack(np.divmod(np.arange(196), 14), 1)
    distance = np.abs(place[:, None] - place[None]).sum(-1)
    assert edges == set(zip(*map(np.ndarray.tolist, np.nonzero(distance == 1)), strict=True))
    source, target = data.edge_index.numpy()
    np.testing.assert_array_equal(data.edge_attr.numpy(), place[target] - place[source])


def test_splits_are_those_of_the_images(tmp_path: Path) -> None:
    write(tmp_path, 'cifar10')
    dataset = CIFAR10Pixels(str(tmp_path))
    assert {split: index.tolist() for split, index in dataset.split_indices().items()} == {
        'train': [*range(18)], 'val': [18, 19], 'test': [20, 21, 22]
    }  # fmt: skip
    for split, (images, labels) in load_images('cifar10', tmp_path).items():
        subset = CIFAR10Pixels(str(tmp_path), split=split, pool=1)
        assert torch.equal(subset._data.y, labels)
        assert torch.equal(subset[1].x[:, :3].t().reshape(3, 32, 32), images[1])


def test_pre_transform_is_applied_once(tmp_path: Path) -> None:
    write(tmp_path, 'mnist')

    def pre_transform(data: Any) -> Any:
        data.z = data.x.sum()
        return data

    assert all('z' in data for data in MNISTPixels(str(tmp_path), pre_transform=pre_transform))


def test_sizes_and_transforms_are_stored_apart(tmp_path: Path) -> None:
    write(tmp_path, 'mnist')
    transform = NormalizeFeatures()
    changed = MNISTPixels(str(tmp_path), pool=7, pre_transform=transform)[0]
    other, plain = (MNISTPixels(str(tmp_path), pool=pool)[0] for pool in (14, 7))
    again = MNISTPixels(str(tmp_path), pool=7, pre_transform=transform)[0]
    assert torch.equal(again.x, changed.x)
    assert other.num_nodes < plain.num_nodes
    torch.testing.assert_close(transform(plain.clone()).x, changed.x)
    assert not torch.equal(plain.x, changed.x)


def test_bad_arguments_are_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r'^CIFAR10Pixels: no cifar10_subset.npz in '):
        CIFAR10Pixels(str(tmp_path))
    write(tmp_path, 'mnist')
    with pytest.raises(ValueError, match=r"^split: got 'dev'; accepted: train, val, test, None"):
        MNISTPixels(str(tmp_path), split='dev')
    MNISTPixels(str(tmp_path), pool=2)
    for pool, most in ((0, ''), (2.5, ''), ('2', ''), (15, ' to 14')):
        with pytest.raises(ValueError, match=rf'^pool: got {pool!r}; accepted: whole numbers from 1{most}$'):
            MNISTPixels(str(tmp_path), pool=pool)


@pytest.mark.skipif(not DATA.is_dir(), reason=f'no folder {DATA}: set PYG_TOPOMASK_DATA to the folder of the data sets')
def test_real_images(tmp_path: Path) -> None:
    (tmp_path / 'cifar10_subset.npz').symlink_to(DATA / 'cifar10_subset.npz')
    dataset = CIFAR10Pixels(str(tmp_path))
    assert [len(index) for index in dataset.split_indices().values()] == [900, 100, 500]
    assert {tuple(data.x.shape) for data in dataset} == {(256, 5)}
    assert dataset.num_classes == 10
