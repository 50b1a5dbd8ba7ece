r"""The README's section on results, from the claims and tables that the report is made of."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.report.claims import MEASURED, NOT_REPRODUCED, NOT_RUN, REPRODUCED, TREND, Section
from benchmarks.report.document import SECTIONS, count_verdicts
from benchmarks.report.package import beside, faster_features, faster_heat, growth, saved_memory
from benchmarks.report.tables import Missing, Table, span, times

__all__ = ['END', 'HEADLINES', 'START', 'Headline', 'insert', 'render_results']

START, END = '<!-- results: begin -->', '<!-- results: end -->'
LINKS = 'benchmarks/results'
SCALING, INSIDE = 'scaling.png', 'kmip_inside_attention-0.png'
# Folders of tables, within that of all: the second holds some of another machine, or of another day.
FOLDERS = ('', 'epyc')


@dataclass(frozen=True)
class Headline:
    r"""A row of the table of headlines: what was measured, against what, the table, and the ratio that it gives."""

    what: str
    against: str
    table: str
    ratio: Callable[[Table], str]


def _both(found: list[float]) -> str:
    return f'{times(found[0])} (ring), {times(found[1])} (random)'


def _faster_dense(table: Table) -> str:
    return f'{_both([1 / ratio for ratio in beside(table, "dense masked", 16_000)])} times as fast'


def _faster_alone(table: Table) -> str:
    return f'{_both([1 / ratio for ratio in beside(table, "dense alone", 16_000, method="GRF alone")])} times as fast'


def _kmip(table: Table) -> str:
    row = table.where({'nodes': 31_623, 'method': 'k-MIP, auto'})
    full = table.number('training MB', {'nodes': 31_623, 'method': 'full attention (SDPA)'})
    inference, training = (row.numbers(f'{kind} speed-up')[0] for kind in ('inference', 'training'))
    return (
        f'{times(inference)} (inference), {times(training)} (training) times as fast, '
        f'{times(row.numbers("training MB")[0] / full)} times the memory'
    )


def _rwgnk(table: Table) -> str:
    own = table.where({'nodes': 19_717}).keep(lambda row: row['layer'].startswith('RWGNK'))
    return (
        f'{span(own.numbers("speed-up over dense-masked GAT"))} times as fast, '
        f'{span(own.numbers("memory / dense-masked GAT"))} of the memory'
    )


def _asymmetric(table: Table) -> str:
    own = table.where({'method': 'AsymmetricGRFAttention'})
    forward, training = (span(own.numbers(f'{kind} / GATConv')) for kind in ('forward', 'training'))
    return f'{forward} (forward), {training} (training) times its time'


def _grid(table: Table) -> list[float]:
    return table.where({'grid': '64x64'}).numbers('dense / ours')


def _tree(table: Table) -> str:
    own, preparing = (table.where({'nodes': 1_000_000, 'method': method}) for method in ('TreeMask', 'prepare'))
    column = 'time / baseline'
    return f'{span(own.numbers(column))} times its time; once for a tree {span(preparing.numbers(column))} times to prepare'


def _steps(table: Table) -> str:
    own = table.where({'method': 'walks, Numba'})
    column = 'speed / torch_sparse'
    large, small = own.keep(lambda row: int(row['nodes']) >= 200_000), own.keep(lambda row: int(row['nodes']) < 200_000)
    return f'{span(large.numbers(column))} times as many steps ({span(small.numbers(column))} from fewer nodes)'


def _search(table: Table) -> str:
    row = {'graphs': 1, 'nodes per graph': 31_623, 'method': 'auto'}
    keops, faiss = (table.number(f'{name} alone / it', row) for name in ('KeOps argKmin', 'faiss'))
    return f'{times(keops)} times as fast as KeOps, {times(faiss)} as faiss'


HEADLINES = (
    Headline(
        'GRF attention, growth of the time per node from 10,000 to 1,000,000 nodes',
        'one CSR sparse product',
        'scaling',
        lambda table: f'{_both(growth(table))} times its growth',
    ),
    Headline('GRF attention, forward, 16,000 nodes', 'the same with a dense mask', 'scaling', _faster_dense),
    Headline(
        'GRF attention without its four projections, forward, 16,000 nodes',
        'the same with a dense mask',
        'scaling',
        _faster_alone,
    ),
    Headline(
        'GRF attention, forward, 100,000 nodes',
        '`PerformerAttention`, which has no mask',
        'scaling',
        lambda table: f'{_both(beside(table, "PerformerAttention", 100_000))} times its time',
    ),
    Headline(
        'GRF attention, forward, 100,000 nodes',
        '`GATConv`, which sees neighbours alone',
        'scaling',
        lambda table: f'{_both(beside(table, "GATConv", 100_000))} times its time',
    ),
    Headline(
        'Masked combine step, 64 features, training',
        'the same left to autograd',
        'memory',
        lambda table: f'{_routes(saved_memory(table))} times less memory',
    ),
    Headline('Asymmetric GRF attention', '`GATConv` with as many neighbours', 'asymmetric', _asymmetric),
    Headline('Random walks with loads, from 200,000 nodes', '`torch_sparse.random_walk`, no loads', 'sampler', _steps),
    Headline(
        'Graph random features',
        'fast-graph-gp',
        'grf_features',
        lambda table: f'{span(faster_features(table, "numba") + faster_features(table, "torch"))} times as fast',
    ),
    Headline('Toeplitz mask, 64x64 grid', 'the dense mask', 'toeplitz', lambda table: f'{span(_grid(table))} times as fast'),
    Headline('Tree mask exp(a dist + b), 1,000,000 nodes', 'one sparse product', 'tree', _tree),
    Headline(
        'Heat kernel, asked for 1e-8',
        "SciPy's `expm_multiply`, to 1e-16",
        'heat',
        lambda table: f'{span(faster_heat(table))} times as fast, errors up to {max(table.numbers("error")):.0e}',
    ),
    Headline('RWGNK attention, training, size of PubMed', 'GAT with a dense mask', 'gkat_speed', _rwgnk),
    Headline('k-MIP attention, 31,623 nodes', '`scaled_dot_product_attention`', 'kmip_efficiency', _kmip),
    Headline('Exact top-k search, 31,623 nodes', 'KeOps `argKmin`; faiss', 'topk_search', _search),
)


def _processor(path: Path) -> str:
    r"""The processor that a table in Markdown names."""
    lines = path.read_text().splitlines() if path.is_file() else []
    named = next((line for line in lines if line.startswith('Machine: ')), 'Machine: ?')
    return ' '.join(named.removeprefix('Machine: ').split(',')[0].replace('(R)', '').removesuffix('Processor').split())


def _routes(saved: dict[str, float]) -> str:
    return ', '.join(f'{times(value)} ({name})' for name, value in saved.items())


def render_results(folder: Path) -> str:
    r"""Returns the text between the markers of the README, in Markdown."""
    papers = count_verdicts(SECTIONS[:-1], folder)
    introduction = (
        f'Every number is computed by `python -m benchmarks report` from a table in [{LINKS}]({LINKS}), written by `python -m '
        f'benchmarks --full` on a 2-core CPU (`python -m benchmarks` is a smoke run); ratios are within one run, and a second '
        f'row is of another machine or day, between which ratios to dense products differ most. Of the '
        f'statements of four papers {papers[REPRODUCED]} are reproduced, {papers[TREND]} as a trend, {papers[NOT_REPRODUCED]} '
        f'not, and {papers[NOT_RUN]} were not run; the '
        f'[report]({LINKS}/REPORT.md) has all.'
    )
    lines = [_wrap(introduction), '', '| what | against | ratio | processor | table |', '| --- | --- | --- | --- | --- |']
    for row in HEADLINES:
        for own in FOLDERS:
            try:
                ratio = row.ratio(Table.read(folder / own, row.table))
            except Missing:
                continue
            processor = _processor(folder / own / f'{row.table}.md')
            lines.append(f'| {row.what} | {row.against} | {ratio} | {processor} | {_link(row.table, own)} |')
    if (folder / SCALING).is_file():
        lines += ['', f'![time and memory per node]({LINKS}/{SCALING})']
    lines += ['', 'Of what the papers state, a selection, and what is seen here (± standard errors):']
    for section in SECTIONS[:-1]:
        lines += ['', f'*{section.heading.partition(":")[0]}*', '', *_bullets(section, folder)]
    if (folder / INSIDE).is_file():
        lines += ['', f'![what a k-MIP-GT attends to]({LINKS}/{INSIDE})']
    lines += ['', f'*{SECTIONS[-1].heading}*', '', *_bullets(SECTIONS[-1], folder)]
    return '\n'.join(lines)


def insert(readme: str, results: str) -> str:
    r"""Replaces what stands between the markers of a README.

    Raises:
        ValueError: If it does not have both markers, once each and in order.
    """
    if readme.count(START) != 1 or readme.count(END) != 1 or readme.index(START) > readme.index(END):
        raise ValueError(f'readme: lacks {START!r} before {END!r}; accepted is a text with each once')
    before, _, rest = readme.partition(START)
    return f'{before}{START}\n{results}\n{END}{rest.partition(END)[2]}'


def _bullets(section: Section, folder: Path) -> list[str]:
    lines, absent = [], []
    for claim in section.claims:
        found = claim.decide(folder)
        if claim.title and found.verdict == NOT_RUN:
            absent.append(claim.title)
        elif claim.title:
            verdict = '' if found.verdict == MEASURED else f', {found.verdict}'
            lines.append(f'- **{claim.title}**{verdict}: {found.sentence} ({_link(claim.table)})')
    lines += [f'- Not run: {"; ".join(absent)}.'] if absent else []
    return [_wrap(line) for line in lines]


def _wrap(text: str) -> str:
    return textwrap.fill(text, 135, subsequent_indent='  ' * text.startswith('- '), break_on_hyphens=False)


def _link(table: str, machine: str = '') -> str:
    return f'[{table}]({Path(LINKS, machine, table).as_posix()}.md)'
