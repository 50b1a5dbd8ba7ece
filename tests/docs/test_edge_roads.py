"""The figures of the page on roads, and on Performer, are those of the tables."""

import re
from pathlib import Path

from csv_tables import stored_rows

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / 'docs' / 'which_mask.md').read_text(encoding='utf-8')


def test_roads() -> None:
    models, gains = ({row['model']: row for row in stored_rows(table)} for table in ('edge_roads', 'edge_roads_gains'))
    named = ['Hop', 'Hop, learned weights', 'GINE', 'GatedGCN']
    gcn = [row for row in stored_rows('accuracy_chicago') if row['model'] == 'gcn' and row['chosen']]
    hop, learned, message_passing, gated = (models[name]['test'].split()[0] for name in named)
    shown = f'{float(gains["Hop"]["would have shown"]):.3f}'
    section = PAGE.split('### Roads, which have lengths and speeds')[1].split('###')[0]
    figures = [hop, learned, shown, message_passing, gated, f'{float(gcn[0]["test accuracy"].split()[0]):.3f}']
    assert re.findall(r'0\.\d+', section) == figures
    assert {row['verdict'] for row in gains.values()} == {'not distinguishable'}
    assert gains.keys() == {'Hop', 'PowerSeries', 'GRF'}
    assert gcn[0]['layers'] == '16'
    assert int(models['Hop, learned weights']['parameters']) < int(models['GINE']['parameters'])
    assert all(len(row['seeds'].split()) == 5 for row in models.values())


def test_performer() -> None:
    rows = stored_rows('graph_properties_performer')
    tests = {(row['task'], row['model']): float(row['test'].split()[0]) for row in rows}
    tasks, kinds = ('distances', 'eccentricity', 'diameter'), ('GPS, Performer', 'GPS, narrow Performer')
    best = [min(tests[task, kind] for kind in kinds) for task in tasks]
    mask = [tests[task, 'Hop with sums, geometric, one layer'] for task in tasks]
    sentence = PAGE.split('With Performer in place of softmax attention')[1].split('([graph_properties_performer]')[0]
    assert re.findall(r'-?\d\.\d+', sentence) == [f'{number:.2f}' for number in best + mask]
    assert all(tests[task, 'GPS, softmax'] <= lowest for task, lowest in zip(tasks, best, strict=True))
