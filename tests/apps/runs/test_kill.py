"""Runs that are killed again and again, and resumed, end as runs that were left alone."""

from __future__ import annotations

import json
import math
import os
import signal
from pathlib import Path
from typing import Any

import pytest
import torch
from csv_tables import without_seconds
from forked import Forked

pytest.importorskip('yacs')
pytest.importorskip('pytorch_lightning')

from pyg_topomask.apps.runs.checkpoint import load_checkpoint

if not hasattr(os, 'fork'):
    pytest.skip('needs fork', allow_module_level=True)

OPTIONS = """
gt.layers 1 gt.n_heads 2 gt.dim_hidden 8 gt.dropout 0.1 gnn.dim_inner 8 train.batch_size 128 optim.max_epoch 2
optim.num_warmup_epochs 0 topomask.progress False
"""
YAML = """
recommend:
  dataset: files
  dir: {folder}
  files: {{train: [train.txt], test: [test.txt]}}
  embedding_dim: 8
  batch_size: 64
  max_epoch: 3
  k: 5
  device: cpu
  progress: False
  MGFormer: {{svd_dim: 4}}
"""
#: Runs the command once for each moment, in a process of its own that ends itself there, and prints how it ended. A moment is
#: a function, the name of the file that it is called for, and how many calls before that one are let through.
SCRIPT = """
import json
import os
import signal
import sys
from pathlib import Path

import torch

from pyg_topomask.__main__ import main
from pyg_topomask.apps.datasets import images as digits
from pyg_topomask.apps.runs import run
from pyg_topomask.apps.train import train
from pyg_topomask.apps.train import module
from pyg_topomask.apps.recommend.runner import Training


def end():
    os.kill(os.getpid(), signal.SIGKILL)


def watch(owner, function, name_of, wanted, calls, harm):
    original, left = getattr(owner, function), [calls]

    def replacement(*args):
        if name_of(args) == wanted:
            left[0] -= 1
            if left[0] < 0:
                harm(args)
                end()
        return original(*args)

    setattr(owner, function, replacement)


def watch_for(function, name, calls):
    if function == 'fsync':  # of a temporary file, of which half is lost
        path = lambda args: os.readlink(f'/proc/self/fd/{args[0]}').rpartition('/')[2]
        file = lambda args: '.'.join(path(args).split('.')[1:3])
        watch(os, function, file, name, calls, lambda args: os.ftruncate(args[0], os.fstat(args[0]).st_size // 2))
    elif function == 'replace':
        watch(os, function, lambda args: Path(args[1]).name, name, calls, lambda args: None)
    elif function == 'step':
        watch(module.RunModule, 'training_step', lambda args: None, None, calls, lambda args: None)
        watch(Training, '_batches', lambda args: None, None, calls, lambda args: None)


torch.set_num_threads(1)
run.SHARE = float(sys.argv[3])
images, labels = digits.digit_images()
digits.digit_images = lambda: (images[:250], labels[:250])
for out, resume, moment in json.loads(sys.argv[1]):
    child = os.fork()
    if child == 0:
        if moment:
            watch_for(*moment)
        sys.stdout = sys.stderr
        status = main([*json.loads(sys.argv[2]), '--out', out, *(['--resume'] if resume else [])])
        sys.stderr.flush()
        os._exit(status)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
#: In the middle of every kind of write and of an epoch, and between two writes.
MOMENTS = [
    ('fsync', 'last.pt', 0),  # before the first epoch
    ('fsync', 'metrics.csv', 0),
    ('fsync', 'best.pt', 0),
    ('fsync', 'last.pt', 0),
    ('replace', 'last.pt', 0),
    ('step', '', 3),  # in the second epoch
    ('fsync', 'config.yaml', 0),
    ('replace', 'last.pt', 0),
]
#: The same for recommendation, which saves nothing before the first epoch.
MOMENTS_OF_RECOMMENDATION = [
    ('fsync', 'metrics.csv', 0),
    ('fsync', 'best.pt', 0),
    ('fsync', 'last.pt', 0),
    ('step', '', 1),  # in the second epoch
    ('replace', 'metrics.csv', 0),
    ('replace', 'last.pt', 0),
    ('fsync', 'result.json', 0),
]


def run(moments: list[tuple[str, str, int]], arguments: list[str], out: Path, share: float) -> None:
    """Runs a command once undisturbed, in the folder "whole", and once killed at all moments, in the folder "killed", with a
    share of the time for checkpoints.
    """
    killed = str(out / 'killed')
    plan = [(str(out / 'whole'), False, None), (killed, False, moments[0])]
    plan += [*((killed, True, moment) for moment in moments[1:]), (killed, True, None)]
    status, stdout, stderr = Forked('-c', SCRIPT, json.dumps(plan), json.dumps(arguments), str(share)).wait(timeout=400)
    assert status == 0, stderr
    codes = [int(line) for line in stdout.splitlines()]
    assert codes == [0 if moment is None else -signal.SIGKILL for *_, moment in plan], stderr


def read_metrics(folder: Path) -> list[dict[str, str]]:
    return without_seconds(folder / 'metrics.csv')


def read_stats(path: Path) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return [{key: value for key, value in row.items() if key not in ('time_iter', 'eta')} for row in rows]


def assert_equal_weights(killed: Path, whole: Path) -> None:
    for name in ('last.pt', 'best.pt'):
        first, second = (load_checkpoint(path / 'checkpoints' / name)['model'] for path in (killed, whole))
        assert first.keys() == second.keys()
        assert all(torch.equal(first[key], second[key]) for key in first)


def assert_nothing_unfinished(folder: Path) -> None:
    assert {path.name for path in folder.rglob('.*')} == {'.lock'}


@pytest.mark.nightly
def test_training(tmp_path: Path) -> None:
    digits = Path(__file__).parents[3] / 'graphgps_configs' / 'digits.yaml'
    run(MOMENTS, ['train', '--cfg', str(digits), *OPTIONS.split()], tmp_path, math.inf)
    whole, killed = (tmp_path / name / digits.stem / '0' for name in ('whole', 'killed'))
    assert len(read_metrics(whole)) == 2
    assert read_metrics(killed) == read_metrics(whole)
    for split in ('train', 'val', 'test'):
        assert read_stats(killed / split / 'stats.json') == read_stats(whole / split / 'stats.json')
    assert_equal_weights(killed, whole)
    assert_nothing_unfinished(killed)


@pytest.mark.parametrize('share', [math.inf, 1e-9])  # every epoch is written, or only the first and the last of a process
def test_recommendation(tmp_path: Path, share: float) -> None:
    likes = torch.rand(30, 20) < 0.4
    for name, liked in (('train', likes), ('test', ~likes & (torch.rand(30, 20) < 0.2))):
        lines = [' '.join(map(str, [user, *liked[user].nonzero()[:, 0].tolist()])) for user in range(30)]
        (tmp_path / f'{name}.txt').write_text('\n'.join(lines) + '\n')
    cfg_file = tmp_path / 'small.yaml'
    cfg_file.write_text(YAML.format(folder=tmp_path))
    run(MOMENTS_OF_RECOMMENDATION, ['train', '--cfg', str(cfg_file)], tmp_path, share)
    whole, killed = (tmp_path / name / 'small' / 'MGFormer' / '0' for name in ('whole', 'killed'))
    assert len(read_metrics(whole)) == 3
    assert read_metrics(killed) == read_metrics(whole)
    results = [json.loads((folder / 'result.json').read_text()) for folder in (killed, whole)]
    for result in results:
        del result['seconds_per_epoch']
    assert results[0] == results[1]
    assert_equal_weights(killed, whole)
    assert_nothing_unfinished(killed)
