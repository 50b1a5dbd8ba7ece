"""What datasets store of their files: damage, malice, and files that are replaced."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.transforms import AddSelfLoops, Constant, OneHotDegree

from pyg_topomask.apps.datasets.bases import FileDataset


class Numbers(FileDataset):
    """A graph for each number in a file."""

    reads = 0

    @property
    def raw_file_names(self) -> list[str]:
        return ['numbers.txt']

    @property
    def stem(self) -> str:
        return 'numbers'

    def read(self) -> tuple[list[Data], dict[str, Tensor]]:
        Numbers.reads += 1
        numbers = [float(word) for word in Path(self.raw_paths[0]).read_text().split()]
        graphs = [Data(x=torch.tensor([[number]]), edge_index=torch.zeros(2, 0, dtype=torch.long)) for number in numbers]
        index = torch.arange(len(graphs))
        return graphs, {'train': index[:1], 'val': index[1:2], 'test': index[2:]}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / 'numbers.txt').write_text('1 2 3')
    Numbers.reads = 0
    return tmp_path


def values(root: Path, **options: Any) -> list[float]:
    return [float(data.x[0, 0]) for data in Numbers(str(root), **options)]


def stored(root: Path) -> list[Path]:
    return sorted((root / 'processed' / 'numbers').iterdir())


def test_stored_once(root: Path) -> None:
    assert values(root) == values(root) == [1.0, 2.0, 3.0]
    assert values(root, split='test') == [3.0]
    assert Numbers.reads == 1
    assert len(stored(root)) == 1


def test_one_graph(root: Path) -> None:
    (root / 'numbers.txt').write_text('7')
    assert values(root) == values(root) == [7.0]


def test_a_replaced_file_is_noticed(root: Path) -> None:
    assert values(root) == [1.0, 2.0, 3.0]
    (root / 'numbers.txt').write_text('1 2 4')
    assert values(root) == [1.0, 2.0, 4.0]


def test_transforms_have_a_file_each(root: Path) -> None:
    wide = Numbers(str(root), pre_transform=Constant(2.0))
    wider = Numbers(str(root), pre_transform=OneHotDegree(3))
    assert [data.x.shape[1] for data in (wide[0], wider[0], Numbers(str(root))[0])] == [2, 5, 1]
    assert len(stored(root)) == 3


def test_arguments_that_the_repr_of_a_transform_omits_count(root: Path) -> None:
    first, second = (Numbers(str(root), pre_transform=AddSelfLoops(fill_value=value)) for value in (1.0, 2.0))
    assert repr(first.pre_transform) == repr(second.pre_transform)
    assert len(stored(root)) == 2


@pytest.mark.parametrize('added', [1.0, 2.0])
def test_a_transform_without_a_name_is_not_stored(root: Path, added: float) -> None:
    def add(data: Data) -> Data:
        data.x = data.x + added
        return data

    assert [float(data.x) for data in Numbers(str(root), pre_transform=add)] == [1 + added, 2 + added, 3 + added]
    assert not (root / 'processed').exists()


@pytest.mark.parametrize('damage', ['bit', 'half', 'empty', 'pickle'])
def test_damage_is_mended_with_a_warning(root: Path, damage: str) -> None:
    values(root)
    (path,) = stored(root)
    whole = path.read_bytes()
    if damage == 'pickle':
        torch.save(Payload(root / 'ran'), path)
    else:
        changed = whole[:300] + bytes([whole[300] ^ 1]) + whole[301:]
        path.write_bytes({'bit': changed, 'half': whole[: len(whole) // 2], 'empty': b''}[damage])
    with pytest.warns(UserWarning, match=rf'{path.name} is damaged and is made again from the files in'):
        assert values(root) == [1.0, 2.0, 3.0]
    assert not (root / 'ran').exists()
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        assert values(root) == [1.0, 2.0, 3.0]


class Payload:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize('package', ['pyg_topomask', 'torch_geometric'])
def test_another_version_creates_the_graphs_again(root: Path, monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    values(root)
    monkeypatch.setattr(f'{package}.__version__', '99')
    values(root)
    assert Numbers.reads == 2
