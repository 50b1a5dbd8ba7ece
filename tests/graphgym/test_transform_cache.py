from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data, InMemoryDataset
from torch_geometric.graphgym import register
from torch_geometric.graphgym.config import cfg
from torch_geometric.transforms import BaseTransform, Compose, RandomJitter

import pyg_topomask
from pyg_topomask.datasets import DigitsGrid
from pyg_topomask.graphgym.loader import apply_in_memory, build_transforms, load_dataset
from pyg_topomask.graphgym.transform_cache import cache_file
from pyg_topomask.transforms import AddGraphRandomFeatures


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


class Counting(BaseTransform):
    """Counts its calls, which are no part of what it is."""

    calls = 0

    def __init__(self, factor: int = 2) -> None:
        self.factor = factor

    def forward(self, data: Data) -> Data:
        type(self).calls += 1
        random.random()
        np.random.rand()  # noqa: NPY002
        data.more = self.factor * data.x + 0 * torch.rand(1)
        data.num_nodes = data.x.size(0)
        return data


@pytest.fixture(autouse=True)
def settings(configure: Callable[..., None]) -> None:
    configure()
    Counting.calls = 0


def files(root: Path) -> list[Path]:
    return sorted((root / 'processed').glob('topomask-*'))


@pytest.mark.parametrize('count', [1, 4])
def test_applied_once(tmp_path: Path, count: int) -> None:
    datasets = [Graphs(tmp_path, count) for _ in range(2)]
    for dataset in datasets:
        apply_in_memory(dataset, Counting())
        assert Counting.calls == count
    for first, second in zip(*datasets, strict=True):
        assert first.to_dict().keys() == second.to_dict().keys()
        assert torch.equal(first.more, second.more)
        assert torch.equal(second.more, torch.full_like(second.x, 2.0))
        assert (first.num_nodes, first.name) == (second.num_nodes, second.name)
    assert [type(data) for data in datasets[1]] == [Data] * count


def test_the_run_does_not_depend_on_the_file(tmp_path: Path) -> None:
    draws = []
    for _ in range(2):
        torch.manual_seed(0)
        random.seed(0)
        np.random.seed(0)  # noqa: NPY002
        apply_in_memory(Graphs(tmp_path), Counting())
        draws.append((torch.rand(1).item(), random.random(), np.random.rand()))  # noqa: NPY002
    assert Counting.calls == 4
    assert draws[0] == draws[1]


def test_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def key(transform: BaseTransform | None = None, dataset: InMemoryDataset | None = None) -> Path | None:
        return cache_file(Graphs(tmp_path) if dataset is None else dataset, transform or AddGraphRandomFeatures(num_walks=4))

    same = [key(), key(AddGraphRandomFeatures(4)), key(Compose([AddGraphRandomFeatures(num_walks=4)]))]
    assert len(set(same)) == 1
    keys = [
        same[0],
        key(AddGraphRandomFeatures(num_walks=5)),
        key(AddGraphRandomFeatures(num_walks=4, seed=1)),
        key(AddGraphRandomFeatures(num_walks=4, p_halt=0.25)),
        key(Compose([AddGraphRandomFeatures(num_walks=4), Counting()])),
        key(Compose([Counting(), AddGraphRandomFeatures(num_walks=4)])),
        key(dataset=Graphs(tmp_path, 5)),
        key(dataset=Graphs(tmp_path, 4, 2.0)),
        key(dataset=Graphs(tmp_path, 5)[[0, 2]]),
    ]
    monkeypatch.setattr(pyg_topomask, '__version__', '0.0.0')
    keys.append(key())
    assert len(set(keys)) == len(keys)
    assert all(name is not None and name.parent == tmp_path / 'processed' for name in keys)


def test_key_and_seed(tmp_path: Path) -> None:
    keys = {RandomJitter: set(), AddGraphRandomFeatures: set()}
    for cfg.seed in range(2):
        for transform, found in keys.items():
            found.add(cache_file(Graphs(tmp_path), transform(1)))
    assert [len(found) for found in keys.values()] == [2, 1]


def test_settings_of_walks_are_in_the_key(tmp_path: Path, configure: Callable[..., None]) -> None:
    keys = set()
    for options in ('', 'topomask.GRF.num_walks 7', 'topomask.GRF.p_halt 0.1', 'topomask.GRF.max_walk_length 2'):
        configure(options)
        keys.add(cache_file(Graphs(tmp_path), Compose(build_transforms(['AddGraphRandomFeatures']))))
    assert len(keys) == 4


@pytest.mark.parametrize('content', [b'', b'nonsense', None])
def test_what_is_corrupt_is_written_anew(tmp_path: Path, content: bytes | None) -> None:
    apply_in_memory(Graphs(tmp_path), Counting())
    (path,) = files(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2] if content is None else content)
    with pytest.warns(UserWarning, match='is not readable and written anew'):
        apply_in_memory(Graphs(tmp_path), Counting())
    assert Counting.calls == 8
    dataset = Graphs(tmp_path)
    apply_in_memory(dataset, Counting())
    assert Counting.calls == 8
    assert torch.equal(dataset[3].more, torch.full((4, 2), 2.0))


def test_nothing_is_left_of_a_failed_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(source: str, target: Path) -> None:
        raise OSError('disk full')

    monkeypatch.setattr(os, 'replace', fail)
    dataset = Graphs(tmp_path)
    before = sorted((tmp_path / 'processed').iterdir())
    with pytest.warns(UserWarning, match='could not be written.*disk full'):
        apply_in_memory(dataset, Counting())
    assert sorted((tmp_path / 'processed').iterdir()) == before
    assert torch.equal(dataset[1].more, torch.full((2, 2), 2.0))


def test_nothing_is_written_for_what_is_not_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    apply_in_memory(DigitsGrid(str(tmp_path / 'data'))[:3], Counting())
    assert Counting.calls == 3
    assert list(tmp_path.rglob('*.pt')) == []


def test_unused_options_are_warned_of(
    tmp_path: Path, configure: Callable[..., None], monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    monkeypatch.setitem(register.loader_dict, 'graphs', lambda *args: Graphs(tmp_path))
    configure('gt.layer_type GINE+GRF topomask.GRF.num_walks 7')
    load_dataset('any', 'name', '.')
    configure('gt.layer_type GINE+Linear topomask.GRF.num_walks 7')
    load_dataset('any', 'name', '.')  # a YAML that stores walks, for the attention GRF
    assert not recwarn.list
    cfg.topomask.transforms = []
    with pytest.warns(UserWarning, match=r"topomask.GRF: got num_walks, which nothing reads with gt.layer_type 'GINE\+Linear'"):
        load_dataset('any', 'name', '.')
