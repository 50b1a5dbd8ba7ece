"""A loader of one small set of random graphs, in three splits."""

import torch
from torch_geometric.data import Data, InMemoryDataset
from torch_geometric.graphgym.loader import set_dataset_attr
from torch_geometric.graphgym.register import register_loader


def random_graph(seed: int) -> Data:
    generator = torch.Generator().manual_seed(seed)
    num_nodes = 3 + seed
    edge_index = torch.randint(num_nodes, (2, 3 * num_nodes), generator=generator)
    return Data(
        x=torch.randn(num_nodes, 5, generator=generator),
        edge_index=torch.cat([edge_index, edge_index.flip(0)], dim=1),
        edge_attr=torch.rand(6 * num_nodes, generator=generator),
        y=torch.tensor([seed % 3]),
    )


class RandomGraphs(InMemoryDataset):
    def __init__(self, root: str) -> None:
        super().__init__(root)
        self.load(self.processed_paths[0])

    @property
    def processed_file_names(self) -> list[str]:
        return ['data.pt']

    def process(self) -> None:
        self.save([random_graph(seed) for seed in range(8)], self.processed_paths[0])


@register_loader('custom_master_loader')
def load_dataset_master(format: str, name: str, dataset_dir: str) -> InMemoryDataset:
    if format != 'random':
        raise ValueError(f'Unknown data format: {format}')
    dataset = RandomGraphs(dataset_dir)
    for key, index in {'train': range(4), 'val': range(4, 6), 'test': range(6, 8)}.items():
        set_dataset_attr(dataset, f'{key}_graph_index', list(index), len(index))
    return dataset
