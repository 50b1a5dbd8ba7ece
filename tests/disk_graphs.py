"""A small dataset on disk."""

from pathlib import Path

import torch
from torch_geometric.data import Data, InMemoryDataset


class Graphs(InMemoryDataset):
    """Graphs of 1, 2, ... nodes, kept on disk; the first has no edges."""

    def __init__(self, root: Path, count: int = 4, value: float = 1.0) -> None:
        self.count, self.value = count, value
        super().__init__(str(root))
        self.load(self.processed_paths[0])

    @property
    def processed_file_names(self) -> list[str]:
        return [f'{self.count}-{self.value}.pt']

    def process(self) -> None:
        graphs = []
        for n in range(1, self.count + 1):
            forwards = torch.stack([torch.arange(n - 1), torch.arange(1, n)])
            x = torch.full((n, 2), self.value)
            graphs.append(Data(x=x, edge_index=torch.cat([forwards, forwards.flip(0)], dim=1), name=f'path {n}'))
        self.save(graphs, self.processed_paths[0])
