"""The claims of the report: what made-up tables say of each."""

import pytest
from report_tables import BETTER, SHOWN, UNCLEAR, UNSEEN, WORSE, decide, table, write

from benchmarks.report.rules import NOT_REPRODUCED, REPRODUCED, TREND, UNDECIDED
from benchmarks.report.tables import form

MOTIFS = 'task|model|layers|minus GKAT, paired|verdict'


@pytest.mark.parametrize(
    ('gaps', 'verdicts'),
    [
        ((WORSE, WORSE), (REPRODUCED, REPRODUCED)),
        # The figures print no effects, so nothing can contradict them.
        ((WORSE, UNCLEAR), (UNDECIDED, TREND)),
        ((WORSE, BETTER), (UNDECIDED, UNDECIDED)),
    ],
)
def test_motifs(gaps, verdicts, tmp_path):
    rows = [
        (task, model, 2, gap, '')
        for task in ('circle', 'induced cycle')
        for model, gap in zip(('GCN', 'GAT'), gaps, strict=True)
    ]
    reference = [(task, 'GKAT', 2, '+0.000 ± 0.000', 'reference') for task in ('circle', 'induced cycle')]
    # A deep GAT is not part of the statement, a deep GCN is.
    deep = [('induced cycle', 'GAT', 4, BETTER, ''), ('induced cycle', 'GCN', 6, WORSE, '')]
    write(tmp_path, 'motifs', table(MOTIFS, *reference, *rows, *deep))
    decided, ours = decide(tmp_path, 'Fig. 7', 'motifs')
    assert (decide(tmp_path, 'Fig. 6', 'motifs')[0], decided) == verdicts
    assert ours.endswith(' of 3 shown')


def test_depth_and_equal_time(tmp_path):
    rows = [('GKAT', 2, BETTER, 'better'), ('small GKAT', 2, '+0.000 ± 0.000', 'reference'), ('GCN', 6, WORSE, 'worse')]
    rows += [('GAT', 3, WORSE, 'worse'), ('ChebNet', 5, BETTER, 'better')]
    columns = 'model|layers|difference, paired|verdict'
    write(tmp_path, 'gkat_depth', table(columns, *rows))
    assert decide(tmp_path, 'Fig. 7, Table 5', 'gkat_depth') == (REPRODUCED, '+0.2, 2 of 2 shown')
    write(tmp_path, 'gkat_equal_time', table(f'task|{columns}', *(('caveman', *row) for row in rows)))
    assert decide(tmp_path, 'Table 4', 'gkat_equal_time')[0] == NOT_REPRODUCED


@pytest.mark.parametrize(
    ('longest', 'seeds', 'verdict'),
    [('0.900 ± 0.001', '0.8 0.9 1.0', TREND), ('0.990 ± 0.001', '0.9 1.0 1.1', NOT_REPRODUCED)],
)
def test_walk_length(longest, seeds, verdict, tmp_path):
    rows = [('caveman', 1, '0.500 ± 0.001', '0.4 0.5 0.6'), ('caveman', 3, '0.900 ± 0.001', '0.8 0.9 1.0')]
    rows += [('caveman', 5, longest, seeds)]
    rows += [('induced cycle', *row) for _, *row in rows]
    write(tmp_path, 'gkat_walk_length', table('task|hops|validation accuracy|seeds', *rows))
    gap = float(longest[:5]) - 0.9
    assert decide(tmp_path, 'App. A.5.3, Fig. 9', 'gkat_walk_length')[0] == verdict
    scores = {'1 hop': '0.500 ± 0.001', '2 hops': '0.900 ± 0.001', '4 hops': '0.800 ± 0.001', '7 hops': longest}
    rows = [('Cora', f'GKAT, {hops}', score) for hops, score in scores.items()] + [('Cora', 'GAT', '0.999 ± 0.001')]
    write(tmp_path, 'citation', table('data|model|test accuracy', *rows))
    ours = f'{gap:+.2g}, {int(verdict == TREND)} of 1 shown'
    assert decide(tmp_path, 'App. A.5.3, Fig. 12', 'citation') == (verdict, ours)


@pytest.mark.parametrize(
    ('gap', 'verdict'),
    [(UNCLEAR, UNDECIDED), (WORSE, TREND), (BETTER, UNDECIDED), ('+0.200 ± 0.005', NOT_REPRODUCED), ('+0.001 ± 0.002', TREND)],
)
def test_tu(gap, verdict, tmp_path):
    columns, accuracy = 'data|model|minus GKAT, paired|verdict|test accuracy', '0.500 ± 0.010'
    rows = [('NCI1', 'GKAT', '+0.000 ± 0.000', 'reference'), ('NCI1', 'no graph', gap, ''), ('NCI1', 'GIN', gap, '')]
    rows += [('IMDB-MULTI', 'no graph', BETTER, 'better')]
    write(tmp_path, 'tu', table(columns, *((*row, accuracy) for row in rows)))
    assert decide(tmp_path, 'Tables 1, 2', 'tu', 'baseline')[0] == verdict
    for data in ('ENZYMES', 'PROTEINS', 'IMDB-BINARY'):
        rows += [(data, 'GKAT', '+0.000 ± 0.000', 'reference'), (data, 'no graph', gap, '')]
    write(tmp_path, 'tu', table(columns, *((*row, accuracy) for row in rows)))
    assert decide(tmp_path, 'Tables 1, 2', 'tu', 'baseline')[0] == verdict


@pytest.mark.parametrize(('cora', 'verdict'), [('worse', REPRODUCED), ('not distinguishable', TREND)])
def test_citation(cora, verdict, tmp_path):
    rows = []
    for data, gap in (('Cora', cora), ('CiteSeer', 'better'), ('PubMed', 'better')):
        rows.append((data, 'GAT', '0.800 ± 0.010', '+0.000 ± 0.000', 'reference', '0.800 ± 0.010'))
        rows.append((data, 'GKAT, 4 hops', '0.810 ± 0.010', '-0.002 ± 0.001', gap, '0.790 ± 0.010'))
        # Chosen by validation, and not by test accuracy.
        rows.append((data, 'GKAT, 2 hops', '0.990 ± 0.010', WORSE, 'worse', '0.700 ± 0.010'))
    for name in ('citation', 'citation_softmax'):
        write(tmp_path, name, table('data|model|test accuracy|minus GAT, paired|verdict|validation accuracy', *rows))
    ours = f'-0.002 to +0.002, {2 + (cora == "worse")} of 3 shown'
    assert decide(tmp_path, 'Table 10', 'citation_softmax') == (verdict, ours)


@pytest.mark.parametrize(('factor', 'verdict'), [(9.0, TREND), (1.1, TREND), (0.5, UNDECIDED)])
def test_rwgnk_speed(factor, verdict, tmp_path):
    layer = 'RWGNK, 4 walks, 256 random features'
    columns = 'nodes|layer|speed-up over dense-masked GAT|speed-up over GATConv|memory / dense-masked GAT'
    # The paper's is the graph of PubMed's size.
    rows = [(3_327, layer, 30, 5.0, 0.5), (19_717, layer, factor, 0.25, 0.05), (100_000, layer, '', 0.1, '')]
    write(tmp_path, 'gkat_speed', table(columns, *rows))
    assert decide(tmp_path, 'Table 3', 'gkat_speed', 'trains') == (verdict, f'{factor} times')


@pytest.mark.parametrize(('share', 'verdict'), [(0.04, TREND), (1.1, UNDECIDED)])
def test_rwgnk_memory(share, verdict, tmp_path):
    layer = 'RWGNK, 4 walks, 256 random features'
    rows = [(3_327, layer, 2.0), (19_717, layer, share), (19_717, 'GATConv', 2.0), (100_000, layer, '')]
    write(tmp_path, 'gkat_speed', table('nodes|layer|memory / GKAT-0', *rows))
    assert decide(tmp_path, 'Table 3', 'gkat_speed', 'memory') == (verdict, str(share))


#: Seeds of attentions without a mask, and of those with a gap to them.
PLAIN, SEEDS = '0.4 0.5 0.6', {BETTER: '0.6 0.7 0.81', WORSE: '0.2 0.3 0.41', UNCLEAR: '0.5 0.3 0.7'}


def images(masked: str, softmax: str, many: str) -> list[dict[str, object]]:
    rows = [
        ('linear, ReLU', '0.500 ± 0.010', '+0.000 ± 0.000', PLAIN),
        ('linear, FAVOR+', '0.500 ± 0.010', UNCLEAR, PLAIN),
        ('ad-hoc, n=100, p_halt=0.5', '0.500 ± 0.010', UNCLEAR, PLAIN),
        ('learned features', '0.510 ± 0.010', UNCLEAR, PLAIN),
        ('softmax', '0.700 ± 0.010', softmax, SEEDS[softmax]),
        ('GRF, n=1, p_halt=0.5', '0.500 ± 0.010', many, PLAIN),
        *((f'GRF, n={n}, p_halt=0.5', '0.600 ± 0.010', many, SEEDS[many]) for n in (3, 10, 30, 100)),
        *((f'GRF, n=20, 10 hops{form}', '0.700 ± 0.010', masked, SEEDS[masked]) for form in ('', ', positive f', ', FAVOR+')),
        ('Toeplitz', '0.700 ± 0.010', masked, SEEDS[masked]),
    ]
    columns = 'data|attention|test accuracy|minus linear, ReLU, paired by seed|seeds|verdict'
    return table(columns, *(('digits', *row, SHOWN.get(row[2], UNSEEN)) for row in rows))


def test_images(tmp_path):
    masks = [('Table 1', 'On images'), ('App. C.2', ''), ('Table 3', 'Learned'), ('Fig. 8', 'Toeplitz')]
    walkers = [('Fig. 6', ''), ('Table 3', 'importance')]

    def verdicts(*places: tuple[str, str]) -> set[str]:
        return {decide(tmp_path, where, 'images', statement)[0] for where, statement in places}

    softmax = ('Table 1', 'Softmax')
    write(tmp_path, 'images', images(BETTER, BETTER, BETTER))
    assert verdicts(*masks, *walkers, softmax) == {TREND}
    write(tmp_path, 'images', images(WORSE, BETTER, UNCLEAR))
    assert [verdicts(*masks), verdicts(*walkers), verdicts(softmax)] == [{NOT_REPRODUCED}, {UNDECIDED}, {TREND}]
    # Where softmax attention is not better, masks have nothing to make up for.
    for gap in (WORSE, UNCLEAR):
        write(tmp_path, 'images', images(WORSE, gap, UNCLEAR))
        assert verdicts(*masks, *walkers, softmax) == {UNDECIDED}


@pytest.mark.parametrize(
    ('gap', 'ratio', 'verdicts'),
    [(BETTER, '1.10', (TREND, TREND)), (UNCLEAR, '0.57', (UNDECIDED, UNDECIDED))],
)
def test_interlacer(gap, ratio, verdicts, tmp_path):
    columns = 'local layer|error at 6, mm|at 6 minus GRF, paired by seed|training steps/s (to message passing), 32768 points'
    rows = [('GRF', '72.5 ± 2.1', '', f'0.2 ({ratio})'), ('unmasked', '76.2 ± 0.8', gap, '0.9 (2.3)')]
    write(tmp_path, 'interlacer', table(columns, *rows))
    decisions = [decide(tmp_path, *place) for place in (('Fig. 4', 'interlacer'), ('Sec. 4.4', 'interlacer'))]
    assert tuple(decided for decided, _ in decisions) == verdicts
    assert decisions[1][1] == f'{form(float(ratio))} times'


def estimation(last: str, before: str, power: float = 1) -> list[dict[str, object]]:
    columns = 'sweep|nodes|edge probability|sampler|relative error|share of nonzero features'
    rows = [
        ('nodes', n, 0.5, 'iid', e, f'{4 / n**power:.5f} ± 0.00001')
        for n, e in ((25, '0.100 ± 0.001'), (50, before), (100, last))
    ]
    rows += [
        ('edge probability', 100, p, name, e, '')
        for p, name, e in ((0.1, 'iid', '0.100 ± 0.001'), (0.1, 'repelling', '0.090 ± 0.001'), (0.9, 'iid', last))
    ]
    return table(columns, *rows)


@pytest.mark.parametrize(
    ('last', 'before', 'verdicts'),
    [
        ('0.110 ± 0.001', '0.110 ± 0.001', [REPRODUCED] * 3),
        ('0.100 ± 0.001', '0.100 ± 0.001', [NOT_REPRODUCED, NOT_REPRODUCED, REPRODUCED]),
        ('0.200 ± 0.001', '0.150 ± 0.001', [TREND, NOT_REPRODUCED, REPRODUCED]),
    ],
)
def test_estimation(last, before, verdicts, tmp_path):
    write(tmp_path, 'estimation', estimation(last, before))
    places = [('Fig. 8', ''), ('Fig. 9', 'error'), ('Fig. 9', 'share')]
    assert [decide(tmp_path, where, 'estimation', statement)[0] for where, statement in places] == verdicts


@pytest.mark.parametrize(('power', 'verdict'), [(1, REPRODUCED), (0.9, NOT_REPRODUCED)])
def test_share_of_features(power, verdict, tmp_path):
    write(tmp_path, 'estimation', estimation('0.1 ± 0.1', '0.1 ± 0.1', power))
    assert decide(tmp_path, 'Fig. 9', 'estimation', 'share') == (verdict, f'exponent -{power:.2f}')


@pytest.mark.parametrize(('power', 'verdict'), [(1, REPRODUCED), (2, NOT_REPRODUCED)])
def test_operations(power, verdict, tmp_path):
    columns = 'sweep|nodes|walks|softmax|linear|GRF, features|GRF, features / linear'
    rows = [('nodes', n, 4, 9 * n**2, 10 * n, 30 * n**power, 3) for n in (2, 4, 8)]
    rows += [('walks', 64, n, 1, 1, n**power, 1) for n in (1, 8)]
    # One size at which masked attention takes fewer operations than softmax attention, at any power.
    rows.insert(0, ('nodes', 1, 4, 31, 10, 30, 3))
    write(tmp_path, 'flops', table(columns, *rows))
    assert decide(tmp_path, 'Fig. 7', 'flops')[0] == verdict
    assert decide(tmp_path, 'Fig. 3', 'flops')[0] == verdict


@pytest.mark.parametrize(('slope', 'verdicts'), [(1.1, [REPRODUCED] * 3), (1.4, [TREND] * 3), (2.1, [NOT_REPRODUCED] * 3)])
def test_structured_masks(slope, verdicts, tmp_path):
    rows = [('path', 1000, 'fft', 'fft', ''), ('path', 4000, 'fft', 'fft', slope), ('path', 4000, 'rings', 'fft', 9.9)]
    write(tmp_path, 'tree_distance', table('tree|nodes|method|auto|slope', *rows))
    rows = [(1000, 'TreeMask', 9.0, ''), (1_000_000, 'TreeMask', 12, slope), (1_000_000, 'prepare', 200, 1.0)]
    rows += [(1_000_000, 'one sparse product', 1.0, 0.9)]
    write(tmp_path, 'tree', table('nodes|method|time / baseline|slope', *rows))
    rows = [(f'{side}x{side}', side - 1, 1, 17, side ** (2 * slope), 2.0, 1.5) for side in (32, 64, 128, 256, 512)]
    rows += [('64x64', 4, 1, 17, 0.1, 40.0, 0.4), ('64x65', 64, 1, 17, 0.1, 30.0, 0.4), ('64x64', 63, 4, 17, 0.1, 20.0, 0.4)]
    write(tmp_path, 'toeplitz', table('grid|window|heads|columns|ms|dense / ours|ours / two FFTs', *rows))
    places = [('Lemma 6.2', 'tree_distance'), ('Lemma 3.5', 'tree'), ('Sec. 3.2', 'toeplitz')]
    assert [decide(tmp_path, *place) for place in places] == [(verdict, f'exponent {slope}') for verdict in verdicts]


RECOMMEND = 'data|model|Recall|Recall of unpopular items|seeds|paper, Recall'


@pytest.mark.parametrize(
    ('score', 'seeds', 'verdicts'),
    [
        ('0.300 ± 0.001', '0.299 0.301', [TREND, TREND, TREND]),
        ('0.200 ± 0.001', '0.200 0.199', [NOT_REPRODUCED, UNDECIDED, NOT_REPRODUCED]),
    ],
)
def test_recommend(score, seeds, verdicts, tmp_path):
    rows = [('beauty', name, '0.200 ± 0.001', '0.200 ± 0.001', '0.199 0.201', 0.1) for name in ('LightGCN', 'DirectAU')]
    rows += [
        ('beauty', 'MGFormer', score, score, seeds, 0.1531),
        ('beauty', 'MGFormer without SVD', '0.200 ± 0.001', '', '0.199 0.201', 0.1),
    ]
    write(tmp_path, 'recommend', table(RECOMMEND, *rows))
    places = [('Table 2', 'baselines'), ('Fig. 2', ''), ('Table 3', '')]
    assert [decide(tmp_path, where, 'recommend', statement)[0] for where, statement in places] == verdicts


@pytest.mark.parametrize(('ratio', 'verdict'), [(2.4, TREND), (8, TREND), (37, UNDECIDED)])
def test_recommend_speed(ratio, verdict, tmp_path):
    write(tmp_path, 'recommend_speed', table('model|times DirectAU', ('MGFormer', ratio)))
    assert decide(tmp_path, 'Sec. 4.2', 'recommend_speed')[0] == verdict


@pytest.mark.parametrize(('gap', 'verdict'), [(BETTER, TREND), (UNCLEAR, UNDECIDED), ('-0.200 ± 0.001', NOT_REPRODUCED)])
def test_video(gap, verdict, tmp_path):
    rows = [(name, '0.300 ± 0.010', gap) for name in ('softmax', 'softmax + GRF')]
    write(tmp_path, 'video', table('attention|test accuracy|minus softmax, paired by seed', *rows))
    assert decide(tmp_path, 'Table 4', 'video')[0] == verdict
