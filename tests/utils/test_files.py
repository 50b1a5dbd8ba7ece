"""Files of tensors: a changed bit, another program's file, a full disk."""

from __future__ import annotations

import errno
import os
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch

from pyg_topomask.utils.files import digest_of_files, load_tensors, save_tensors, write_atomically

VALUE = {'weight': torch.arange(500.0), 'names': ['a', 'b'], 'rate': 0.5, 'nested': {'index': torch.tensor([3])}}


def test_round_trip_and_torch_load(tmp_path: Path) -> None:
    path = tmp_path / 'tensors.pt'
    save_tensors(path, VALUE)
    for loaded in (load_tensors(path), torch.load(path, weights_only=True)):
        assert torch.equal(loaded['weight'], VALUE['weight'])
        assert loaded['names'] == ['a', 'b']
        assert loaded['nested']['index'].tolist() == [3]


def test_no_changed_bit_passes(tmp_path: Path) -> None:
    path = tmp_path / 'tensors.pt'
    save_tensors(path, VALUE)
    whole = path.read_bytes()
    generator = np.random.default_rng(0)
    ends = [0, 8 * len(whole) - 1, *range(8 * (len(whole) - 90), 8 * len(whole), 37)]
    for bit in [*generator.integers(0, 8 * len(whole), 150), *ends]:
        changed = bytearray(whole)
        changed[bit // 8] ^= 1 << bit % 8
        path.write_bytes(bytes(changed))
        with pytest.raises(ValueError, match='digest'):
            load_tensors(path)
    for size in (0, 1, 50, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(ValueError, match='digest'):
            load_tensors(path)
    path.write_bytes(whole)
    load_tensors(path)


class Payload:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self.path),)


def test_code_in_a_file_does_not_run(tmp_path: Path) -> None:
    path = tmp_path / 'tensors.pt'
    save_tensors(path, {'x': Payload(tmp_path / 'ran')})  # with a digest
    with pytest.raises(ValueError, match='holds more than tensors'):
        load_tensors(path)
    path.write_bytes(pickle.dumps(Payload(tmp_path / 'ran')))
    with pytest.raises(ValueError, match='no digest'):
        load_tensors(path)
    assert not (tmp_path / 'ran').exists()


def test_a_full_disk_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object) -> None:
        raise OSError(errno.ENOSPC, 'No space left on device')

    monkeypatch.setattr(os, 'fsync', fail)
    with pytest.raises(OSError, match=r'No space left on device.*last\.pt') as caught:
        write_atomically(tmp_path / 'last.pt', b'content')
    assert caught.value.errno == errno.ENOSPC
    assert os.listdir(tmp_path) == []


def test_digest_of_files(tmp_path: Path) -> None:
    first, second = tmp_path / 'first', tmp_path / 'second'
    first.write_bytes(b'one')
    second.write_bytes(b'two')
    digests = [digest_of_files(first, second), digest_of_files(second, first), digest_of_files(first, second, salt='x')]
    second.write_bytes(b'twp')
    assert len({*digests, digest_of_files(first, second)}) == 4
