from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data, InMemoryDataset

from pyg_topomask.graphgym.data import pyg_datasets
from pyg_topomask.graphgym.data.pyg_datasets import append_positions, join, load_pyg_dataset

TU = Path(os.environ.get('PYG_TOPOMASK_DATA', Path(__file__).parents[4] / 'shared' / 'data')) / 'tu'

pytestmark = pytest.mark.filterwarnings('ignore:.*internal storage format.*')

SIZES = {'train': 9, 'val': 3, 'test': 4}


class Fake(InMemoryDataset):
    """Graphs that hold the name of their part and their number in it."""

    def __init__(self, split: str) -> None:
        super().__init__(None)
        offset = 100 * list(SIZES).index(split)
        graphs = [Data(x=torch.full((index + 1, 2), float(offset + index))) for index in range(SIZES[split])]
        self.data, self.slices = self.collate(graphs)


def clean(dataset: Any) -> dict[str, list[int]]:
    """What the splits hold; like the loader, without the indices among the attributes of graphs."""
    splits = {key: dataset._data[key] for key in pyg_datasets.SPLIT_KEYS}
    for key in splits:
        del dataset._data[key]
        dataset.slices.pop(key, None)
    graphs = [int(dataset.get(number).x[0, 0]) for number in range(len(dataset))]
    return {key: [graphs[number] for number in index] for key, index in splits.items()}


def test_three_splits_become_one() -> None:
    indices = clean(join([Fake('train'), Fake('val'), Fake('test')]))
    assert list(indices.values()) == [list(range(9)), [100, 101, 102], [200, 201, 202, 203]]


def test_splits_may_be_subsets() -> None:
    indices = clean(join([Fake('train')[[2, 5]], Fake('val')[:1], Fake('test')]))
    assert list(indices.values()) == [[2, 5], [100], [200, 201, 202, 203]]


def test_validation_graphs_are_drawn_from_those_for_training() -> None:
    first, again, reseeded = (clean(join([Fake('train'), Fake('test')], val=4, seed=seed)) for seed in (0, 0, 1))
    train, val, test = first.values()
    assert (len(train), len(val)) == (5, 4)
    assert sorted(train + val) == list(range(9))
    assert test == [200, 201, 202, 203]
    assert first == again != reseeded


def test_formats(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def fake(root: str, name: str, split: str) -> Fake:
        asked.append((root, name, split))
        return Fake(split)

    monkeypatch.setattr(pyg_datasets, 'LRGBDataset', fake)
    dataset = load_pyg_dataset('PyG-LRGBDataset', 'PascalVOC-SP', 'data')
    assert dataset is not None
    assert asked == [('data/LRGBDataset', 'PascalVOC-SP', split) for split in ('train', 'val', 'test')]
    assert load_pyg_dataset('OGB', 'ogbg-molhiv', 'data') is None


def test_positions_become_features() -> None:
    pos = torch.rand(3, 2)
    assert append_positions(Data(x=torch.ones(3, 1), pos=pos)).x.tolist() == [[1.0, *point] for point in pos.tolist()]
    assert torch.equal(append_positions(Data(pos=pos)).x, pos)


LABELS = [*20 * [1], *31 * [2], *10 * [5]]


def write_tu(root: Path) -> None:
    """Paths of two nodes, with a label and an attribute."""
    raw = root / 'MADE' / 'raw'
    raw.mkdir(parents=True)
    columns = {
        'A': [f'{a}, {b}' for i in range(len(LABELS)) for a, b in ((2 * i + 1, 2 * i + 2), (2 * i + 2, 2 * i + 1))],
        'graph_indicator': [i + 1 for i in range(len(LABELS)) for _ in range(2)],
        'graph_labels': LABELS,
        'node_labels': len(LABELS) * [0, 1],
        'node_attributes': [f'{i / 2}' for i in range(2 * len(LABELS))],
    }
    for name, lines in columns.items():
        (raw / f'MADE_{name}.txt').write_text('\n'.join(map(str, lines)) + '\n')


@pytest.mark.parametrize('folder', ['', 'TUDataset'])
def test_tu_sets(tmp_path: Path, folder: str, configure: Callable[..., None]) -> None:
    configure('dataset.split [0.6,0.2,0.2]')
    write_tu(tmp_path / folder)
    dataset = load_pyg_dataset('PyG-TUDataset', 'MADE', str(tmp_path))
    splits = [dataset._data[key].tolist() for key in pyg_datasets.SPLIT_KEYS]
    assert sorted(index for indices in splits for index in indices) == list(range(len(LABELS)))
    counts = [np.unique(np.array(LABELS)[indices], return_counts=True)[1].tolist() for indices in splits]
    assert counts == [[12, 19, 6], [4, 6, 2], [4, 6, 2]]
    again = load_pyg_dataset('PyG-TUDataset', 'MADE', str(tmp_path))
    assert [again._data[key].tolist() for key in pyg_datasets.SPLIT_KEYS] == splits
    for key in pyg_datasets.SPLIT_KEYS:
        del dataset._data[key], dataset.slices[key]
    assert dataset[3].x.tolist() == [[3.0, 1.0, 0.0], [3.5, 0.0, 1.0]]
    assert (tmp_path / folder / 'MADE' / 'processed').is_dir()


@pytest.mark.parametrize('shares', ['[0.8,0.2]', '[0.8,0.1,0.2]', '[1.0,0.0,0.0]'])
def test_bad_shares_are_named(tmp_path: Path, shares: str, configure: Callable[..., None]) -> None:
    configure(f'dataset.split {shares}')
    with pytest.raises(ValueError, match=r'^dataset\.split: got \[.*accepted: three positive shares'):
        load_pyg_dataset('PyG-TUDataset', 'MADE', str(tmp_path))


def test_nodes_are_split_by_shares(monkeypatch: pytest.MonkeyPatch, configure: Callable[..., None]) -> None:
    class Nodes(InMemoryDataset):
        def __init__(self, root: str, name: str) -> None:
            super().__init__(None)
            self.data, self.slices = self.collate([Data(x=torch.rand(40, 2), y=torch.zeros(40))])

    monkeypatch.setattr(pyg_datasets, 'Amazon', Nodes)
    configure('dataset.split [0.5,0.1,0.4]')
    dataset = load_pyg_dataset('PyG-Amazon', 'computers', '.')
    assert dataset is not None
    masks = [dataset._data[f'{split}_mask'] for split in ('train', 'val', 'test')]
    assert [int(mask.sum()) for mask in masks] == [20, 4, 16]
    assert int(torch.stack(masks).sum(0).max()) == 1


@pytest.mark.skipif(not TU.is_dir(), reason=f'no folder {TU}: set PYG_TOPOMASK_DATA to the folder of the data sets')
def test_real_enzymes(tmp_path: Path, configure: Callable[..., None]) -> None:
    configure()
    shutil.copytree(TU / 'ENZYMES', tmp_path / 'ENZYMES')
    dataset = load_pyg_dataset('PyG-TUDataset', 'ENZYMES', str(tmp_path))
    assert [len(dataset._data[key]) for key in pyg_datasets.SPLIT_KEYS] == [480, 60, 60]
    assert dataset._data.x.shape[1] == 21


@pytest.mark.parametrize(('splits', 'val'), [(['train', 'test'], None), (['train', 'val', 'test'], 2)])
def test_bad_splits_are_named(splits: list[str], val: int | None) -> None:
    with pytest.raises(ValueError, match=r'^splits: got'):
        join([Fake(split) for split in splits], val)
