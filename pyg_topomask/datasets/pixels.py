r"""Images as grid graphs of their pixels."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Data, InMemoryDataset

from pyg_topomask.datasets.digits import SPLITS, grid_graphs
from pyg_topomask.datasets.images import FILES, load_images

__all__ = ['CIFAR10Pixels', 'MNISTPixels']


class _PixelGraphs(InMemoryDataset):
    r"""A dataset of the images of one file, with the splits of :func:`~pyg_topomask.datasets.load_images`."""

    images: str

    def __init__(
        self,
        root: str,
        split: str | None = None,
        pool: int = 2,
        transform: Callable[[Data], Data] | None = None,
        pre_transform: Callable[[Data], Data] | None = None,
    ) -> None:
        if split is not None and split not in SPLITS:
            raise ValueError(f'split: got {split!r}; accepted are {", ".join(SPLITS)} and None')
        self.pool = pool
        super().__init__(root, transform, pre_transform)
        self.load(self.processed_paths[0])
        sizes = torch.load(self.processed_paths[1])
        self._split_indices = dict(zip(SPLITS, torch.arange(sum(sizes)).split(sizes), strict=True))
        if split is not None:
            chosen = [self.get(int(index)) for index in self._split_indices[split]]
            self.data, self.slices = self.collate(chosen)
            self._data_list = None

    @property
    def raw_dir(self) -> str:
        return str(self.root)

    @property
    def raw_file_names(self) -> list[str]:
        return [FILES[self.images]]

    @property
    def processed_file_names(self) -> list[str]:
        return [f'{self.images}_pixels_{self.pool}.pt', f'{self.images}_pixels_{self.pool}_splits.pt']

    def download(self) -> None:
        raise FileNotFoundError(f'{type(self).__name__}: no {", ".join(self.raw_file_names)} in {self.raw_dir}; put them there')

    def split_indices(self) -> dict[str, Tensor]:
        r"""Returns the indices of the training, validation and test graphs within the whole dataset."""
        return self._split_indices

    def process(self) -> None:
        splits = load_images(self.images, Path(self.raw_dir))
        largest = min(splits['train'][0].shape[2:]) // 2
        if not 1 <= self.pool <= largest:
            raise ValueError(f'pool: got {self.pool}; accepted are 1 to {largest}')
        graphs = [graph for images, labels in splits.values() for graph in grid_graphs(F.avg_pool2d(images, self.pool), labels)]
        self.save(graphs if self.pre_transform is None else [self.pre_transform(g) for g in graphs], self.processed_paths[0])
        torch.save([len(labels) for _, labels in splits.values()], self.processed_paths[1])


class MNISTPixels(_PixelGraphs):
    r"""Handwritten digits of MNIST as grid graphs of 196 pixels, from the images of :obj:`mnist_subset.npz`.

    Images of 28x28 pixels are averaged over squares of :obj:`pool` pixels. A node is such a square, joined to those above,
    below, left and right of it. Node features are the intensity in :math:`[0, 1]` and the row and column in :math:`[-1, 1]`;
    edge features are the step from source to target in rows and columns. The images for testing are those of the file; of those
    for training the last tenth is for validation.

    Args:
        root (str): The folder with :obj:`mnist_subset.npz`, see :func:`~pyg_topomask.datasets.load_images`; what is made of it
            goes to :obj:`processed` there.
        split (str, optional): If :obj:`"train"`, :obj:`"val"` or :obj:`"test"`, holds that part alone.
            (default: :obj:`None`)
        pool (int): The height and width of the squares; :obj:`1` keeps all pixels. (default: :obj:`2`)
        transform (callable, optional): Called on each graph at every access. (default: :obj:`None`)
        pre_transform (callable, optional): Called on each graph once. (default: :obj:`None`)

    Raises:
        FileNotFoundError: If the file is not there.
        ValueError: If :obj:`split` is unknown, :obj:`pool` leaves fewer than 2x2 squares, or the file holds no such images.
    """

    images = 'mnist'


class CIFAR10Pixels(_PixelGraphs):
    r"""Photographs of CIFAR-10 as grid graphs of 256 pixels, from the images of :obj:`cifar10_subset.npz`.

    Images of 32x32 pixels are averaged over squares of :obj:`pool` pixels. A node is such a square, joined to those above,
    below, left and right of it. Node features are red, green and blue in :math:`[0, 1]` and the row and column in
    :math:`[-1, 1]`; edge features are the step from source to target in rows and columns. The images for testing are those of
    the file; of those for training the last tenth is for validation.

    Args:
        root (str): The folder with :obj:`cifar10_subset.npz`, see :func:`~pyg_topomask.datasets.load_images`; what is made of
            it goes to :obj:`processed` there.
        split (str, optional): If :obj:`"train"`, :obj:`"val"` or :obj:`"test"`, holds that part alone.
            (default: :obj:`None`)
        pool (int): The height and width of the squares; :obj:`1` keeps all pixels. (default: :obj:`2`)
        transform (callable, optional): Called on each graph at every access. (default: :obj:`None`)
        pre_transform (callable, optional): Called on each graph once. (default: :obj:`None`)

    Raises:
        FileNotFoundError: If the file is not there.
        ValueError: If :obj:`split` is unknown, :obj:`pool` leaves fewer than 2x2 squares, or the file holds no such images.
    """

    images = 'cifar10'
