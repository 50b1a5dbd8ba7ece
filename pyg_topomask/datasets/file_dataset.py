r"""Datasets created from files in their root, with fixed splits."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor
from torch_geometric.data import Data, InMemoryDataset

from pyg_topomask.checks import check_choice
from pyg_topomask.errors import ArgumentError

SPLITS = ('train', 'val', 'test')


class FileDataset(InMemoryDataset):
    r"""A dataset whose graphs :meth:`read` creates from the files :attr:`raw_file_names` in the root. The graphs are stored in
    :obj:`processed/<stem>` in the root.

    Args:
        root (str): The folder with the files.
        split (str, optional): If :obj:`"train"`, :obj:`"val"` or :obj:`"test"`, loads only this split.
            (default: :obj:`None`)
        transform (callable, optional): Called on each graph at every access. (default: :obj:`None`)
        pre_transform (callable, optional): Called on each graph once. (default: :obj:`None`)

    Raises:
        FileNotFoundError: If a file is missing.
        ValueError: If :obj:`split` is unknown or empty.
    """

    def __init__(
        self,
        root: str,
        split: str | None = None,
        transform: Callable[[Data], Data] | None = None,
        pre_transform: Callable[[Data], Data] | None = None,
    ) -> None:
        check_choice((*SPLITS, None), split=split)
        super().__init__(root, transform, pre_transform)
        self.load(self.processed_paths[0])
        self._split_indices: dict[str, Tensor] = torch.load(self.processed_paths[1])
        if split is not None:
            if self._split_indices[split].numel() == 0:
                with_graphs = [name for name, index in self._split_indices.items() if index.numel() > 0]
                raise ArgumentError('split', f'{split!r}, which has no graphs', f'{", ".join(with_graphs)} and None')
            chosen = [self.get(int(index)) for index in self._split_indices[split]]
            self.data, self.slices = self.collate(chosen)
            self._data_list = None

    @abstractmethod
    def read(self) -> tuple[list[Data], dict[str, Tensor]]:
        r"""Reads the files, and returns the graphs and the indices of each split."""

    @property
    @abstractmethod
    def stem(self) -> str:
        r"""The prefix of the names of processed files."""

    @property
    def raw_dir(self) -> str:
        return str(self.root)

    @property
    def processed_dir(self) -> str:
        # One folder per dataset, because PyG stores the transforms of the graphs in one file per folder.
        return str(Path(str(self.root)) / 'processed' / self.stem)

    @property
    def processed_file_names(self) -> list[str]:
        return [f'{self.stem}.pt', f'{self.stem}_split_indices.pt']

    def download(self) -> None:
        missing = [Path(path).name for path in self.raw_paths if not Path(path).exists()]
        raise FileNotFoundError(f'{type(self).__name__}: no {", ".join(missing)} in {self.raw_dir}; put them there')

    def split_indices(self) -> dict[str, Tensor]:
        r"""Returns the indices of the training, validation and test graphs within the whole dataset."""
        return self._split_indices

    def process(self) -> None:
        graphs, splits = self.read()
        self.save(graphs if self.pre_transform is None else [self.pre_transform(g) for g in graphs], self.processed_paths[0])
        torch.save(splits, self.processed_paths[1])
