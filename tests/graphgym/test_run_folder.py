from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from pyg_topomask.graphgym import run_folder, train
from pyg_topomask.graphgym.checkpoint import SCHEMA_VERSION, load_best, load_checkpoint
from pyg_topomask.graphgym.run_folder import clear_run, locked

fcntl = pytest.importorskip('fcntl')

PLAIN = ['optim.max_epoch', '1', 'gt.layer_type', 'GINE+None', 'topomask.transforms', '[]']
HOLD = """
import sys
from pathlib import Path
from pyg_topomask.graphgym.run_folder import locked

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
    with pytest.raises(ValueError, match=rf'^out: got {folder}, where another process trains; accepted are'), locked(folder):
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
    monkeypatch.setattr(run_folder, 'fcntl', None)
    with locked(tmp_path / 'other'):
        assert (tmp_path / 'other').is_dir()


def test_two_runs_in_one_folder(tmp_path: Path, digits: Path, small: list[str], few_digits: None) -> None:
    train(digits, [*small, *PLAIN], out=tmp_path)
    folder = tmp_path / 'digits' / '0'
    before = {path: path.read_bytes() for path in folder.rglob('*') if path.is_file()}
    with locked(folder):
        for resume in (False, True):
            with pytest.raises(ValueError, match='where another process trains'):
                train(digits, [*small, *PLAIN], resume=resume, out=tmp_path)
    assert {path: path.read_bytes() for path in folder.rglob('*') if path.is_file()} == before
    # Where there are no locks, the model of the other run is not reported as that of this one.
    path = folder / 'checkpoints' / 'best.pt'
    best = load_checkpoint(path)
    torch.save({**best, 'best': {**best['best'], 'seconds': 0.0}}, path)
    with pytest.raises(ValueError, match=rf'^{re.escape(str(path))}: got the model of another run; accepted is'):
        train(digits, [*small, *PLAIN], resume=True, out=tmp_path)


def test_best_model_is_that_of_the_run(tmp_path: Path) -> None:
    path = tmp_path / 'best.pt'
    row, config = {'epoch': 3, 'val_auc': float('nan')}, '{gt: {layers: 3}, optim: {max_epoch: 5}}'
    torch.save({'schema_version': SCHEMA_VERSION, 'config': config, 'best': row}, path)
    assert load_best(path, {'epoch': 3, 'val_auc': float('nan')}, config.replace('5', '9'))['best']['epoch'] == 3
    for other in ({**row, 'epoch': 2}, None):
        with pytest.raises(ValueError, match='got the model of another run'):
            load_best(path, other, config)
    with pytest.raises(ValueError, match='got the model of another run'):
        load_best(path, row, config.replace('layers: 3', 'layers: 4'))
    assert load_best(path, row, 'x', bound=lambda text: '{}')['best']['epoch'] == 3


def test_files_of_the_user_stay(
    tmp_path: Path, digits: Path, small: list[str], few_digits: None, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / 'digits' / '0'
    own = [folder / part / 'mine.txt' for part in ('.', 'checkpoints', 'train', 'val', 'test', 'checkpoints/old')]
    for path in own:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text('mine')
    train(digits, [*small, *PLAIN], out=tmp_path)
    assert 'replacing' not in capsys.readouterr().err  # there was no run
    (folder / 'val' / 'events.out.tfevents.1').write_text('theirs')
    train(digits, [*small, *PLAIN], out=tmp_path)
    assert f'replacing the run in {folder}' in capsys.readouterr().err
    assert [path.read_text() for path in own] == ['mine'] * len(own)
    assert not (folder / 'val' / 'events.out.tfevents.1').exists()


def test_empty_folders_are_removed(tmp_path: Path) -> None:
    for name in ('a/1.pt', 'a/2.pt', 'b/1.pt', 'b/mine', 'top'):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text('')
    clear_run(tmp_path, ['?/1.pt', 'a/2.pt', 'top', 'absent'])
    assert [str(path.relative_to(tmp_path)) for path in sorted(tmp_path.rglob('*'))] == ['b', 'b/mine']
