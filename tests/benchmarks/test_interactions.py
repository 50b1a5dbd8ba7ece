"""The benchmark of interactions in text, on a small file."""

from pathlib import Path

import pytest

from benchmarks import interactions
from pyg_topomask.apps.recommend import read_interactions


def test_readers_read_the_same_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip('polars')
    path = tmp_path / 'made.inter'
    interactions._table(1000).write_csv(path, separator='\t')
    users, items, ratings = interactions._polars(path)
    assert read_interactions(path, 'table').tolist() == [users.tolist(), items.tolist()]
    assert ratings.min() > 0
    for reader in (interactions.OURS, interactions.POLARS):
        seconds, peak = interactions._read(reader, path)
        assert seconds > 0
        assert peak >= 0


def test_an_epoch(tmp_path: Path) -> None:
    pytest.importorskip('polars')
    path = tmp_path / 'made.inter'
    interactions._table(2000).write_csv(path, separator='\t')
    rows = interactions._epoch(path, 512, str(tmp_path))
    assert [what for what, *_ in rows] == ['the data set', 'the model', 'the end of the epoch']
    assert sorted(rows, key=lambda row: row[1:]) == rows
