"""The comparison of runs against SciPy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import sem

from pyg_topomask.__main__ import main
from pyg_topomask.apps.runs.compare import compare, mean_error, verdict
from pyg_topomask.apps.runs.tables import markdown_table

FIRST = {0: 0.9, 2: 0.7, 10: 0.83}
BELOW = {10: 0.7, 2: 0.6, 0: 0.75, 7: 0.1}


def write(folder: Path, accuracies: dict[int, float], **numbers: Any) -> Path:
    for seed, accuracy in accuracies.items():
        result = {'metric': 'test_accuracy', 'test_accuracy': accuracy, 'test_mae': seed, 'val_loss': None}
        result |= {'parameters': 100, 'epochs': 10 + seed, 'seconds_per_epoch': 0.5, **numbers}
        (folder / str(seed)).mkdir(parents=True)
        (folder / str(seed) / 'result.json').write_text(json.dumps(result))
    return folder


def test_means_and_paired_differences(tmp_path: Path) -> None:
    first, below = write(tmp_path / 'first', FIRST), write(tmp_path / 'below', BELOW)
    (tmp_path / 'first' / 'unfinished').mkdir()
    rows = compare([first, below])
    gaps = [BELOW[seed] - FIRST[seed] for seed in FIRST]
    assert [row['run'] for row in rows] == [str(first), str(below)]
    assert [row['seeds'] for row in rows] == ['0 2 10', '0 2 7 10']
    for row, accuracies in zip(rows, (FIRST, BELOW), strict=True):
        values = list(accuracies.values())
        assert row['test_accuracy'] == f'{np.mean(values):.4f} ± {sem(values):.4f}'
    assert (rows[0]['minus the first, paired'], rows[0]['verdict']) == ('', '')
    assert rows[1]['minus the first, paired'] == f'{np.mean(gaps):+.4f} ± {sem(gaps):.4f} (3 in common)'
    paired = compare([first, write(tmp_path / 'same', FIRST)])[1]['minus the first, paired']
    assert paired == '+0.0000 ± 0.0000'
    assert rows[1]['verdict'] == 'lower'
    assert compare([below, first])[1]['verdict'] == 'higher'
    assert (rows[0]['parameters'], rows[0]['epochs'], rows[0]['s/epoch']) == (100, 12, 0.5)
    assert compare([below, first], 'test_mae')[1]['verdict'] == 'not distinguishable'


def test_a_table_shows_four_digits_of_a_number_and_nothing_for_none() -> None:
    table = markdown_table([{'run': 'a', 'seconds': 1234.567, 'epochs': 12345}, {'run': 'bc', 'seconds': None, 'epochs': 1}])
    lines = [
        '| run | seconds | epochs |',
        '|----:|--------:|-------:|',
        '|   a |    1235 |  12345 |',
        '|  bc |         |      1 |',
    ]
    assert table.splitlines() == lines


def test_few_seeds_have_no_error(tmp_path: Path) -> None:
    first, alone = write(tmp_path / 'first', FIRST), write(tmp_path / 'alone', {2: 0.5})
    elsewhere = write(tmp_path / 'elsewhere', {3: 0.5, 4: 0.5})
    rows = compare([first, alone, elsewhere])
    assert [row['minus the first, paired'] for row in rows] == ['', '-0.2000 (1 in common)', 'no seed in common']
    assert [row['verdict'] for row in rows] == ['', '', '']
    assert rows[1]['test_accuracy'] == '0.5000'


def test_statistics() -> None:
    values = np.random.default_rng(0).normal(size=9)
    np.testing.assert_allclose(mean_error(values.tolist()), (values.mean(), sem(values)))
    assert np.isnan(mean_error([1.0])[1])
    assert [verdict(*given) for given in ((2.0, 1.0), (-2.1, 1.0), (1.9, 1.0), (0.0, 0.0), (1.0, np.nan))] == [
        'better',
        'worse',
        'not distinguishable',
        'not distinguishable',
        'not distinguishable',
    ]


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, below = write(tmp_path / 'first', FIRST), write(tmp_path / 'below', BELOW)
    assert main(['compare', str(first), str(below)]) == 0
    assert 'lower' in capsys.readouterr().out.splitlines()[3]
    assert main(['compare', str(first), str(tmp_path)]) == 2
    assert f'runs: got {tmp_path}; accepted: folders with finished runs' in capsys.readouterr().err
    assert main(['compare', str(first), '--metric', 'val_loss']) == 2
    assert f'metric of {first}: got val_loss; accepted: test_accuracy, test_mae' in capsys.readouterr().err.replace("'", '')
