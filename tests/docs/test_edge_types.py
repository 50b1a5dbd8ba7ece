"""The figures of the page on tasks that need the types of edges are those of the table."""

import re
from pathlib import Path

from csv_tables import stored_rows

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / 'docs' / 'which_mask.md').read_text(encoding='utf-8')
MODELS = {
    '`HeatKernel`, learned weights': 'HeatKernel, learned weights',
    '`Hop`, learned weights along shortest paths': 'Hop, learned weights',
    '`PowerSeries`, learned weights': 'PowerSeries, learned weights',
    '`HeatKernel` without weights': 'HeatKernel',
    'GPS: GINE and softmax attention, a layer for each hop': 'GPS: GINE and softmax attention',
    'GINE, a layer for each hop': 'GINE',
    'GatedGCN, a layer for each hop': 'GatedGCN',
}


def test_figures() -> None:
    stored = {(row['task'], row['model']): row for row in stored_rows('edge_types')}
    section = PAGE.split('### Labels that need the types of edges')[1].split('###')[0]
    shown = re.findall(r'^\| (.+) \| (0\.\d+) \| (0\.\d+) \| (.+) \|$', section, re.MULTILINE)
    assert [model for model, *_ in shown] == list(MODELS)
    for model, *accuracies, parameters in shown:
        rows = [stored[task, MODELS[model]] for task in ('4 hops', '8 hops')]
        assert accuracies == [row['test'].split()[0] for row in rows]
        assert parameters == ' and '.join(dict.fromkeys(f'{int(row["parameters"]):,}' for row in rows))
    words = {key: row['verdict'] for key, row in stored.items()}
    others = [key for key, word in words.items() if word != 'worse' and word != 'reference']
    gps = 'GPS: GINE and softmax attention'
    assert others == [('4 hops', 'Hop, learned weights'), ('4 hops', 'GINE'), ('4 hops', gps), ('8 hops', gps)]
    without = [stored[task, model]['test'] for task in ('4 hops', '8 hops') for model in ('PowerSeries', 'HeatKernel', 'Hop')]
    assert max(float(test.split()[0]) for test in without) == 0.779
