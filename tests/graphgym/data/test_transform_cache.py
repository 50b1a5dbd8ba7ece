from __future__ import annotations

import copy
import errno
import inspect
import os
import random
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from disk_graphs import Graphs
from torch_geometric import seed_everything
from torch_geometric.data import Batch, Data, InMemoryDataset
from torch_geometric.graphgym.config import cfg
from torch_geometric.transforms import (
    BaseTransform,
    Compose,
    NormalizeFeatures,
    RandomJitter,
    RemoveTrainingClasses,
    RootedEgoNets,
)

import pyg_topomask
from pyg_topomask.apps.datasets import DigitsGrid
from pyg_topomask.graphgym.data import transforms
from pyg_topomask.graphgym.data.transforms import apply_in_memory, build_transforms, cache_file, leaves_nodes
from pyg_topomask.transforms import AddGraphRandomFeatures, AddRandomWalkKernel, AddSVDEncoding, RandomSampling


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


class Noise(BaseTransform):
    """Draws from all generators."""

    def forward(self, data: Data) -> Data:
        data.x = data.x + torch.rand(data.x.shape) + random.random() + float(np.random.rand())  # noqa: NPY002
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


def test_processes_draw_what_one_would(tmp_path: Path) -> None:
    results = []
    for number, workers in enumerate((0, 2)):
        cfg.topomask.num_workers = workers
        dataset = Graphs(tmp_path / str(number), 40)
        state = torch.get_rng_state(), random.getstate()
        apply_in_memory(dataset, Compose([Noise(), AddGraphRandomFeatures()]))
        assert torch.equal(torch.get_rng_state(), state[0])
        assert random.getstate() == state[1]
        results.append(dataset)
    for serial, parallel in zip(*results, strict=True):
        assert serial.to_dict().keys() == parallel.to_dict().keys()
        assert all(torch.equal(serial[key], parallel[key]) for key in serial.to_dict() if isinstance(serial[key], torch.Tensor))
    assert results[0][0].x.unique().numel() == 2


def test_processes_below_zero(tmp_path: Path) -> None:
    cfg.topomask.num_workers = -1
    with pytest.raises(ValueError, match=r'topomask.num_workers: got -1; accepted: whole numbers from 0'):
        apply_in_memory(Graphs(tmp_path), Counting())
    assert not files(tmp_path)


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
    others = Graphs(tmp_path)
    others.slices = {**others.slices, 'x': torch.tensor([0, 2, 3, 6, 10])}
    keys = [
        same[0],
        key(dataset=others),
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


class Held(BaseTransform):
    """Holds any argument."""

    def __init__(self, value: object) -> None:
        self.value = value

    def forward(self, data: Data) -> Data:
        return data


class Slots:
    __slots__ = ('number',)

    def __init__(self, number: int) -> None:
        self.number = number


class SlotsAndMore(Slots):
    pass


class Numbers(np.ndarray):
    pass


def first_scale(x: torch.Tensor) -> torch.Tensor:
    return x


def second_scale(x: torch.Tensor) -> torch.Tensor:
    return 2 * x


@pytest.mark.parametrize(
    ('first', 'second'),
    [
        (partial(torch.mul, other=2), partial(torch.mul, other=3)),
        (first_scale, second_scale),
        (torch.relu, torch.sigmoid),
        (Slots(1), Slots(2)),
        (SlotsAndMore(1), SlotsAndMore(2)),
        (np.arange(2), np.arange(2.0)),
        (np.arange(2).view(Numbers), np.arange(1, 3).view(Numbers)),
        ({'a', 'b', 'c'}, {'a', 'b', 'd'}),
        ([1], (1,)),
        (Path('a'), Path('b')),
        (torch.float32, torch.float64),
        (Held(1), Held(2)),
    ],
)
def test_arguments_of_any_type_are_in_the_key(tmp_path: Path, first: object, second: object) -> None:
    dataset = Graphs(tmp_path)
    keys = [cache_file(dataset, Held(value)) for value in (first, second, copy.deepcopy(first))]
    assert None not in keys
    assert keys[0] == keys[2] != keys[1]


def test_classes_of_one_name_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset, keys = Graphs(tmp_path), set()
    for module in ('lab_a', 'lab_b'):
        monkeypatch.setattr(Held, '__module__', module)
        keys.add(cache_file(dataset, Held(1)))
    assert len(keys) == 2


def test_the_code_of_transforms_of_the_user_is_in_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = Graphs(tmp_path)
    keys = {cache_file(dataset, Held(1))}
    monkeypatch.setattr(inspect, 'getsource', lambda kind: f'class {kind.__name__}: changed')
    keys.add(cache_file(dataset, Held(1)))
    assert len(keys) == 2


def test_what_no_hash_can_tell_is_applied_each_time(tmp_path: Path) -> None:
    factors = iter((2.0, 3.0))
    for factor in (2.0, 3.0):
        transform, dataset = Counting(), Graphs(tmp_path)
        transform.function = lambda: next(factors)
        with pytest.warns(UserWarning, match=r'applied anew each time, not stored: .*<lambda> has no name'):
            apply_in_memory(dataset, transform)
        assert transform.function() == factor
    assert Counting.calls == 8
    assert not files(tmp_path)


def test_use_does_not_change_the_key(tmp_path: Path) -> None:
    dataset, transform = Graphs(tmp_path), AddSVDEncoding(9)
    before = cache_file(dataset, transform)
    with pytest.warns(UserWarning, match='^rank: got 9'):
        transform(dataset[2])
    assert cache_file(dataset, transform) == before


def test_key_and_seed(tmp_path: Path) -> None:
    keys = {RandomJitter: set(), Noise: set(), AddGraphRandomFeatures: set()}
    for cfg.seed in range(2):
        for transform, files in keys.items():
            files.add(cache_file(Graphs(tmp_path), transform() if transform is Noise else transform(1)))
    assert [len(files) for files in keys.values()] == [2, 2, 1]


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
    with pytest.warns(UserWarning, match='cannot be read and is made again'):
        apply_in_memory(Graphs(tmp_path), Counting())
    assert Counting.calls == 8
    dataset = Graphs(tmp_path)
    apply_in_memory(dataset, Counting())
    assert Counting.calls == 8
    assert torch.equal(dataset[3].more, torch.full((4, 2), 2.0))


def test_nothing_is_left_of_a_failed_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(source: str, target: Path) -> None:
        raise OSError(errno.ENOSPC, 'disk full')

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


@pytest.mark.filterwarnings('ignore:Sparse (CS. tensor support|invariant checks)')
def test_graphs_of_a_class_of_their_own_batch_as_that_class_does(tmp_path: Path) -> None:
    batches = []
    for _ in range(2):
        dataset = Graphs(tmp_path)
        apply_in_memory(dataset, RootedEgoNets(1))
        assert {type(data).__name__ for data in dataset} == {'RootedSubgraphData'}
        batches.append(Batch.from_data_list(list(dataset)))
    # The nodes of a path and their neighbors, numbered through the batch.
    assert batches[1].n_id.tolist() == [0, 1, 2, 1, 2, 3, 4, 3, 4, 5, 4, 5, 6, 7, 6, 7, 8, 7, 8, 9, 8, 9]
    assert all(torch.equal(batches[0][key], batches[1][key]) for key in ('n_id', 'e_id', 'sub_edge_index'))
    assert not files(tmp_path)


@pytest.mark.parametrize('layout', [torch.sparse_coo, torch.sparse_csr, torch.sparse_csc])
@pytest.mark.filterwarnings('ignore:Sparse (CS. tensor support|invariant checks)')
def test_sparse_tensors_are_in_the_key(tmp_path: Path, layout: torch.layout) -> None:
    def key(dense: torch.Tensor) -> Path | None:
        return cache_file(Graphs(tmp_path), Counting(dense.to_sparse(layout=layout)))

    eye = torch.eye(3)
    assert key(eye) == key(eye.clone())
    assert len({key(matrix) for matrix in (eye, 2 * eye, eye.flip(0), torch.eye(3, 4), eye.double())}) == 5


class Split(InMemoryDataset):
    """One graph or two, on disk, with one of the splits of its nodes."""

    def __init__(self, root: Path, count: int, split: int) -> None:
        super().__init__(str(root))
        forwards = torch.stack([torch.arange(5), torch.arange(1, 6)])
        edge_index = torch.cat([forwards, forwards.flip(0)], dim=1)
        graphs = [Data(x=torch.full((6, 2), float(number)), edge_index=edge_index) for number in range(count)]
        self.masks = {}
        for key in ('train_mask', 'val_mask', 'test_mask'):
            self.masks[key] = torch.rand(count, 6, generator=torch.Generator().manual_seed(split)) < 0.5
            for graph, mask in zip(graphs, self.masks[key], strict=True):
                graph[key] = mask
        self.data, self.slices = self.collate(graphs)

    @property
    def processed_file_names(self) -> list[str]:
        return ['any']

    def process(self) -> None:
        Path(self.processed_paths[0]).touch()


@pytest.mark.parametrize('count', [1, 2])
def test_one_file_for_all_splits(tmp_path: Path, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for split in range(2):
        dataset = Split(tmp_path, count, split)
        apply_in_memory(dataset, Compose([NormalizeFeatures(), AddGraphRandomFeatures(num_walks=2)]))
        for number, data in enumerate(dataset):
            assert all(torch.equal(data[key], mask[number]) for key, mask in dataset.masks.items())
            assert len(data.to_dict()) > 5  # the walks
        assert len(files(tmp_path)) == 1
        monkeypatch.setattr(AddGraphRandomFeatures, 'forward', None)  # none are drawn for the second split


@pytest.mark.parametrize('transform', [Counting(), RemoveTrainingClasses([0]), RandomSampling(4)])
def test_what_may_read_or_change_a_split_has_a_file_for_each(tmp_path: Path, transform: BaseTransform) -> None:
    assert not leaves_nodes(Compose([AddGraphRandomFeatures(), transform]))
    for split in range(2):
        dataset = Split(tmp_path, 1, split)
        dataset._data.y = torch.ones(6, dtype=torch.long)
        dataset._data.pos = torch.rand(6, 2, generator=torch.Generator().manual_seed(0))
        apply_in_memory(dataset, transform)
        assert dataset[0].train_mask.shape == dataset[0].x.shape[:1]
        assert len(files(tmp_path)) == split + 1


@pytest.mark.parametrize('chunk', [1, 25, 2**13])
def test_chunks_of_graphs_draw_what_single_graphs_would(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    monkeypatch.setattr(transforms, '_CHUNK', chunk)
    dataset, walks = Graphs(tmp_path, 40), AddGraphRandomFeatures(num_walks=2)
    expected = [walks(data) for data in Graphs(tmp_path, 40)]
    apply_in_memory(dataset, Compose([walks, Noise(), AddRandomWalkKernel(), Noise()]))
    for number, (data, alone) in enumerate(zip(dataset, expected, strict=True)):
        for draw in range(2):
            seed_everything((number * 0x9E3779B1 + draw) % 2**32)
            alone = Noise()(alone)
        assert torch.equal(data.x, alone.x)
        assert torch.equal(data.grf_load, alone.grf_load)
        assert torch.equal(data.rwgnk_load, AddRandomWalkKernel()(alone).rwgnk_load)
