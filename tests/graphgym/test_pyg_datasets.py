from __future__ import annotations

from typing import Any

import pytest
import torch
from torch_geometric.data import Data, InMemoryDataset

from pyg_topomask.graphgym import pyg_datasets
from pyg_topomask.graphgym.pyg_datasets import append_positions, join, load_pyg_dataset

pytestmark = pytest.mark.filterwarnings('ignore:.*internal storage format.*')

SIZES = {'train': 9, 'val': 3, 'test': 4}


class Fake(InMemoryDataset):
    """Graphs that hold the name of their part and their number in it."""

    def __init__(self, part: str) -> None:
        super().__init__(None)
        offset = 100 * list(SIZES).index(part)
        graphs = [Data(x=torch.full((index + 1, 2), float(offset + index))) for index in range(SIZES[part])]
        self.data, self.slices = self.collate(graphs)


def clean(dataset: Any) -> dict[str, list[int]]:
    """What the splits hold; like the loader, without the indices among the attributes of graphs."""
    splits = {key: dataset._data[key] for key in pyg_datasets.SPLIT_KEYS}
    for key in splits:
        del dataset._data[key]
        dataset.slices.pop(key, None)
    graphs = [int(dataset.get(number).x[0, 0]) for number in range(len(dataset))]
    return {key: [graphs[number] for number in index] for key, index in splits.items()}


def test_three_parts_become_one() -> None:
    found = clean(join([Fake('train'), Fake('val'), Fake('test')]))
    assert list(found.values()) == [list(range(9)), [100, 101, 102], [200, 201, 202, 203]]


def test_parts_may_be_subsets() -> None:
    found = clean(join([Fake('train')[[2, 5]], Fake('val')[:1], Fake('test')]))
    assert list(found.values()) == [[2, 5], [100], [200, 201, 202, 203]]


def test_validation_graphs_are_drawn_from_those_for_training() -> None:
    first, again, other = (clean(join([Fake('train'), Fake('test')], val=4, seed=seed)) for seed in (0, 0, 1))
    train, val, test = first.values()
    assert (len(train), len(val)) == (5, 4)
    assert sorted(train + val) == list(range(9))
    assert test == [200, 201, 202, 203]
    assert first == again != other


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


@pytest.mark.parametrize(('parts', 'val'), [(['train', 'test'], None), (['train', 'val', 'test'], 2)])
def test_bad_parts_are_named(parts: list[str], val: int | None) -> None:
    with pytest.raises(ValueError, match=r'^parts: got'):
        join([Fake(part) for part in parts], val)
