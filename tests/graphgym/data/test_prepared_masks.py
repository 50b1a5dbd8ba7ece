"""The runner stores what the masks of the configured attention prepare."""

import logging
from collections.abc import Callable, Sequence

import pytest
import torch
from torch_geometric.data import Data, InMemoryDataset
from torch_geometric.graphgym import register
from torch_geometric.graphgym.config import cfg

from pyg_topomask.graphgym.data.datasets import load_dataset
from pyg_topomask.masks import HopMask


class Paths(InMemoryDataset):
    def __init__(self, count: int) -> None:
        super().__init__(None)
        nodes = [torch.arange(size) for size in range(2, count + 2)]
        graphs = [Data(x=torch.ones(len(each), 2), edge_index=torch.stack([each[:-1], each[1:]])) for each in nodes]
        self.data, self.slices = self.collate(graphs)


@pytest.fixture
def load(configure: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> Callable[..., InMemoryDataset]:
    def load(layer: str, count: int = 3, transforms: Sequence[str] = ()) -> InMemoryDataset:
        cfg.gt.layer_type = f'GINE+{layer}'
        cfg.topomask.transforms = list(transforms)
        monkeypatch.setitem(register.loader_dict, 'paths', lambda *args: Paths(count))
        return load_dataset('anything', 'name', '.')

    configure()
    return load


def test_distances_are_stored_and_their_bytes_logged(
    load: Callable[..., InMemoryDataset], caplog: pytest.LogCaptureFixture
) -> None:
    cfg.topomask.Hop.max_hops = 5
    cfg.topomask.prepare_bytes = 9
    with caplog.at_level(logging.INFO):
        dataset = load('Hop')
    pairs, _ = HopMask(max_hops=5).stored_blocks.names
    assert [len(data[pairs]) for data in dataset] == [4, 9, 0]
    assert dataset[0][pairs].tolist() == [1, 0, 2, 1]
    assert caplog.messages[-1].startswith('HopMask stores 4 bytes a graph; 1 of 3 graphs are above topomask.prepare_bytes 9')


def test_encodings_and_masks_are_those_of_the_edges_that_other_transforms_leave(load: Callable[..., InMemoryDataset]) -> None:
    cfg.posenc_RWSE.enable, cfg.posenc_RWSE.kernel.times = True, [1]
    cfg.topomask.Hop.max_hops, cfg.dataset.node_encoder_name = 1, 'LinearNode+RWSE'
    data = load('Hop', transforms=['ToUndirected', 'AddSelfLoops'])[1]  # a path of three nodes
    assert data.pestat_RWSE.flatten().tolist() == pytest.approx([1 / 2, 1 / 3, 1 / 2])
    pairs, _ = HopMask(max_hops=1).stored_blocks.names
    assert data[pairs].tolist() == [1, 2, 0, 2, 1, 2, 0, 2, 1]  # labels of distances, 0 for none


def test_masks_in_a_composed_mask(load: Callable[..., InMemoryDataset]) -> None:
    cfg.topomask.mask.update({'sum': [{'Hop': {'max_hops': 1}}, {'Hop': {'max_hops': 3}}, 'PowerSeries']})
    (data, *_) = load('Masked')
    for hops in (1, 3):
        assert set(HopMask(max_hops=hops).stored_blocks.names) <= set(data.keys())


@pytest.mark.parametrize(('layer', 'count', 'most'), [('Linear', 3, 9), ('Hop', 1, 9), ('Hop', 3, 0)])
def test_nothing_is_stored_that_nothing_reads(load: Callable[..., InMemoryDataset], layer: str, count: int, most: int) -> None:
    cfg.topomask.prepare_bytes = most
    assert set(load(layer, count)[0].keys()) == {'x', 'edge_index'}
