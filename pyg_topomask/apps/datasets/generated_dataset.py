r"""Datasets generated in memory, with fixed splits."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor
from torch_geometric.data import Data, InMemoryDataset

from pyg_topomask.apps.datasets.file_dataset import SPLITS, Transform
from pyg_topomask.utils.checks import check_choice


class GeneratedDataset(InMemoryDataset):
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

    def split_indices(self) -> dict[str, Tensor]:
        r"""Returns the indices of the graphs of each split within the whole dataset."""
        return self._split_indices
