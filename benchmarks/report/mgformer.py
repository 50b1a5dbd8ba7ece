r"""What Chen et al. (SIGIR 2024) state, and what the tables show of it."""

from __future__ import annotations

from benchmarks.report.claims import Claim, Finding, Section, judge_gaps, judge_holds, not_run
from benchmarks.report.tables import Estimate, Missing, Table, times

__all__ = ['MGFORMER']

OURS, REFERENCE, PAIRED = 'MGFormer', 'DirectAU', 'Recall minus DirectAU, paired by seed'
BASELINES = ('BPR-MF', 'LightGCN', 'SGL', 'SimGCL', REFERENCE)
GRAPH_NETWORKS = ('LightGCN', 'SGL', 'SimGCL', REFERENCE)


def _gaps(table: Table, column: str, others: tuple[str, ...]) -> dict[tuple[str, str], Estimate]:
    r"""MGFormer minus other models, by data set and model; paired by seed where the table has it so."""
    return {
        (data, name): _gap(table, column, data, name)
        for data in table.distinct('data')
        for name in others
        if name in table.where({'data': data}).column('model')
    }


def _gap(table: Table, column: str, data: str, name: str) -> Estimate:
    own, other = {'data': data, 'model': OURS}, {'data': data, 'model': name}
    if (column, name) == ('Recall', REFERENCE):
        return table.estimate(PAIRED, own)
    return table.estimate(column, own).minus(table.estimate(column, other))


def _describe(table: Table, column: str, others: tuple[str, ...]) -> str:
    r"""MGFormer and other models, and what these are beside it, by data set."""
    sentences = []
    for data in table.distinct('data'):
        own = table.estimate(column, {'data': data, 'model': OURS})
        parts = [f'{data}: {OURS} {_show(own)}']
        for name in others:
            if name in table.where({'data': data}).column('model'):
                other = table.estimate(column, {'data': data, 'model': name})
                parts.append(f'{name} {_show(other)} ({(-_gap(table, column, data, name)).verdict})')
        if len(parts) > 1:
            sentences.append(', '.join(parts))
    return '; '.join(sentences)


def _show(value: Estimate) -> str:
    return f'{value.mean:.4f} ± {value.error:.4f}'


def _best(table: Table) -> Finding:
    gaps = _gaps(table, 'Recall', BASELINES)
    return Finding(judge_gaps(list(gaps.values())), f'Recall@20, {_describe(table, "Recall", BASELINES)}.')


def _beauty(table: Table) -> Finding:
    parts = [
        f'{row["model"]} {row["Recall"]} (the paper: {row["paper, Recall"]})'
        for row in table.where({'data': 'beauty'}).rows
        if row['paper, Recall'] and row['model'] in (*BASELINES, OURS)
    ]
    gap = table.estimate(PAIRED, {'data': 'beauty', 'model': OURS})
    return Finding(judge_gaps([gap], same_data=True), f'Recall@20 on Beauty: {", ".join(parts)}.')


def _unpopular(table: Table) -> Finding:
    column = 'Recall of unpopular items'
    gaps = _gaps(table, column, GRAPH_NETWORKS)
    return Finding(judge_gaps(list(gaps.values())), f'{column}, {_describe(table, column, GRAPH_NETWORKS)}.')


def _ablations(table: Table) -> Finding:
    names = [
        name for name in table.distinct('model') if name.startswith('MGFormer') and name != OURS and 'residual' not in name
    ]
    gaps = _gaps(table, 'Recall', tuple(names))
    if not gaps:
        raise Missing(f'{table.name}: no ablations')
    return Finding(judge_gaps(list(gaps.values())), f'Recall@20, {_describe(table, "Recall", tuple(names))}.')


def _seconds(table: Table) -> Finding:
    ratio = table.number('times DirectAU', {'model': OURS})
    return Finding(
        judge_holds(ratio <= 8.7 / 3.6 / 0.8, partly=ratio < 10),
        f'An epoch of MGFormer takes {times(ratio)} times as long as one of DirectAU (the paper: {times(8.7 / 3.6)}).',
    )


MGFORMER = Section(
    'Chen et al., SIGIR 2024: Masked graph Transformer for large-scale recommendation (MGFormer)',
    'https://doi.org/10.1145/3626772.3657971',
    [
        Claim(
            'Table 2',
            'MGFormer is above its baselines',
            'recommend',
            _best,
            'Recommendation',
            differs='no GOTNet or GFormer; LastFM is not theirs; Beauty with 32 channels, 30 epochs',
            reason='probably too short on Beauty; on LastFM it is not known',
        ),
        Claim(
            'Table 2, Beauty',
            'MGFormer has a Recall@20 of 0.1531, DirectAU 0.1465',
            'recommend',
            _beauty,
            differs='another random split; 32 channels; all runs cut at 30 epochs',
            reason='probably too short for MGFormer',
        ),
        Claim(
            'Table 2',
            'The same on Yelp-2018 and Alibaba',
            '',
            not_run('They are not at hand; a sparser Yelp and Gowalla, which are, take hours on a CPU.'),
        ),
        Claim(
            'Fig. 2',
            'It is above graph networks on unpopular items',
            'recommend',
            _unpopular,
            'Unpopular items',
            differs='Beauty with 32 channels, all runs cut at 30 epochs',
            reason='why is not known',
        ),
        Claim(
            'Table 3',
            'Without any of its parts it is worse',
            'recommend',
            _ablations,
            'Parts of MGFormer',
            differs='LastFM alone; the input is added to the output, unlike Eq. 12',
            reason='why is not known',
        ),
        Claim(
            'Sec. 4.2', 'An epoch takes 2.4 times as long as one of DirectAU', 'recommend_speed', _seconds, 'MGFormer, speed'
        ),
    ],
)
