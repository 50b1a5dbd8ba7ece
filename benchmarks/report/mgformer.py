r"""The claims of Chen et al. on MGFormer."""

from __future__ import annotations

from benchmarks.report.claims import Finding, Paper, accuracy
from benchmarks.report.effects import compare
from benchmarks.report.rules import trend
from benchmarks.report.tables import Table, form

__all__ = ['PAPER']

PAPER = Paper(
    'Chen et al., SIGIR 2024: Masked graph Transformer for large-scale recommendation (MGFormer)',
    'https://doi.org/10.1145/3626772.3657971',
)
GRAPH_NETWORKS = ['LightGCN', 'SGL', 'SimGCL', 'DirectAU']


def _above(recommend: Table, models: Table, column: str, statement: str) -> Finding:
    r"""Judges whether MGFormer is above some models on all data sets."""
    comparisons = []
    for data in models.distinct('data'):
        ours = recommend.row(data=data, model='MGFormer')
        for row in models(data=data):
            gap = ours.minus_by_seed(row) if column == 'Recall' else ours[column] - row[column]
            # The paper's effects are those on Beauty, on all of its items.
            at = None if data == 'beauty' and column == 'Recall' else row[column]
            comparisons.append(compare(statement, f'{data}, {row["model"]}', gap, row, at))
    return accuracy(comparisons)


@PAPER.claim(
    'Table 2',
    'MGFormer is above its baselines (Recall@20)',
    differs="GOTNet and GFormer missing; LastFM not the paper's; Beauty split anew, 32 channels, 30 epochs",
    why='training on Beauty probably too short; on LastFM not known',
)
def above_baselines(recommend: Table) -> Finding:
    return _above(recommend, recommend(model=['BPR-MF', *GRAPH_NETWORKS]), 'Recall', 'MGFormer Table 2')


PAPER.not_run('Table 2', 'The same holds on Yelp-2018 and Alibaba', 'above all', 'data not available')


@PAPER.claim(
    'Fig. 2',
    'MGFormer is above graph networks on unpopular items',
    differs="LastFM not the paper's; Beauty split anew, 32 channels, 30 epochs",
)
def on_unpopular_items(recommend: Table) -> Finding:
    return _above(recommend, recommend(model=GRAPH_NETWORKS), 'Recall of unpopular items', 'MGFormer Fig. 2')


@PAPER.claim(
    'Table 3',
    'MGFormer is worse without any of its components',
    differs="LastFM alone, not the paper's; input added to the output, unlike in Eq. 12; variants not tuned",
)
def components(recommend: Table) -> Finding:
    return _above(recommend, recommend(model='MGFormer?*')(model='!*residual*'), 'Recall', 'MGFormer Table 3')


@PAPER.claim(
    'Sec. 4.2',
    'An epoch takes 2.4 times as long as one of DirectAU',
    theirs='2.4 times',
    differs='on a CPU; time of a step by the steps of an epoch',
)
def time_of_an_epoch(recommend_speed: Table) -> Finding:
    ratio = recommend_speed.cell('times DirectAU', model='MGFormer')
    return Finding(trend(ratio < 10, comparable=False), f'{form(ratio)} times')
