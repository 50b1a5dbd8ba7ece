from __future__ import annotations

import os
import random
import stat
from pathlib import Path

import numpy as np
import pytest
import torch

from pyg_topomask.apps.runs.checkpoint import (
    SCHEMA_VERSION,
    differences,
    load_checkpoint,
    rng_state,
    save_checkpoint,
    set_rng_state,
)
from pyg_topomask.utils.files import remove_unfinished, save_tensors, write_atomically


def test_round_trip(tmp_path: Path) -> None:
    path = tmp_path / 'last.pt'
    save_checkpoint(path, {'model': {'weight': torch.arange(3)}, 'epoch': 4})
    loaded = load_checkpoint(path)
    assert loaded['epoch'] == 4
    assert loaded['model']['weight'].tolist() == [0, 1, 2]
    assert loaded['schema_version'] == SCHEMA_VERSION
    assert os.listdir(tmp_path) == ['last.pt']


@pytest.mark.parametrize('failing', ['fsync', 'replace'])
def test_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str) -> None:
    path = tmp_path / 'file'
    write_atomically(path, b'old')

    def fail(*args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, failing, fail)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(path, b'new')
    assert path.read_bytes() == b'old'
    assert os.listdir(tmp_path) == ['file']


def test_file_is_renamed_only_when_it_is_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, 'fsync', lambda *args: (calls.append('fsync'), fsync(*args)))
    monkeypatch.setattr(os, 'replace', lambda source, to: (calls.append(str(Path(source).parent)), replace(source, to)))
    write_atomically(tmp_path / 'file', b'new')
    assert calls == ['fsync', str(tmp_path)]


@pytest.mark.skipif(os.name != 'posix', reason='modes are those of POSIX')
@pytest.mark.parametrize('umask', [0o022, 0o077])
def test_mode_is_that_of_a_new_file(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        write_atomically(tmp_path / 'atomic', b'new')
        (tmp_path / 'plain').write_bytes(b'new')
    finally:
        os.umask(before)
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ('atomic', 'plain')]
    assert modes == [0o666 & ~umask] * 2


@pytest.mark.parametrize('version', [SCHEMA_VERSION + 1, 'x', None])
def test_unknown_schema(tmp_path: Path, version: object) -> None:
    save_tensors(tmp_path / 'last.pt', {'schema_version': version})
    with pytest.raises(ValueError, match=f'schema_version {version!r}; this version reads {SCHEMA_VERSION}'):
        load_checkpoint(tmp_path / 'last.pt')


def test_not_a_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / 'last.pt'
    save_checkpoint(path, {'model': {'weight': torch.rand(1000)}})
    whole = path.read_bytes()
    for content in (b'', b'garbage', b'\x80', whole[:1], whole[: len(whole) // 2], whole[:-30], b'PK\x03\x04'):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=rf'^{path} is no checkpoint of pyg_topomask, or is damaged: .'):
            load_checkpoint(path)
    save_tensors(path, [1])
    with pytest.raises(ValueError, match=r'schema_version None'):
        load_checkpoint(path)


def test_a_checkpoint_that_cannot_be_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FileNotFoundError):
        load_checkpoint(tmp_path / 'absent.pt')

    def refuse(*args: object, **kwargs: object) -> None:
        raise PermissionError(13, 'Permission denied')

    monkeypatch.setattr(Path, 'read_bytes', refuse)
    with pytest.raises(PermissionError):
        load_checkpoint(tmp_path / 'last.pt')


def draw() -> list[float]:
    drawn = [random.random(), random.gauss(0, 1), torch.rand(1).item()]
    drawn += [np.random.rand(), np.random.randn()]  # noqa: NPY002
    if torch.cuda.is_available():
        drawn.append(torch.rand(1, device='cuda').item())
    return drawn


def test_random_states_survive_a_file(tmp_path: Path) -> None:
    draw()  # leaves half of a pair of Gaussians behind in two of the generators
    save_checkpoint(tmp_path / 'rng.pt', {'rng': rng_state()})
    expected = [draw(), draw()]
    set_rng_state(load_checkpoint(tmp_path / 'rng.pt')['rng'])
    assert [draw(), draw()] == expected


def test_differences() -> None:
    saved = '{gt: {layer_type: GINE+GRF, layers: 3}, optim: {max_epoch: 5}, topomask: {transforms: []}}'
    free = ['optim.max_epoch', 'topomask.GRF']
    assert differences(saved, saved) == {}
    longer = saved.replace('max_epoch: 5', 'max_epoch: 9')
    assert differences(saved, longer, free) == {}
    assert differences(saved, longer) == {'optim.max_epoch': 'optim.max_epoch was 5 and is 9'}
    grouped = saved.replace('transforms: []', 'transforms: [], GRF: {p_halt: 0.5, num_walks: 4}')
    assert differences(saved, grouped, free) == {}
    assert list(differences(saved, grouped)) == ['topomask.GRF.num_walks', 'topomask.GRF.p_halt']
    changed = saved.replace('GINE+GRF', 'GINE+Linear').replace('[]', '[X]')
    assert list(differences(saved, changed, free).values()) == [
        "gt.layer_type was 'GINE+GRF' and is 'GINE+Linear'",
        "topomask.transforms was [] and is ['X']",
    ]


def test_what_a_killed_process_left_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / 'checkpoints').mkdir()
    path = tmp_path / 'checkpoints' / 'last.pt'
    with monkeypatch.context() as patch:
        patch.setattr(os, 'replace', lambda *args: None)  # killed before it
        write_atomically(path, b'half')
    (tmp_path / '.hidden.tmp').write_text('mine')
    assert len(list(path.parent.iterdir())) == 1
    assert not path.exists()
    remove_unfinished(tmp_path)
    assert not list(path.parent.iterdir())
    assert (tmp_path / '.hidden.tmp').read_text() == 'mine'
    remove_unfinished(tmp_path / 'absent')
