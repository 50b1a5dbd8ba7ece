"""What the README says that advise finds, and the tables of the benchmark."""

from __future__ import annotations

import re
from pathlib import Path

from csv_tables import stored_rows

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / 'README.md').read_text(encoding='utf-8')


def rounded(mean_and_error: str) -> str:
    mean, error = (float(number) for number in mean_and_error.split(' ± '))
    return f'{mean:.3f} ± {error:.3f}'


def test_models_on_the_built_in_trees() -> None:
    stored = {row['model']: row for row in stored_rows('advise_models') if row['data'] == 'built-in trees'}
    shown = re.findall(r'^\| `(\w+\+\w+)`((?:, 6 layers)?): [^|]+ \| ([^|]+) \| ([\d,]+) \|$', TEXT, re.MULTILINE)
    assert len(shown) == 4
    for name, layers, accuracy, parameters in shown:
        model = name + layers
        assert accuracy == rounded(stored[model]['test accuracy'])
        assert parameters == f'{int(stored[model]["parameters"]):,}'
        assert stored[model]['seeds'] == '3'


def test_verdicts() -> None:
    text = ' '.join(TEXT.split())
    for row in stored_rows('advise'):
        assert (row['verdict'] in text) == (row['data'] in ('built-in trees', 'digits'))
        assert row['says'] == row['our table']
        assert float(row['trainings']) > 0.9  # the share of the time that trainings take
        assert float(row['over a training']) < (1.15 if 'Peptides' in row['data'] else 1.1)  # the target is 1.1 for all
