import os
from pathlib import Path

import numpy as np
import pytest
import torch

from pyg_topomask.apps.datasets import DigitsGrid
from pyg_topomask.apps.datasets.images import load_images

DATA = Path(os.environ.get('PYG_TOPOMASK_DATA', Path(__file__).parents[3] / 'shared' / 'data')) / 'images'


def write(folder: Path, name: str = 'mnist_subset.npz', **changes: object) -> Path:
    generator = np.random.default_rng(0)
    shape = (28, 28) if name.startswith('mnist') else (32, 32, 3)
    arrays = {}
    for split, count in (('train', 25), ('test', 7)):
        arrays[f'x_{split}'] = generator.integers(0, 256, (count, *shape), dtype=np.uint8)
        arrays[f'y_{split}'] = generator.integers(0, 10, count, dtype=np.uint8)
    np.savez(folder / name, **{key: value for key, value in (arrays | changes).items() if value is not None})
    return folder


def test_digits_are_those_of_the_grid_graphs() -> None:
    pytest.importorskip('sklearn')
    splits = load_images('digits')
    for split, (images, labels) in splits.items():
        dataset = DigitsGrid(split=split)
        assert torch.equal(images.flatten(), dataset._data.x[:, 0])
        assert torch.equal(labels, dataset._data.y)
        assert images.shape[1:] == (1, 8, 8)


@pytest.mark.parametrize(('name', 'shape'), [('mnist', (1, 28, 28)), ('cifar10', (3, 32, 32))])
def test_files_are_read_as_they_are(tmp_path: Path, name: str, shape: tuple[int, ...]) -> None:
    splits = load_images(name, write(tmp_path, f'{name}_subset.npz'))
    raw = np.load(tmp_path / f'{name}_subset.npz')
    assert {split: images.shape for split, (images, _) in splits.items()} == {
        'train': (23, *shape), 'val': (2, *shape), 'test': (7, *shape)
    }  # fmt: skip
    images, labels = splits['val']
    assert labels.tolist() == raw['y_train'][23:].tolist()
    assert images.dtype == torch.float32
    for channel in range(shape[0]):
        pixels = raw['x_train'][24] if shape[0] == 1 else raw['x_train'][24][:, :, channel]
        np.testing.assert_allclose(images[1, channel].numpy(), pixels / 255, rtol=1e-6)


@pytest.mark.skipif(not DATA.is_dir(), reason=f'no folder {DATA}: set PYG_TOPOMASK_DATA to the folder of the data sets')
@pytest.mark.parametrize(
    ('name', 'sizes', 'shape'), [('mnist', [9000, 1000, 2000], (1, 28, 28)), ('cifar10', [900, 100, 500], (3, 32, 32))]
)
def test_real_subsets(name: str, sizes: list[int], shape: tuple[int, ...]) -> None:
    splits = load_images(name, DATA)
    assert [len(labels) for _, labels in splits.values()] == sizes
    for images, labels in splits.values():
        assert images.shape == (len(labels), *shape)
        assert images.min() == 0
        assert images.max() == 1
        assert labels.unique().tolist() == list(range(10))


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r'root: got .* which lacks cifar10_subset.npz'):
        load_images('cifar10', write(tmp_path))


def test_files_of_other_contents_are_refused(tmp_path: Path, subtests: pytest.Subtests) -> None:
    for changes in [
        {'y_test': None},
        {'y_train': np.zeros(24, dtype=np.uint8)},
        {'x_train': np.zeros((25, 28, 28))},
        {'x_test': np.zeros((7, 784), dtype=np.uint8)},
    ]:
        with subtests.test(changes=changes), pytest.raises(ValueError, match=r'root: got .*mnist_subset\.npz'):
            load_images('mnist', write(tmp_path, **changes))


def test_files_that_are_no_archives_are_refused(tmp_path: Path) -> None:
    (tmp_path / 'mnist_subset.npz').write_text('no archive')
    with pytest.raises(ValueError, match='accepted: files that hold the arrays x_train, y_train, x_test, y_test'):
        load_images('mnist', tmp_path)


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match="name: got 'imagenet'; accepted:"):
        load_images('imagenet')
    with pytest.raises(ValueError, match="root: got None for name='mnist'; accepted: the folder"):
        load_images('mnist')
