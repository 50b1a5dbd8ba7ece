"""The standalone runner with a single graph in two processes, against the same run in one."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import pytest
import torch
from csv_tables import without_seconds
from forked import Forked

pytest.importorskip('yacs')
pytest.importorskip('pytorch_lightning')

sys.path.insert(0, str(Path(__file__).parent))

from runner import run

import pyg_topomask
from pyg_topomask.apps.runs.checkpoint import load_checkpoint
from pyg_topomask.graphgym.data import pyg_datasets

CONFIG = str(Path(pyg_topomask.__file__).parents[1] / 'graphgps_configs' / 'cora.yaml')


def free_port() -> str:
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return str(probe.getsockname()[1])


@pytest.fixture(scope='module')
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp('runner')
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pyg_datasets, 'Planetoid', None)  # which `run` replaces, and the context restores
        run(CONFIG, path / 'one', '', 2)
        run(CONFIG, path / 'half', '', 1)
        shared = {'MASTER_ADDR': '127.0.0.1', 'MASTER_PORT': free_port(), 'WORLD_SIZE': '2', 'LOCAL_WORLD_SIZE': '2'}
        shared |= {'TORCHELASTIC_RUN_ID': 'test'}
        script = str(Path(__file__).with_name('runner.py'))
        processes = [Forked(script, CONFIG, str(path), RANK=str(rank), LOCAL_RANK=str(rank), **shared) for rank in range(2)]
        ends = [process.wait(240) for process in processes]
        assert [status for status, _, _ in ends] == [0, 0], '\n'.join(stderr for _, _, stderr in ends)
        run(CONFIG, path / 'two', '', 3, resume=True)
        run(CONFIG, path / 'one', '', 3, resume=True)
    return path


def metrics(out: Path) -> list[dict[str, float]]:
    rows = without_seconds(out / 'cora' / '0' / 'metrics.csv')
    return [{key: float(value) for key, value in row.items()} for row in rows]


def weights(out: Path) -> dict[str, torch.Tensor]:
    model: dict[str, torch.Tensor] = load_checkpoint(out / 'cora' / '0' / 'checkpoints' / 'last.pt')['model']
    return model


@pytest.mark.parametrize(('name', 'epochs'), [('two', 3), ('half', 2)])
def test_two_processes_train_as_one_and_either_resumes_the_other(folder: Path, name: str, epochs: int) -> None:
    rows, expected = metrics(folder / name), metrics(folder / 'one')
    assert len(rows) == epochs
    for row, other in zip(rows, expected, strict=False):
        assert row == pytest.approx(other, rel=1e-4)
    assert abs(expected[2]['train_loss'] - expected[0]['train_loss']) > 0.01
    if name == 'two':
        for key, value in weights(folder / 'one').items():
            torch.testing.assert_close(weights(folder / name)[key], value, rtol=1e-3, atol=1e-5)


def test_what_cannot_be_sharded(folder: Path) -> None:
    first, second = (torch.load(folder / f'errors{rank}.pt') for rank in range(2))
    assert first == second
    conv, mask, attention = first
    assert 'GatedGCN' in conv
    assert mask.startswith('mask: got TreeMask on a sharded graph')
    assert "'performer', which attends to the nodes of one process" in attention
