"""The claims of the report on k-MIP attention: what made-up tables say of each."""

import pytest
from report_tables import BETTER, SHOWN, UNCLEAR, UNSEEN, WORSE, decide, table, write

from benchmarks.report.rules import NOT_REPRODUCED, REPRODUCED, TREND, UNDECIDED
from benchmarks.report.tables import form


@pytest.mark.parametrize(
    ('gated', 'performer', 'verdict'),
    [(WORSE, WORSE, TREND), ('+0.200 ± 0.001', WORSE, NOT_REPRODUCED), (UNCLEAR, '+0.200 ± 0.001', UNDECIDED)],
)
def test_kmip_accuracy(gated, performer, verdict, tmp_path):
    def write_gaps(name, gaps):
        known = {**SHOWN, '+0.200 ± 0.001': 'better'}
        rows = [
            (model, 20_400 if model == 'GCN' else 40_266, '0.900 ± 0.010', gap, known.get(gap, UNSEEN))
            for model, gap in {**gaps, 'GPS + k-MIP': '+0.000 ± 0.000'}.items()
        ]
        write(tmp_path, name, table('model|parameters|test accuracy|minus k-MIP, paired|verdict', *rows))

    write_gaps('kmip_full_size', {'GCN': WORSE, 'GINE': WORSE, 'GAT': WORSE, 'GatedGCN': gated})
    short = {'GPS + Performer': performer, 'GPS + BigBird': WORSE, 'GPS + Transformer': '-0.001 ± 0.001'}
    write_gaps('kmip_accuracy', short)
    places = [
        ('Table 6.1', 'kmip_full_size', 'GCN, GINE'),
        ('Table 6.1', 'kmip_full_size', 'GatedGCN'),
        ('Sec. 6.1', 'kmip_accuracy', ''),
    ]
    decisions = [decide(tmp_path, where, name, statement) for where, name, statement in places]
    assert [decided for decided, _ in decisions] == [TREND, verdict, TREND]
    assert [ours for _, ours in decisions][::2] == ['+0.2, 3 of 3 shown', '+0.001, 1 of 1 shown']


@pytest.mark.parametrize(('last', 'verdict'), [(UNCLEAR, TREND), (BETTER, UNDECIDED), ('+0.200 ± 0.0001', NOT_REPRODUCED)])
def test_kmip_objects(last, verdict, tmp_path):
    gaps = dict.fromkeys(('GCN', 'GINE', 'GAT', 'GatedGCN', 'GPS + Performer', 'GPS + BigBird'), WORSE)
    gaps |= {'GPS + expander': last, 'GPS + k-MIP': '+0.000 ± 0.000'}
    known = {WORSE: 'worse', UNCLEAR: UNSEEN}
    rows = [(model, 40_000, '0.900 ± 0.010', gap, known.get(gap, 'better')) for model, gap in gaps.items()]
    write(tmp_path, 'kmip_objects', table('model|parameters|test accuracy|minus k-MIP, paired|verdict', *rows))
    decided, ours = decide(tmp_path, 'Table 6.5, ModelNet10', 'kmip_objects')
    assert decided == verdict
    assert ours.endswith(', 6 of 7 shown')


@pytest.mark.parametrize(
    ('last', 'verdict'), [(WORSE, TREND), (UNCLEAR, TREND), (BETTER, UNDECIDED), ('+0.200 ± 0.0001', NOT_REPRODUCED)]
)
def test_kmip_peptides(last, verdict, tmp_path):
    columns = 'model|parameters|test average precision|minus k-MIP, paired|verdict'
    reference = ('GPS + k-MIP', 50_000, '0.900 ± 0.010', '+0.000 ± 0.000', 'reference')

    def row(model, gap):
        return model, 40_000, '0.900 ± 0.010', gap, {WORSE: 'worse', UNCLEAR: UNSEEN}.get(gap, 'better')

    write(tmp_path, 'kmip_all_peptides', table(columns, row('GCN', WORSE), row('GatedGCN', last), reference))
    # On the part of the molecules, GCN and GatedGCN do not count.
    gaps = dict.fromkeys(('GINE', 'GAT', 'GPS + Performer', 'GPS + BigBird', 'GPS + expander'), WORSE)
    gaps |= {'GCN': BETTER, 'GatedGCN': BETTER}
    write(tmp_path, 'kmip_peptides', table(columns, *(row(*gap) for gap in gaps.items()), reference))
    decided, ours = decide(tmp_path, 'Table 6.1, Peptides-func', 'kmip_all_peptides')
    assert decided == verdict
    assert ours.endswith(f', {6 + (last == WORSE)} of 7 shown')


@pytest.mark.parametrize(('seconds', 'verdicts'), [(7, [TREND, TREND]), (150, [UNDECIDED, TREND])])
def test_kmip_efficiency(seconds, verdicts, tmp_path):
    columns = 'nodes|method|inference ms|training ms|training MB|inference speed-up|training speed-up'
    rows = [(1000, f'full attention ({name})', 100, 300, 500, 1, 1) for name in ('SDPA', 'matrix')]
    rows += [(n, 'k-MIP, auto', 2, 2, n / 100, 50, 150) for n in (1000, 10_000)]
    rows += [(1000, 'k-MIP, naive', seconds, seconds, 9, 5, 15)]
    write(tmp_path, 'kmip_efficiency', table(columns, *rows))
    assert [decide(tmp_path, where, 'kmip_efficiency')[0] for where in ('Fig. 6.1', 'Fig. 6.2')] == verdicts
    assert decide(tmp_path, 'Fig. 6.2', 'kmip_efficiency')[1] == f'{form(300 / seconds)} times'
    assert decide(tmp_path, 'Sec. 6.2', 'kmip_efficiency') == (REPRODUCED, '10 times for 10 times the nodes')


def test_kmip_search(tmp_path):
    rows = [(2, 100, 0.5), (2, 10_000, 0.01), (10, 100, 1.0), (10, 10_000, 0.5)]
    write(tmp_path, 'ball_tree', table('d|keys|share', *rows))
    assert decide(tmp_path, 'Fig. 6.3', 'ball_tree')[0] == REPRODUCED
    write(tmp_path, 'ball_tree', table('d|keys|share', *rows[:3], (10, 10_000, 0.01)))
    assert decide(tmp_path, 'Fig. 6.3', 'ball_tree')[0] == NOT_REPRODUCED
    for ratios, verdict in (
        ((9, 2, 8), REPRODUCED),
        ((9, 0.2, 8), TREND),
        ((0.5, 2, 8), TREND),
        ((9, 0.2, 0.8), NOT_REPRODUCED),
    ):
        rows = [(dim, nodes, ratio) for (dim, nodes), ratio in zip(((3, 100), (3, 1000), (10, 1000)), ratios, strict=True)]
        write(tmp_path, 'ball_tree_time', table('d|nodes|ratio', *rows))
        assert decide(tmp_path, 'Fig. 6.4', 'ball_tree_time')[0] == verdict
    columns = 'method|graphs|nodes per graph|KeOps argKmin alone / it'
    write(tmp_path, 'topk_search', table(columns, ('matmul + torch.topk', 1, 10_000, 4.63)))
    assert decide(tmp_path, 'Sec. 6.2', 'topk_search')[0] == UNDECIDED
    write(tmp_path, 'topk_search', table(columns, ('matmul + torch.topk', 1, 10_000, 0.8)))
    assert decide(tmp_path, 'Sec. 6.2', 'topk_search')[0] == TREND


@pytest.mark.parametrize(
    ('gap', 'verdict'), [(UNCLEAR, UNDECIDED), ('-0.0002 ± 0.0005', TREND), ('-0.2000 ± 0.0005', NOT_REPRODUCED)]
)
def test_influence(gap, verdict, tmp_path):
    rows = [(name, value, gap, '0.900 ± 0.010') for name in ('k', 'kq_dim') for value in (1, 10, 20)]
    write(tmp_path, 'kmip_influence', table('varied|value|minus k = 10, kq_dim = 8, paired|test accuracy', *rows))
    assert [decide(tmp_path, where, 'kmip_influence')[0] for where in ('Table 6.2', 'Table 6.4')] == [verdict] * 2


@pytest.mark.parametrize(
    ('alone', 'largest', 'verdicts'),
    [(0.6, 64, [TREND, TREND]), (0.6, 40, [NOT_REPRODUCED, TREND]), (0.1, 64, [NOT_REPRODUCED, UNDECIDED])],
)
def test_inside(alone, largest, verdicts, tmp_path):
    columns = 'layer|keys a node|largest out-degree|nobody attends to|of the first 10 in full attention'
    write(tmp_path, 'kmip_inside', table(columns, (1, 10, largest, alone, 0.9 - alone), (2, 10, 50, 0.3, 0.4)))
    assert [decide(tmp_path, where, 'kmip_inside')[0] for where in ('Fig. 6.10', 'Fig. 6.7')] == verdicts


@pytest.mark.parametrize(('size', 'verdict'), [(1_000_000, TREND), (20_000, NOT_REPRODUCED)])
def test_million(size, verdict, tmp_path):
    write(tmp_path, 'kmip_million', table('nodes|seconds|peak GB', (size, 600, 1.8)))
    assert decide(tmp_path, 'Table 6.5', 'kmip_million') == (verdict, f'{size:,}: 10.0 minutes, 1.80 GB')
