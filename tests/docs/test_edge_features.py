"""The figures of the page on molecules, whose bonds have kinds, are those of the tables."""

import csv
import re
from pathlib import Path

from pyg_topomask.apps.runs.compare import mean_error, verdict

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / 'docs' / 'which_mask.md').read_text(encoding='utf-8')
#: The figures of the page in their order: the task, the model, and whether weights are learned.
FIGURES = [
    ('ZINC', 'PowerSeries'),
    ('ZINC', 'PowerSeries, learned weights'),
    ('ZINC', 'GRF'),
    ('ZINC', 'GRF, learned weights'),
    ('ZINC', 'HeatKernel'),
    ('ZINC', 'HeatKernel, learned weights'),
    ('ZINC', 'GINE'),
    ('ZINC', 'GPS: GINE and PowerSeries, learned weights'),
    ('ZINC', 'GPS: GINE and PowerSeries'),
]
MASKS = ('PowerSeries', 'HeatKernel', 'GRF')


def _rows(table: str) -> dict[tuple[str, str], dict[str, str]]:
    with open(ROOT / 'benchmarks' / 'results' / f'{table}.csv', newline='', encoding='utf-8') as file:
        return {(row['task'], row['model']): row for row in csv.DictReader(file)}


def test_figures() -> None:
    models, gains = _rows('edge_features'), _rows('edge_features_gains')
    section = PAGE.split('### Molecules, whose bonds have kinds')[1].split('###')[0]
    assert re.findall(r'0\.\d+', section) == [models[figure]['test'].split()[0] for figure in FIGURES]
    for model in MASKS:
        scores = [
            [float(score) for score in models['ZINC', name]['seeds'].split()] for name in (f'{model}, learned weights', 'GINE')
        ]
        assert verdict(*mean_error([one - other for one, other in zip(*scores, strict=True)]), ('GINE', 'mask')) == 'GINE'
    words = {(task, model): row['verdict'] for (task, model), row in gains.items()}
    assert [words['ZINC', mask] for mask in MASKS] == ['better', 'undecided', 'better']
    assert words['ZINC', 'GPS: GINE and PowerSeries'] == 'worse'
    others = {(task, mask) for task in ('ESOL', 'BACE') for mask in MASKS if words[task, mask] != 'not distinguishable'}
    assert others == {('BACE', 'PowerSeries')}
    assert words['BACE', 'PowerSeries'] == 'undecided'
    assert all(len(row['seeds'].split()) == 5 for row in models.values())
