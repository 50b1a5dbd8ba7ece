"""Features of roads, and models that differ by their learned weights only."""

from pathlib import Path

import numpy as np
import torch
from torch_geometric.data import Data

from benchmarks.edge_roads import NETWORKS, Network, attributes


def test_attributes_are_those_of_the_shortest_of_parallel_links(tmp_path: Path) -> None:
    path = tmp_path / 'roads.npz'
    links = np.array([[9.0, 30.0], [2.0, 60.0], [3.0, 50.0], [5.0, 40.0]])
    edges = np.array([[0, 1], [1, 0], [2, 1], [0, 2]])
    np.savez(path, edges=edges, links=links, link_columns=['length', 'speed'], pos=np.zeros((3, 2)))
    edge_index = torch.tensor([[2, 0, 1, 1, 0], [0, 1, 0, 2, 2]])
    values = np.log1p(links[[3, 1, 1, 2, 3]])
    expected = (values - values.mean(0)) / values.std(0)
    np.testing.assert_allclose(attributes(path, edge_index), expected, rtol=1e-4, atol=1e-5)


def test_learned_weights_start_as_the_model_without() -> None:
    ring = torch.arange(8)
    edge_index = torch.cat([torch.stack([ring, ring.roll(1)]), torch.stack([ring.roll(1), ring])], dim=1)
    data, outputs = Data(x=torch.randn(8, 3), edge_index=edge_index, edge_attr=torch.randn(16, 2)), {}
    for name, (make, layers) in NETWORKS.items():
        torch.manual_seed(0)
        outputs[name] = Network(make, layers, data).eval()(data).detach()
    pairs = [name for name in NETWORKS if f'{name}, learned weights' in NETWORKS]
    assert len(pairs) == 3
    for name in pairs:
        torch.testing.assert_close(outputs[f'{name}, learned weights'], outputs[name], rtol=1e-4, atol=1e-5)
