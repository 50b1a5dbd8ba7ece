"""The standalone runner in two processes, started by torchrun, against the same run in one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import torch
from csv_tables import without_seconds

pytest.importorskip('yacs')
pytest.importorskip('pytorch_lightning')

from torch_geometric.loader import RandomNodeLoader

import pyg_topomask
from pyg_topomask.apps.datasets import DigitsGrid
from pyg_topomask.apps.datasets import images as digits_module
from pyg_topomask.apps.runs.checkpoint import load_checkpoint
from pyg_topomask.apps.train import train
from pyg_topomask.graphgym.data import loaders as data_module
from pyg_topomask.graphgym.data.loaders import EpochSampler, SharedBatches

CONFIG = Path(__file__).parents[3] / 'graphgps_configs' / 'digits.yaml'

SMALL = 'gt.layers 1 gt.n_heads 2 gt.dim_hidden 8 gnn.dim_inner 8 train.batch_size 65 topomask.progress False '
# Walks are stored, nothing is dropped and each graph is normalized alone: two processes do what one does.
EXACT = SMALL + (
    'gt.layer_norm True gt.batch_norm False topomask.GRF.feature_map favor optim.optimizer sgd optim.base_lr 0.3 '
    'optim.scheduler none'
)
DRAWN = SMALL + 'topomask.transforms [] topomask.GRF.resample forward gt.attn_dropout 0.2 gt.dropout 0.2'

SCRIPT = """
import json
import sys

import torch

from pyg_topomask.apps.datasets import images as digits
from pyg_topomask.apps.train import train
from pyg_topomask.apps.runs.devices import rank
from pyg_topomask.apps.recommend.runner import train as train_recommender

torch.set_num_threads(1)
cfg_file, folder, exact, drawn = sys.argv[1:]
images, labels = digits.digit_images()
digits.digit_images = lambda: (images[:300], labels[:300])


def run(name, options, epochs, **kwargs):
    return train(cfg_file, [*options.split(), 'optim.max_epoch', str(epochs)], out=f'{folder}/{name}', **kwargs)


results = run('two', exact, 2)
run('half', exact, 2, resume=True)
run('whole', drawn, 2)
seed = torch.initial_seed()
run('parts', drawn, 1)
run('parts', drawn, 2, resume=True)

errors = []


def fail(start):
    try:
        start()
    except ValueError as error:
        errors.append(str(error))


for options in ('train.batch_size 3', 'devices 4'):
    fail(lambda: run('errors', options, 1))
fail(lambda: train_recommender('recommend.yaml'))
with open(f'{folder}/{rank()}.json', 'w') as file:
    json.dump({'results': results, 'seed': seed, 'errors': errors}, file)
"""


def run_dir(out: Path) -> Path:
    return out / 'digits' / '0'


def read_metrics(out: Path) -> list[dict[str, float]]:
    rows = without_seconds(run_dir(out) / 'metrics.csv')
    return [{key: float(value) for key, value in row.items()} for row in rows]


def weights(out: Path) -> dict[str, torch.Tensor]:
    model: dict[str, torch.Tensor] = load_checkpoint(run_dir(out) / 'checkpoints' / 'last.pt')['model']
    return model


def train_alone(out: Path, epochs: int, **kwargs: Any) -> None:
    train(CONFIG, [*EXACT.split(), 'optim.max_epoch', str(epochs)], out=out, **kwargs)


@dataclass
class Runs:
    """The folder of the runs, what each process returned, and what they printed."""

    folder: Path
    processes: list[dict[str, Any]]
    printed: str


@pytest.fixture(scope='module')
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    folder = tmp_path_factory.mktemp('torchrun')
    (folder / 'script.py').write_text(SCRIPT)
    images, labels = digits_module.digit_images()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(digits_module, 'digit_images', lambda: (images[:300], labels[:300]))
        train_alone(folder / 'one', 2)
        train_alone(folder / 'half', 1)
        paths = [str(Path(pyg_topomask.__file__).parents[1]), os.environ.get('PYTHONPATH', '')]
        command = ['-m', 'torch.distributed.run', '--standalone', '--nproc-per-node', '2', str(folder / 'script.py')]
        result = subprocess.run(
            [sys.executable, *command, str(CONFIG), str(folder), EXACT, DRAWN],
            env={**os.environ, 'OMP_NUM_THREADS': '1', 'PYTHONPATH': os.pathsep.join(paths)},
            capture_output=True,
            text=True,
            timeout=400,
            check=False,
        )
        assert result.returncode == 0, result.stderr
        yield Runs(folder, [json.loads((folder / f'{rank}.json').read_text()) for rank in range(2)], result.stdout)


def assert_equal_runs(first: Path, second: Path) -> None:
    for first_row, second_row in zip(read_metrics(first), read_metrics(second), strict=True):
        assert first_row == pytest.approx(second_row, rel=1e-4)
    second_weights = weights(second)
    for name, value in weights(first).items():
        torch.testing.assert_close(value, second_weights[name], rtol=1e-3, atol=1e-5)


@pytest.mark.nightly
def test_two_processes_train_as_one(runs: Runs) -> None:
    assert_equal_runs(runs.folder / 'two', runs.folder / 'one')
    rows = read_metrics(runs.folder / 'one')
    assert len(rows) == 2
    assert abs(rows[1]['train_loss'] - rows[0]['train_loss']) > 0.01
    assert runs.processes[0]['results'] == runs.processes[1]['results']


@pytest.mark.nightly
def test_resumed_with_another_number_of_processes(runs: Runs) -> None:
    assert_equal_runs(runs.folder / 'half', runs.folder / 'one')  # the second epoch in two processes
    train_alone(runs.folder / 'two', 3, resume=True)
    train_alone(runs.folder / 'one', 3, resume=True)
    assert_equal_runs(runs.folder / 'two', runs.folder / 'one')


@pytest.mark.nightly
def test_resumed_run_is_identical(runs: Runs) -> None:
    assert read_metrics(runs.folder / 'parts') == read_metrics(runs.folder / 'whole')
    whole = weights(runs.folder / 'whole')
    assert all(torch.equal(value, whole[name]) for name, value in weights(runs.folder / 'parts').items())


@pytest.mark.nightly
def test_each_process_draws_for_itself(runs: Runs) -> None:
    assert runs.processes[0]['seed'] != runs.processes[1]['seed']


@pytest.mark.nightly
def test_one_process_writes_and_prints(runs: Runs) -> None:
    alone, shared = ({path.name for path in run_dir(runs.folder / name).rglob('*')} for name in ('one', 'two'))
    assert alone == shared
    lines = runs.printed.splitlines()
    assert [line.partition(' ')[0] for line in lines] == ['seed', 'validation', 'test'] * 5
    stats = (run_dir(runs.folder / 'two') / 'val' / 'stats.json').read_text().splitlines()
    assert [json.loads(line)['epoch'] for line in stats[:2]] == [0, 1]


@pytest.mark.nightly
def test_what_cannot_be_shared(runs: Runs) -> None:
    for process in runs.processes:
        batch, devices, recommend = process['errors']
        assert batch == 'train.batch_size: got 3, which 2 processes share; accepted: numbers from 4'
        assert devices.startswith('devices: got 4 for 2 process(es)')
        assert devices.endswith('torchrun --nproc-per-node 4 -m pyg_topomask train ...')
        assert recommend.startswith('torchrun: got 2 processes; accepted: one')


@pytest.mark.parametrize(
    ('size', 'batch_size', 'processes'), [(20, 6, 1), (20, 6, 2), (19, 6, 3), (7, 6, 3), (3, 6, 3), (6, 6, 3)]
)
def test_shares(monkeypatch: pytest.MonkeyPatch, size: int, batch_size: int, processes: int) -> None:
    order = EpochSampler(size, seed=3)
    monkeypatch.setattr(data_module, 'num_processes', lambda: processes)
    shares = []
    for rank in range(processes):
        monkeypatch.setattr(data_module, 'rank', lambda rank=rank: rank)
        shares.append(list(SharedBatches(order, batch_size)))
        assert len(shares[-1]) == len(SharedBatches(order, batch_size)) == -(-size // batch_size)
        assert all(shares[-1])
    together = [sorted(chain(*batches)) for batches in zip(*shares, strict=True)]
    expected = list(order)
    assert sorted(chain(*together)) == list(range(size))
    for index, batch in enumerate(together[:-2]):
        assert batch == sorted(expected[index * batch_size : (index + 1) * batch_size])


def test_single_graphs_and_subgraphs_are_not_shared(monkeypatch: pytest.MonkeyPatch, configure: Any) -> None:
    configure('train.sampler random_node')
    monkeypatch.setattr(data_module, 'num_processes', lambda: 2)
    message = "devices: got 2 processes, which share graphs, for 1 graphs in a split of dataset 'digits'; accepted: one"
    with pytest.raises(ValueError, match=message):
        SharedBatches(EpochSampler(1, seed=0), 32)
    loader = RandomNodeLoader(DigitsGrid()[0], num_parts=2)
    with pytest.raises(ValueError, match=r"train.sampler: got 'random_node' for 2 processes; accepted: full_batch"):
        data_module._reproducible(loader)
