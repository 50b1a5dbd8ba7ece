from __future__ import annotations

import builtins
from typing import Any

import pytest
import torch

from pyg_topomask.apps.datasets import DigitsGrid
from pyg_topomask.apps.datasets.images import grid_graphs

sklearn_datasets = pytest.importorskip('sklearn.datasets')


def test_graphs_are_the_images() -> None:
    images = torch.from_numpy(sklearn_datasets.load_digits().images)
    dataset = DigitsGrid()
    assert len(dataset) == 1797
    assert dataset.num_classes == 10
    data = dataset[123]
    assert torch.equal(data.x[:, 0].view(8, 8), (images[123] / 16).float())
    assert data.x[0, 1:].tolist() == [-1, -1]
    assert data.x[7, 1:].tolist() == [-1, 1]
    assert data.x[63, 1:].tolist() == [1, 1]


def test_edges_join_the_four_neighbors() -> None:
    data = DigitsGrid(split='val')[0]
    edges = set(map(tuple, data.edge_index.t().tolist()))
    expected = set()
    for row in range(8):
        for column in range(8):
            for step_row, step_column in [(0, 1), (1, 0), (0, -1), (-1, 0)]:
                if 0 <= row + step_row < 8 and 0 <= column + step_column < 8:
                    expected.add((8 * row + column, 8 * (row + step_row) + column + step_column))
    assert edges == expected
    for (source, target), step in zip(data.edge_index.t().tolist(), data.edge_attr.tolist(), strict=True):
        assert [target // 8 - source // 8, target % 8 - source % 8] == step


def test_splits_are_stratified_disjoint_and_fixed() -> None:
    dataset = DigitsGrid()
    splits = dataset.split_indices()
    assert [len(index) for index in splits.values()] == [1257, 270, 270]
    assert torch.cat(list(splits.values())).sort().values.equal(torch.arange(1797))
    labels = dataset._data.y
    for index in splits.values():
        shares = labels[index].bincount(minlength=10) / len(index)
        torch.testing.assert_close(shares, labels.bincount() / 1797, atol=0.01, rtol=0)
    test = DigitsGrid(split='test')
    assert len(test) == 270
    assert torch.equal(test[5].x, dataset[int(splits['test'][5])].x)


def test_pre_transform_is_applied_once() -> None:
    calls = []

    def pre_transform(data: Any) -> Any:
        calls.append(1)
        data.z = data.x.sum()
        return data

    dataset = DigitsGrid(split='test', pre_transform=pre_transform)
    assert dataset[0].z == dataset[0].x.sum()
    assert len(calls) == 270


def test_bad_split() -> None:
    with pytest.raises(ValueError, match="split: got 'dev'; accepted: train, val, test, None"):
        DigitsGrid(split='dev')


def test_missing_scikit_learn_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    original = builtins.__import__

    def without_sklearn(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.startswith('sklearn'):
            raise ImportError(name)
        return original(name, *args, **kwargs)

    monkeypatch.setattr(builtins, '__import__', without_sklearn)
    with pytest.raises(ImportError, match=r'pyg_topomask with its extra \[graphgym\]'):
        DigitsGrid()


@pytest.mark.parametrize('shape', [(1, 3), (3, 1), (1, 1)])
def test_positions_in_a_single_row_or_column_are_finite(shape: tuple[int, int]) -> None:
    [graph] = grid_graphs(torch.ones(1, 1, *shape), torch.zeros(1))
    position = [[-1.0, 0.0, 1.0] if size == 3 else [-1.0] for size in shape]
    assert graph.x[:, 1:].tolist() == [[row, column] for row in position[0] for column in position[1]]
