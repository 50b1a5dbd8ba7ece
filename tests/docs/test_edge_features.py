"""The figures of the page on molecules, whose bonds have kinds, are those of the tables."""

import re
from pathlib import Path

from csv_tables import stored_rows

from pyg_topomask.apps.runs.compare import mean_error, verdict

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / 'docs' / 'which_mask.md').read_text(encoding='utf-8')
#: The figures of the page in their order: the task, the model, and whether weights are learned.
FIGURES = [
    ('ZINC', 'Hop with softmax'),
    ('ZINC', 'Hop with softmax, edge features'),
    ('ZINC', 'PowerSeries'),
    ('ZINC', 'PowerSeries, learned weights'),
    ('ZINC', 'GRF'),
    ('ZINC', 'GRF, learned weights'),
    ('ZINC', 'HeatKernel'),
    ('ZINC', 'HeatKernel, learned weights'),
    ('ZINC', 'GINE'),
    ('ZINC', 'GPS: GINE and PowerSeries, learned weights'),
    ('ZINC', 'GPS: GINE and PowerSeries'),
    ('BACE', 'Hop with softmax'),
    ('BACE', 'Hop with softmax, edge features'),
    ('Lipophilicity', 'Hop with softmax, edge features'),
    ('Lipophilicity', 'Hop with softmax'),
    ('Lipophilicity', 'GINE'),
    ('Lipophilicity', 'GPS: GINE and softmax attention'),
]
MASKS = ('PowerSeries', 'HeatKernel', 'GRF')


def _rows(table: str) -> dict[tuple[str, str], dict[str, str]]:
    return {(row['task'], row['model']): row for row in stored_rows(table)}


def test_figures() -> None:
    models, gains = _rows('edge_features'), _rows('edge_features_gains')
    section = PAGE.split('### Molecules, whose bonds have kinds')[1].split('###')[0]
    assert re.findall(r'0\.\d+', section) == [models[figure]['test'].split()[0] for figure in FIGURES]
    softmax = 'Hop with softmax, edge features'
    for task, better, others, word in [
        ('ZINC', 'GINE', [f'{mask}, learned weights' for mask in MASKS], 'low'),
        ('ZINC', 'GINE', [softmax], 'not distinguishable'),
        ('Lipophilicity', softmax, ['GINE', 'GPS: GINE and softmax attention'], 'low'),
    ]:
        for other in others:
            scores = [[float(score) for score in models[task, name]['seeds'].split()] for name in (other, better)]
            assert verdict(*mean_error([one - low for one, low in zip(*scores, strict=True)]), ('low', 'high')) == word
    words = {(task, model): row['verdict'] for (task, model), row in gains.items()}
    assert {words['ZINC', mask] for mask in (*MASKS, 'Hop with softmax')} == {'better'}
    others = {words[task, mask] for task in ('ESOL', 'BACE', 'Lipophilicity') for mask in MASKS}
    assert others == {'not distinguishable'}
    of_softmax = [words[task, 'Hop with softmax'] for task in ('BACE', 'ESOL', 'Lipophilicity')]
    assert of_softmax == ['better', 'undecided', 'not distinguishable']
    assert all(len(row['seeds'].split()) == 5 for row in models.values())


def test_figures_of_peptides() -> None:
    models, gains = _rows('edge_peptides'), _rows('edge_peptides_gains')
    section = PAGE.split('### Peptides, which are larger molecules')[1].split('###')[0]
    softmax = 'Hop with softmax, edge features'
    shown = ['PowerSeries', 'PowerSeries, learned weights', softmax, 'Hop with softmax', 'GINE', 'GatedGCN']
    scores = {model: row['test'].split()[0] for (_, model), row in models.items()}
    assert re.findall(r'0\.\d+', section) == [scores[model] for model in shown]
    words = {model: row['verdict'] for (_, model), row in models.items()}
    assert (words[softmax], words['GINE'], words['GatedGCN']) == ('reference', 'worse', 'not distinguishable')
    assert [row['verdict'] for row in gains.values()] == ['better', 'not distinguishable']
    assert all(row['epochs'] == '5' and len(row['seeds'].split()) == 3 for row in models.values())
