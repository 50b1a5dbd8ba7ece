r"""Datasets with fixed splits, created from files in their root or generated in memory."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import torch
import torch_geometric
from torch import Tensor
from torch_geometric.data import Data, InMemoryDataset

import pyg_topomask
from pyg_topomask.errors import ArgumentError, warn
from pyg_topomask.utils.checks import check_choice
from pyg_topomask.utils.files import UNHASHABLE, digest_of_files, digest_of_transform, load_tensors, save_tensors

SPLITS = ('train', 'val', 'test')
#: Names of the masks of nodes of each split.
MASKS = tuple(f'{split}_mask' for split in SPLITS)

#: Transforms of PyG, and functions.
Transform = Callable[[Data], Data]


def consecutive_splits(counts: Sequence[int]) -> dict[str, Tensor]:
    r"""Returns the indices of training, validation and test graphs that follow each other, so many of each split."""
    return dict(zip(SPLITS, torch.arange(sum(counts)).split(list(counts)), strict=True))


class _SplitDataset(InMemoryDataset):
    r"""Graphs with the indices of those of each split."""

    _split_indices: dict[str, Tensor]

    def split_indices(self) -> dict[str, Tensor]:
        r"""Returns the indices of the graphs of each split within the whole dataset."""
        return self._split_indices


class FileDataset(_SplitDataset):
    r"""A dataset whose graphs :meth:`read` creates from the files :attr:`raw_file_names` in the root.

    The graphs are stored in :obj:`processed/<stem>` in the root, in a file whose name contains a digest of the raw files, of
    :obj:`pre_transform` with all its arguments, and of the versions of this package and of PyG. A damaged file is created
    again, with a warning. With a :obj:`pre_transform` that has no name, such as a lambda function, nothing is stored.
    """

    raw_file_names: list[str] = []
    #: The name of the folder of what is stored, which says all arguments that change the graphs.
    stem: str
    #: Where the data come from.
    source: str
    _stored: dict[str, Any]

    def __init__(
        self,
        root: str,
        split: str | None = None,
        transform: Transform | None = None,
        pre_transform: Transform | None = None,
    ) -> None:
        check_choice((*SPLITS, None), split=split)
        super().__init__(root, transform, pre_transform)
        self.data, self.slices = Data.from_dict(self._stored['data']), self._stored['slices']
        self._split_indices = self._stored['splits']
        del self._stored
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
    def raw_dir(self) -> str:
        return str(self.root)

    @property
    def processed_dir(self) -> str:
        # One folder per dataset, because PyG stores the transforms of the graphs in one file per folder.
        return str(Path(str(self.root)) / 'processed' / self.stem)

    @property
    def processed_file_names(self) -> list[str]:
        return [] if self._digest is None else [f'{self._digest}.pt']

    @cached_property
    def _digest(self) -> str | None:
        salt = f'{pyg_topomask.__version__} {torch_geometric.__version__}'
        if self.pre_transform is not None:
            try:
                salt += f' {digest_of_transform(self.pre_transform).hex()}'
            except UNHASHABLE:
                return None
        return digest_of_files(*map(Path, self.raw_paths), salt=salt)

    def _download(self) -> None:
        # PyG's method makes the folder first.
        if not all(Path(path).exists() for path in self.raw_paths):
            self.download()

    def download(self) -> None:
        missing = [Path(path).name for path in self.raw_paths if not Path(path).exists()]
        raise FileNotFoundError(
            f'{type(self).__name__}: no {", ".join(missing)} in {self.raw_dir}; put them there. The data come from '
            f'{self.source}, and the documentation of {type(self).__name__} says what the files contain'
        )

    def _process(self) -> None:
        # PyG's method trusts any file of the name, and reads its notes of transforms with pickle, which may run code.
        for path in map(Path, self.processed_paths):  # none, or one
            try:
                self._stored = load_tensors(path)
                return
            except FileNotFoundError:
                pass
            except ValueError as error:
                warn(f'{path} is damaged and is made again from the files in {self.raw_dir}: {error}')
        self.process()

    def process(self) -> None:
        graphs, splits = self.read()
        data, slices = self.collate(graphs if self.pre_transform is None else [self.pre_transform(g) for g in graphs])
        self._stored = {'data': data.to_dict(), 'slices': None if slices is None else dict(slices), 'splits': splits}
        for path in map(Path, self.processed_paths):
            path.parent.mkdir(parents=True, exist_ok=True)
            save_tensors(path, self._stored)


class GeneratedDataset(_SplitDataset):
    r"""Graphs that the constructor of a subclass generates and passes to :meth:`hold`. Nothing is written to the root."""

    splits: ClassVar[tuple[str, ...]] = SPLITS

    def __init__(
        self, root: str | None, split: str | None, transform: Transform | None, pre_transform: Transform | None
    ) -> None:
        check_choice((*self.splits, None), split=split)
        super().__init__(root, transform, pre_transform)
        self.split = split

    def hold(self, graphs: list[Data], split_indices: dict[str, Tensor]) -> None:
        r"""Stores the graphs, or those of the split, and the indices of the graphs of each split."""
        if self.split is not None:
            graphs = [graphs[index] for index in split_indices[self.split].tolist()]
        graphs = graphs if self.pre_transform is None else [self.pre_transform(graph) for graph in graphs]
        self.data, self.slices = self.collate(graphs)
        self._split_indices = split_indices
