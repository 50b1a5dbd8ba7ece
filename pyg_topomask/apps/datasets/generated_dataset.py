r"""Datasets generated in memory, with fixed splits."""

from __future__ import annotations

from torch import Tensor
from torch_geometric.data import Data, InMemoryDataset


class GeneratedDataset(InMemoryDataset):
    r"""Graphs that the constructor of a subclass generates and passes to :meth:`hold`. Nothing is written.

    Args:
        root (str, optional): Unused, because nothing is written. (default: :obj:`None`)
        transform (callable, optional): Called on each graph at every access. (default: :obj:`None`)
        pre_transform (callable, optional): Called on each graph once. (default: :obj:`None`)
    """

    _split_indices: dict[str, Tensor]

    def hold(self, graphs: list[Data], split_indices: dict[str, Tensor], split: str | None = None) -> None:
        r"""Stores the graphs of the dataset, or of one split of them, and the indices of each split in the whole dataset."""
        if split is not None:
            graphs = [graphs[index] for index in split_indices[split].tolist()]
        graphs = graphs if self.pre_transform is None else [self.pre_transform(graph) for graph in graphs]
        self.data, self.slices = self.collate(graphs)
        self._split_indices = split_indices

    def split_indices(self) -> dict[str, Tensor]:
        r"""Returns the indices of the graphs of each split within the whole dataset."""
        return self._split_indices
