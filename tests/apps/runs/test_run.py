from __future__ import annotations

import errno
import io
import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from pyg_topomask.apps.runs import run as module_of_runs
from pyg_topomask.apps.runs.checkpoint import load_checkpoint, save_checkpoint, set_rng_state
from pyg_topomask.apps.runs.devices import PeakMemory, find_device
from pyg_topomask.apps.runs.run import EpochBar, Row, Run, clear_run, locked

fcntl = pytest.importorskip('fcntl')

HOLD = """
import sys
from pathlib import Path
from pyg_topomask.apps.runs.run import locked

with locked(Path(sys.argv[1])):
    print('locked', flush=True)
    sys.stdin.read()
"""


def test_another_process_is_refused_until_the_first_ends(tmp_path: Path) -> None:
    folder = tmp_path / 'new' / 'run'
    process = subprocess.Popen(
        [sys.executable, '-c', HOLD, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == 'locked\n'
    with pytest.raises(ValueError, match=rf'^out: got {folder}, where another process trains; accepted:'), locked(folder):
        pass
    process.kill()
    process.communicate()
    with locked(folder):
        pass
    with locked(folder):
        pass


def test_lock_ends_with_the_block_though_a_worker_lives(tmp_path: Path) -> None:
    with locked(tmp_path):
        copy = os.dup(next(fd for fd in map(int, os.listdir('/proc/self/fd')) if _is_lock(fd, tmp_path)))
    with locked(tmp_path):
        os.close(copy)


def _is_lock(fd: int, folder: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), (folder / '.lock').stat())
    except OSError:
        return False


def test_without_locks_a_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any) -> None:
        raise OSError(errno.ENOLCK, 'no locks available')

    monkeypatch.setattr(fcntl, 'flock', refuse)
    with locked(tmp_path), locked(tmp_path):
        pass
    assert tmp_path.is_dir()


def test_best_model_is_that_of_the_run(tmp_path: Path) -> None:
    row, config = {'epoch': 3, 'val_auc': 0.5}, '{gt: {layers: 3}, optim: {max_epoch: 5}}'

    def run(config: str, *history: Row) -> Run:
        run = Run(tmp_path, config, 'val_auc', length='optim.max_epoch')
        run.history = list(history)
        return run

    (tmp_path / 'checkpoints').mkdir()
    save_checkpoint(tmp_path / 'checkpoints' / 'best.pt', {'config': config, 'best': row})
    assert run(config.replace('5', '9'), {**row, 'val_auc': 0.5}).load_best()['best']['epoch'] == 3
    with pytest.raises(ValueError, match='got the model of another run'):
        run(config, {**row, 'epoch': 2}).load_best()
    with pytest.raises(ValueError, match='got the model of another run'):
        run(config.replace('layers: 3', 'layers: 4'), row).load_best()
    # Without a validated epoch the last one counts.
    (tmp_path / 'checkpoints' / 'best.pt').unlink()
    save_checkpoint(tmp_path / 'checkpoints' / 'last.pt', {'config': config, 'best': None})
    assert run(config, {'epoch': 0}).load_best()['best'] is None


@pytest.mark.parametrize('damage', [Path.unlink, lambda path: path.write_bytes(path.read_bytes()[:-1])])
def test_a_finished_run_without_its_best_model_keeps_its_result(tmp_path: Path, damage: Callable[[Path], object]) -> None:
    run = Run(tmp_path, '{lr: 0.1}', 'val_auc')
    with run.open():
        run.history.append({'epoch': 0, 'val_auc': 1.0, 'seconds': 1.0})
        run.save({'model': torch.zeros(1)})
        run.finish({'test_auc': 0.5}, 1)
    damage(run.best_file)
    with pytest.raises(ValueError, match=r'best.pt: got .*; accepted: the model of the best epoch .*; restore it'):
        run.load(resume=True)
    assert json.loads((tmp_path / 'result.json').read_text())['test_auc'] == 0.5
    assert run.load(resume=False) is None


def test_checkpoints_take_their_share_of_the_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0

    def save_slowly(path: Path, state: dict[str, Any]) -> None:
        nonlocal now
        now += 0.5  # seconds
        save_checkpoint(path, state)

    monkeypatch.setattr(module_of_runs, 'SHARE', 0.125)
    monkeypatch.setattr(module_of_runs, 'save_checkpoint', save_slowly)
    monkeypatch.setattr(module_of_runs.time, 'monotonic', lambda: now)
    run, model = Run(tmp_path, '{lr: 0.1}', 'val_auc'), torch.zeros(1)
    written = []

    def train_and_stop() -> None:
        nonlocal now
        with run.open():
            for epoch, auc in enumerate((0.5, 0.25, 0.75, 0.5, 0.5, 0.5, 0.5)):
                now += 2.5
                model.add_(1)  # in place, as in training
                run.history.append({'epoch': epoch, 'val_auc': auc, 'seconds': 2.5})
                run.save({'model': model}, optimizer=model)
                last, best = (load_checkpoint(path) for path in (run.last_file, run.best_file))
                assert last['model'] == last['optimizer'] == len(last['history'])
                assert best['model'] == best['best']['epoch'] + 1
                assert last['best'] == best['best']
                written.append((len(last['history']), int(best['model'])))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_and_stop()
    # Two files at the first epoch take a second, so that the next are due after eight.
    assert written == [(1, 1), (1, 1), (1, 1), (1, 1), (5, 3), (5, 3), (5, 3)]
    # Rows are there up to the interruption, and a resumed run continues after the checkpoint.
    assert len((tmp_path / 'metrics.csv').read_text().splitlines()) == 1 + 7
    assert len(Run(tmp_path, '{lr: 0.1}', 'val_auc').load(resume=True)['history']) == 5


def test_what_is_not_yet_written_is_written_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module_of_runs, 'SHARE', 1e-9)
    run, model = Run(tmp_path, '{lr: 0.1}', 'val_auc'), torch.zeros(1)
    with run.open():
        for epoch, auc in enumerate((0.25, 0.75, 0.5)):
            model += 1
            run.history.append({'epoch': epoch, 'val_auc': auc, 'seconds': 1.0})
            run.save({'model': model}, optimizer=model)
        state = torch.get_rng_state()
        torch.rand(3)  # after the last epoch
        assert len(load_checkpoint(run.last_file)['history']) == 1
        assert run.load_best()['model'] == 2
    last = load_checkpoint(run.last_file)
    assert (len(last['history']), last['model'], last['optimizer'], last['best']['epoch']) == (3, 3, 3, 1)
    assert torch.equal(last['rng'][0]['torch'], state)


def test_best() -> None:
    run = Run(Path(), '', 'val_auc')
    assert run.best is None
    run.history = [{'epoch': 0.0}]
    assert run.best is None
    run.history += [{'val_auc': value} for value in (float('nan'), 0.5, 0.5, 0.25)]
    assert run.best is run.history[2]  # the first of equals
    run.maximize = False
    assert run.best is run.history[4]
    run.history = [{'val_auc': float('nan')}, {'val_auc': float('nan')}]
    assert run.best is None


def test_a_metric_that_is_always_nan_is_said(tmp_path: Path) -> None:
    run = Run(tmp_path, '{lr: 0.1}', 'val_auc')
    with run.open():
        run.history.append({'epoch': 0, 'val_auc': float('nan'), 'seconds': 1.0})
        run.save({'model': torch.ones(1)})
        run.history.append({'epoch': 1, 'val_auc': float('nan'), 'seconds': 1.0})
        run.save({'model': torch.zeros(1)})
        assert run.load_best()['model'] == 0
        with pytest.warns(UserWarning, match=r'^val_auc: got NaN in every epoch, so the last epoch stands for the best'):
            assert run.finish({}, 1)['best_epoch'] == 1


def test_a_run_is_resumed_after_its_last_epoch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = '{lr: 0.1, epochs: 3}'

    def train(config: str, epochs: int, resume: bool = False) -> list[float]:
        torch.manual_seed(0)
        run, drawn = Run(tmp_path / 'run', config, 'val_auc', length='epochs', files=['log']), torch.zeros(0)
        checkpoint = run.load(resume, epochs)
        with run.open(checkpoint):
            if checkpoint is not None:
                drawn = checkpoint['model']
                set_rng_state(checkpoint['rng'][0])
            for epoch in range(len(run.history), epochs):
                drawn = torch.cat([drawn, torch.rand(1)])
                row = {'epoch': epoch} if epoch == 1 else {'epoch': epoch, 'val_auc': -float(epoch)}
                run.history.append(row)
                run.save({'model': drawn}, optimizer=epoch)
            assert len(run.load_best()['model']) == 1
        return drawn.tolist()

    assert train(config, 1, resume=True)
    folder = tmp_path / 'run'
    assert f'no checkpoint in {folder}' in capsys.readouterr().err
    resumed = train(config.replace('3', '4'), 3, resume=True)
    assert (folder / 'config.yaml').read_text() == '{lr: 0.1, epochs: 4}'
    with pytest.raises(ValueError, match=r'cannot resume from \S*last.pt, .*: lr was 0.1 and is 0.2$'):
        train(config.replace('0.1', '0.2'), 3, resume=True)
    with pytest.raises(ValueError, match=r'^out: got \S*run, which has a run of another configuration: lr was 0.1 and is 0.2;'):
        train(config.replace('3', '4').replace('0.1', '0.2'), 3)
    with pytest.raises(ValueError, match=r'^out: got \S*run, which has a run of another configuration: epochs was 4 and is 3;'):
        train(config, 3)
    with pytest.raises(ValueError, match=r'^epochs: got 2; accepted: 3, the epochs that the run has, and more'):
        train(config.replace('3', '2'), 2, resume=True)
    config = config.replace('3', '4')
    assert (folder / 'metrics.csv').read_text() == 'epoch,val_auc\n0,-0.0\n1,\n2,-2.0\n'
    assert sorted(load_checkpoint(folder / 'checkpoints' / 'best.pt')) == ['best', 'config', 'model', 'schema_version']
    for name in ('log', 'mine'):
        (folder / name).write_text('')
    assert train(config, 3) == resumed
    assert f'replacing the run in {folder}' in capsys.readouterr().err
    assert {path.name for path in folder.iterdir()} == {'.lock', 'checkpoints', 'config.yaml', 'metrics.csv', 'mine'}


def test_folders_that_cannot_be_made_are_refused_before_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / 'file').write_text('')
    with pytest.raises(ValueError, match=r'^out: got \S*file/run, but \S*file is a file; accepted: folders that can be'):
        Run(tmp_path / 'file' / 'run', '{}', 'val_auc').load(resume=False)
    monkeypatch.setattr('os.access', lambda *_: False)  # as for a user who is not root
    with pytest.raises(ValueError, match=r'^out: got \S*deep/run, but \S* is not writable'):
        Run(tmp_path / 'deep' / 'run', '{}', 'val_auc').load(resume=False)
    assert [path.name for path in tmp_path.iterdir()] == ['file']


def test_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, 'is_available', lambda: True)
    assert [find_device('x', name).type for name in ('auto', 'cpu', 'cuda', 'gpu')] == ['cuda', 'cpu', 'cuda', 'cuda']
    monkeypatch.setattr(torch.cuda, 'is_available', lambda: False)
    assert [find_device('x', name).type for name in ('auto', 'cpu')] == ['cpu', 'cpu']
    with pytest.raises(ValueError, match=r"^x: got 'gpu', and there is no CUDA device; accepted: auto, cpu"):
        find_device('x', 'gpu')
    with pytest.raises(ValueError, match=r"^x: got 'tpu'; accepted: auto, cpu, cuda, gpu"):
        find_device('x', 'tpu')


@pytest.mark.skipif(not os.access('/proc/self/clear_refs', os.W_OK), reason='the system does not tell the peak of memory')
def test_the_peak_of_memory_is_that_of_the_run_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, 'is_available', lambda: False)
    _before = torch.ones(2**25)
    memory = PeakMemory()
    torch.ones(2**24)  # 64 MiB, which are not held at the end
    assert 2**25 < memory.bytes() < 2**27  # the system counts roughly


def test_empty_folders_are_removed(tmp_path: Path) -> None:
    for name in ('a/1.pt', 'a/2.pt', 'b/1.pt', 'b/mine', 'top'):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text('')
    clear_run(tmp_path, ['?/1.pt', 'a/2.pt', 'top', 'absent'])
    assert [str(path.relative_to(tmp_path)) for path in sorted(tmp_path.rglob('*'))] == ['b', 'b/mine']


def test_a_result_is_gone_once_training_goes_on(tmp_path: Path) -> None:
    run = Run(tmp_path, 'seed: 0', 'val_auc')
    with run.open(run.load(resume=False)):
        for epoch, seconds in enumerate((1.0, 1.5, 10.0)):
            run.history.append({'epoch': epoch, 'val_auc': 1.0, 'seconds': seconds})
            run.save({'model': torch.zeros(1)})
        run.finish({'test_auc': 0.5}, 1)
    result = json.loads((tmp_path / 'result.json').read_text())
    assert (result['seconds_per_epoch'], result['best_epoch']) == (1.5, 0)  # the first of equals
    with run.open(run.load(resume=True)):
        assert not (tmp_path / 'result.json').exists()


def test_a_result_may_hold_what_is_not_finite(tmp_path: Path) -> None:
    run = Run(tmp_path, 'seed: 0', 'val_auc')
    run.history = [{'epoch': 0, 'seconds': 0.5, 'val_auc': 0.25}]
    run.finish({'test_auc': 0.75, 'val_loss': math.inf, 'test_loss': math.nan}, 3)
    result = json.loads((tmp_path / 'result.json').read_text())
    assert (result['metric'], result['test_auc'], result['val_loss'], result['test_loss']) == ('test_auc', 0.75, None, None)


def finished(folder: Path, config: str) -> None:
    run = Run(folder, config, 'val_auc')
    with run.open(run.load(resume=False)):
        run.history.append({'epoch': 0, 'val_auc': 1.0, 'seconds': 1.0})
        run.save({'model': torch.zeros(1)})
        run.finish({'test_auc': 0.5}, 1)


@pytest.mark.parametrize('resume', [False, True])
def test_a_run_that_begins_during_another_does_not_replace_it(tmp_path: Path, resume: bool) -> None:
    if resume:
        finished(tmp_path, '{lr: 1}')
    run = Run(tmp_path, '{lr: 1}', 'val_auc')
    checkpoint = run.load(resume)
    finished(tmp_path, '{lr: 1}')
    with pytest.raises(ValueError, match=r'^out: got .*, where another run has just trained; accepted'), run.open(checkpoint):
        pass
    assert json.loads((tmp_path / 'result.json').read_text())['test_auc'] == 0.5
    with run.open(run.load(resume)):
        assert not (tmp_path / 'result.json').exists()


@pytest.mark.parametrize('damage', [Path.unlink, lambda path: path.write_bytes(path.read_bytes()[:-1])])
@pytest.mark.parametrize('resume', [False, True])
def test_results_of_another_configuration_stay(tmp_path: Path, resume: bool, damage: Callable[[Path], object]) -> None:
    finished(tmp_path, '{lr: 2}')
    damage(tmp_path / 'checkpoints' / 'last.pt')
    with pytest.raises(ValueError, match=r'lr was 2 and is 1|is damaged'):
        Run(tmp_path, '{lr: 1}', 'val_auc').load(resume)
    assert Run(tmp_path, '{lr: 2}', 'val_auc').load(resume=False) is None
    # A run without results may be replaced.
    (tmp_path / 'checkpoints' / 'best.pt').unlink()
    (tmp_path / 'result.json').unlink()
    assert Run(tmp_path, '{lr: 1}', 'val_auc').load(resume=False) is None


@pytest.mark.parametrize('terminal', [True, False])
def test_a_progress_bar_moves_on_a_terminal_and_is_short_in_a_file(monkeypatch: pytest.MonkeyPatch, terminal: bool) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(stream, 'isatty', lambda: terminal)
    monkeypatch.setattr(sys, 'stderr', stream)
    monkeypatch.delitem(sys.modules, 'ipykernel', raising=False)
    with EpochBar('train', num_epochs=50, num_batches=2) as bar:
        for epoch in range(50):
            bar.update(2)
            bar.show({'epoch': epoch, 'loss': 1.0}, 'loss')
    states = stream.getvalue().split('\r')
    assert 'epoch=50/50, loss=1.0000' in states[-1]
    assert len(states) >= 50 if terminal else len(states) <= 4
