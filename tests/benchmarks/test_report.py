"""The report and the page on results: what the tables say, by rules that can say no."""

import csv
import itertools
import re
import shutil
from pathlib import Path

import pytest
from report_tables import BETTER, WORSE, claims, table, write

from benchmarks import runner
from benchmarks.harness import verdict as verdict_of
from benchmarks.registry import BENCHMARKS
from benchmarks.report import PAGE, RESULTS
from benchmarks.report.document import CHAPTERS, MARKERS, read_chapter, render_report, render_results
from benchmarks.report.effects import EFFECTS, Effect, compare
from benchmarks.report.rules import (
    MEASURED,
    NOT_REPRODUCED,
    NOT_RUN,
    REPRODUCED,
    TREND,
    UNDECIDED,
    holds,
    trend,
)
from benchmarks.report.tables import Estimate, Missing, Table, each, form
from benchmarks.report.templates import ReportError, Results
from pyg_topomask.apps.runs.compare import mean_error

CLAIMS = [(path, claim) for path in CHAPTERS for claim in read_chapter(path, Results(RESULTS)).claims]


def chapter(tmp_path: Path, body: str, link: str = '<https://example.org>') -> Path:
    """A file of claims with one claim, whose body begins in line 6."""
    path = tmp_path / 'paper.md'
    path.write_text(f'# Paper\n\n{link}\n\n## Fig. 1: Heat rises\n{body}\n')
    return path


# --- What lies in the repository


def test_page_and_report_are_those_of_the_tables():
    assert PAGE.read_text() == render_results(RESULTS, PAGE.read_text())
    assert (RESULTS / 'REPORT.md').read_text() == render_report(RESULTS)


def test_every_benchmark_can_be_loaded():
    for benchmark in BENCHMARKS.values():
        assert f'def {benchmark.function}(quick: bool, folder: Path)' in (
            (Path(runner.__file__).parent / f'{benchmark.module}.py').read_text()
        )


def test_every_table_is_used():
    used = {name for _, claim in CLAIMS for name in claim.tables}
    assert used == {name for benchmark in BENCHMARKS.values() for name in benchmark.tables} - {'recommend_tuning'}


@pytest.mark.parametrize('page', [PAGE, RESULTS / 'REPORT.md'], ids=lambda path: path.name)
def test_links_lead_somewhere(page):
    targets = re.findall(r'\]\(([^)#\s]+)\)', page.read_text())
    assert targets
    assert [target for target in targets if '://' not in target and not (page.parent / target).exists()] == []


def test_what_is_not_reproduced_says_what_differs_and_why():
    for _, claim in CLAIMS:
        differs = re.search(r'^Differs: (.*)$', claim.text, re.MULTILINE)
        why = re.search(r'^Why: (.*)$', claim.text, re.MULTILINE)
        assert differs or claim.verdict not in (TREND, NOT_REPRODUCED, UNDECIDED), claim.heading
        assert why or claim.verdict != NOT_REPRODUCED, claim.heading
        assert not why or 'probably' in why[1] or 'not known' in why[1], claim.heading


def test_claims_of_papers_have_computed_verdicts():
    papers, ours = CHAPTERS[:-2], CHAPTERS[-2:]
    for path in papers:
        for section in path.read_text().split('\n## ')[1:]:
            (verdict,) = re.findall(r'^Verdict: (.*)$', section, re.MULTILINE)
            assert verdict.startswith('{{ ') or verdict in ('not run here', 'measured'), section
    assert all('Verdict:' not in path.read_text() for path in ours)


def test_no_claim_lacks_its_results():
    needs_gpu = {table for benchmark in BENCHMARKS.values() if benchmark.needs_gpu for table in benchmark.tables}
    lacking = [claim for _, claim in CLAIMS if 'The results are missing' in claim.text]
    assert [claim.heading for claim in lacking if not needs_gpu.issuperset(claim.tables)] == []


# --- Effects of the papers


def test_every_statement_on_accuracy_has_an_effect_and_its_source():
    accuracy = {
        'motifs',
        'gkat_depth',
        'gkat_equal_time',
        'gkat_walk_length',
        'tu',
        'citation',
        'images',
        'video',
        'interlacer',
    }
    accuracy |= {'recommend', 'kmip_accuracy', 'kmip_full_size', 'kmip_peptides', 'kmip_all_peptides', 'kmip_objects'}
    accuracy.add('kmip_influence')
    judged = [claim for path, claim in CLAIMS if path in CHAPTERS[:-2] and claim.verdict not in (MEASURED, NOT_RUN)]
    claims = [claim for claim in judged if accuracy.intersection(claim.tables) and not claim.heading.startswith('Sec. 4.4')]
    assert [claim.heading for claim in claims] == [claim.heading for claim in judged if claim.compared]
    used = {one.printed for claim in claims for one in claim.compared}
    assert set(EFFECTS) == used - {None}
    assert all(effect.source for effect in EFFECTS)
    # These figures print curves.
    without = [claim.heading for claim in claims if not any(one.known for one in claim.compared)]
    assert [heading[:6] for heading in without] == ['Fig. 6', 'Fig. 7', 'Fig. 7', 'Fig. 6', 'Fig. 4', 'Fig. 2']
    assert all(one.runs >= 2 for claim in claims for one in claim.compared)
    for claim in claims:
        assert all(one.effect > 0 or one.printed is None for one in claim.compared) or claim.heading in without
        assert ('To decide: ' in claim.text) == (claim.verdict == UNDECIDED)


@pytest.mark.parametrize(
    ('statement', 'name', 'column', 'unit'),
    [
        ('GKAT Table 4', 'gkat_equal_time', 'paper', 1),
        ('GKAT Table 10', 'citation', 'paper, %', 100),
        ('GRF Table 1', 'images', 'paper', 1),
        ('GRF App. C.2', 'images', 'paper', 1),
        ('GRF Table 3', 'images', 'paper', 1),
        ('GRF Table 4', 'video', 'paper (Kinetics 400)', 1),
        ('k-MIP Table 6.1', 'kmip_accuracy', 'thesis', 100),
        ('k-MIP Peptides-func', 'kmip_peptides', 'thesis', 100),
        ('k-MIP ModelNet10', 'kmip_objects', 'thesis', 100),
    ],
)
def test_effects_are_those_that_the_tables_show(statement, name, column, unit):
    printed = [getattr(cell, 'mean', cell) / unit for cell in Table(RESULTS, name).column(column)]
    effects = [value for effect in EFFECTS if effect.statement == statement for value in (effect.higher, effect.lower)]
    assert effects
    assert all(any(value == pytest.approx(other) for other in printed) for value in effects)


def test_effects_keep_their_odds_ratio_on_other_data():
    effect = Effect('', '', 0.8, 0.5, '')
    odds = [(accuracy + effect.at(accuracy)) / (1 - accuracy - effect.at(accuracy)) for accuracy in (0.5, 0.9)]
    assert odds == pytest.approx([4, 36])


def test_a_statement_without_effects_is_missing(tmp_path):
    write(tmp_path, 'heat', table('gap, paired', (BETTER,)))
    (row,) = Table(tmp_path, 'heat')
    with pytest.raises(Missing, match="no statement 'Table 9'"):
        compare('Table 9', 'GCN', row['gap, paired'], row)


def test_an_undecided_statement_says_what_it_takes(tmp_path):
    write(tmp_path, 'heat', table('gap, paired|seeds', ('+0.001 ± 0.002', '0.1 0.2 0.3')))
    body = """{% do compared.append(compare('GRF Table 4', 'masks', heat.cell('gap, paired'), heat.row())) %}
Verdict: {{ agree(compared) }}

Differs: Size.

Why: Probably luck."""
    (claim,) = read_chapter(chapter(tmp_path, body), Results(tmp_path)).claims
    assert claim.verdict == UNDECIDED
    assert claim.differs == 'Size.'
    assert 'luck' not in claim.text
    assert "a decision needs up to 48 runs instead of 3 (masks). The alternative is the paper's scale" in claim.text
    assert claim.text.endswith('| masks | 0.004 | 0.004 | +0.001 ± 0.002 | 0.004 | 3 | open | Table 4 |')


def test_shapes():
    assert [holds(True), holds(False, partly=True), holds(False)] == [REPRODUCED, TREND, NOT_REPRODUCED]
    assert [trend(True), trend(False)] == [TREND, NOT_REPRODUCED]
    assert [trend(True, comparable=False), trend(False, comparable=False)] == [TREND, UNDECIDED]


def test_two_standard_errors_are_the_border():
    verdicts = [Estimate(mean, 0.01).verdict for mean in (0.0201, 0.0199, -0.0201)]
    assert verdicts == ['better', 'not distinguishable', 'worse']
    assert Estimate(3.0, 3.0) - Estimate(1.0, 4.0) == Estimate(2.0, 5.0)


@pytest.mark.parametrize('graphs', [149, 150, 151, 349])
def test_two_standard_errors_exactly_are_a_difference(graphs):
    # Two seeds of three with one or two graphs more: t is 2 exactly, and rounds to either side.
    for base in itertools.product(range(graphs - 5, graphs), repeat=3):
        for more in (1, 2):
            gaps = [(count + extra) / graphs - count / graphs for count, extra in zip(base, (0, more, more), strict=True)]
            assert verdict_of(*mean_error(gaps)) == 'better'


# --- Tables


def test_differences_are_paired_by_seed(tmp_path):
    write(tmp_path, 'made', table('model|seeds', ('GCN', '0.1 0.2 0.6'), ('GIN', '0.0 0.2 0.4')))
    first, second = Table(tmp_path, 'made')
    gap = first.minus_by_seed(second)
    assert gap.mean == pytest.approx(0.1)
    assert gap.error == pytest.approx(0.1 / 3**0.5)


def test_rows_list_the_values_of_seeds_or_folds(tmp_path):
    write(
        tmp_path,
        'made',
        table('data|seeds|folds', ('DD', '0.1 0.2', ''), ('DD', '', '0.3 0.4 0.5'), ('DD', 0.6, ''), ('x', '', '')),
    )
    assert [row.values for row in Table(tmp_path, 'made')] == [[0.1, 0.2], [0.3, 0.4, 0.5], [0.6], []]


def test_what_a_table_knows_of_a_difference_stands_above_its_rounded_figures(tmp_path):
    rows = table('model|minus GAT, paired|verdict', ('GCN', '+0.016 ± 0.008', 'not distinguishable'), ('GIN', WORSE, 'worse'))
    write(tmp_path, 'made', rows)
    unclear, worse = Table(tmp_path, 'made').column('minus GAT, paired')
    assert [unclear.verdict, (-unclear).verdict] == ['not distinguishable'] * 2
    assert [worse.verdict, (-worse).verdict] == ['worse', 'better']


@pytest.fixture
def made(tmp_path):
    rows = [
        ('x', 1000, '1.5', 'ring'),
        ('y', 200, 'nan', 'ring'),
        ('z', 200, '', ''),
        ('x y', 30, '-1.2 ± 2.6: unclear', 'tree'),
    ]
    write(tmp_path, 'made', table('name|nodes each|b, paired|kind', *rows))
    return Table(tmp_path, 'made')


def test_cells_are_numbers_estimates_and_texts(made):
    assert made.cell('b, paired', name='x') == 1.5
    assert made.cell('b, paired', name='x y') == Estimate(-1.2, 2.6)
    assert made.column('b, paired') == [1.5, Estimate(-1.2, 2.6)]
    assert made.distinct('nodes each') == [1000, 200, 30]
    assert each(made(name='x*'), '{name}: {nodes each:,}, {b, paired:.2f}', '; ') == 'x: 1,000, 1.50; x y: 30, -1.20 ± 2.60'


@pytest.mark.parametrize(
    ('wanted', 'names'),
    [
        ({'name': 'x'}, ['x']),
        ({'name': 'x*'}, ['x', 'x y']),
        ({'name': '!x*'}, ['y', 'z']),
        ({'name': ['y', 'z'], 'kind': 'ring'}, ['y']),
        ({'nodes_each': '<200'}, ['x y']),
        ({'nodes_each': '>=200'}, ['x', 'y', 'z']),
        ({'nodes_each': 200, 'kind': '?*'}, ['y']),
        ({'b_paired': '?*'}, ['x', 'x y']),
    ],
)
def test_rows_match(made, wanted, names):
    assert made(**wanted).column('name') == names


def test_what_does_not_exist_is_missing(made, tmp_path):
    for refer, words in (
        (lambda: made(name='w'), "no row with {'name': 'w'}"),
        (lambda: made(nane='!x'), "no column 'nane'"),
        (lambda: made.cell('c', name='x'), "no 'c' in the row x, 1000"),
        (lambda: made.cell('b, paired', name='y'), "no 'b, paired' in the row y"),
        (lambda: made.row(nodes_each=200), '2 rows'),
        (lambda: Table(tmp_path, 'other').rows, 'no table other'),
    ):
        with pytest.raises(Missing, match=re.escape(words)):
            refer()


def test_ratios_have_two_digits_or_more():
    assert [form(value) for value in (153.6, 45.29, 9.03, 0.8654, 0.0088)] == ['154', '45', '9.0', '0.87', '0.0088']
    assert form([2, 1, 12.4]) == '1.0 to 12'
    assert form([0.9, 0.9]) == '0.9'


# --- Templates


@pytest.mark.parametrize(
    ('body', 'words'),
    [
        ("Verdict: {{ holds(true) }}\n\n{{ heat.cell('tme') }}", "line 8: {{ heat.cell('tme') }}: table heat has no 'tme'"),
        ("Verdict: {{ holds(heat.cell('time', graph='tree') > 2) }}\n", "> 2) }}: table heat has no row with"),
        ('Verdict: {{ holds(hat.rows) }}\n', "line 6: Verdict: {{ holds(hat.rows) }}: 'hat' is undefined"),
        ('Verdict: {{ holds(true }}\n', 'line 6: Verdict: {{ holds(true }}: '),
        ('Verdict: certain\n', "line 5: ## Fig. 1: Heat rises: got the verdict 'certain'; accepted: reproduced"),
        ("Verdict: {{ trend(toeplitz.cell('ms') > 1) }}\n", 'there is no table toeplitz'),
    ],
)  # fmt: skip
def test_a_wrong_reference_names_file_line_and_itself(body, words, tmp_path):
    write(tmp_path, 'heat', table('graph|time', ('ring', 2.0)))
    with pytest.raises(ReportError, match=re.escape(words)) as raised:
        read_chapter(chapter(tmp_path, body), Results(tmp_path))
    assert str(raised.value).startswith('paper.md, line ')


def test_a_wrong_reference_in_a_shared_sentence_names_its_own_file(tmp_path):
    with pytest.raises(ReportError, match=r'words\.md, line \d+: .*there is no table memory'):
        read_chapter(chapter(tmp_path, "{{ words.saved(memory, 'edges', 64) }}"), Results(tmp_path))


def test_only_a_claim_that_says_so_may_be_missing(tmp_path):
    body = "Verdict: {{ trend(toeplitz.cell('ms') > 1) }}\n\nSlow.\n\n"
    (claim,) = read_chapter(chapter(tmp_path, f'{body}If missing: not run here\n'), Results(tmp_path)).claims
    assert claim.verdict == NOT_RUN
    assert claim.text == (
        '**Not run here**\n\nThe results are missing: there is no table toeplitz. Run `python -m benchmarks --full toeplitz`.'
    )
    with pytest.raises(ReportError, match='there is no table toeplitz'):
        read_chapter(chapter(tmp_path, body), Results(tmp_path))
    (claim,) = read_chapter(chapter(tmp_path, body), Results(tmp_path), may_lack_tables=True).claims
    assert claim.verdict == NOT_RUN


@pytest.mark.parametrize(
    ('verdict', 'shown'), [('holds(false)', True), ('holds(false, partly=true)', True), ('holds(true)', False)]
)
def test_why_stands_at_what_is_not_reproduced(verdict, shown, tmp_path):
    path = chapter(tmp_path, f'\nVerdict: {{{{ {verdict} }}}}\n\nSo\nit is.\n\nDiffers: Size.\n\nWhy: Probably luck.\n')
    (claim,) = read_chapter(path, Results(tmp_path)).claims
    assert claim.heading == 'Fig. 1: Heat rises'
    assert claim.text.endswith(
        '\n\nSo it is.\n\nDiffers: Size.\n\nWhy: Probably luck.' if shown else '\n\nSo it is.\n\nDiffers: Size.'
    )


# --- The texts


def test_without_tables_nothing_was_run(tmp_path):
    for claim, (_, ours) in zip(claims(tmp_path), CLAIMS, strict=True):
        assert claim.verdict == NOT_RUN or not claim.tables
        assert claim.tables == ours.tables
        assert 'Run `python -m benchmarks --full ' in claim.text or not claim.tables


@pytest.mark.parametrize('rows', [1, 2, 7])
def test_a_smoke_run_of_few_rows_is_reported(rows, tmp_path):
    for path in RESULTS.glob('*.csv'):
        with path.open(newline='') as file:
            write(tmp_path, path.stem, list(itertools.islice(csv.DictReader(file), rows)))
        if path.with_suffix('.md').is_file():
            shutil.copy(path.with_suffix('.md'), tmp_path)
    text = render_report(tmp_path, quick=True, may_lack_tables=True)
    assert '**A smoke run' in text
    assert 'The results are missing: ' in text
    with pytest.raises(ReportError):
        render_report(tmp_path)


def test_a_report_shows_their_figures_beside_ours(tmp_path):
    write(tmp_path, 'video', table('attention|paper', ('softmax', 0.754)))
    (tmp_path / 'video.md').write_text('# Video\n\nA note.\n\nMachine: this.\n\n| attention | paper |\n'
                                       '| --- | --- |\n| softmax | 0.754 |\n')  # fmt: skip
    (tmp_path / 'video.png').touch()
    (tmp_path / 'heat.md').write_text('# Heat\n\nMore.\n\nMachine: this.\n\n| a |\n| --- |\n| 1 |\n')
    (tmp_path / 'extra.md').write_text('# Extra\n\nMore.\n\nMachine: this.\n\n| a |\n| --- |\n| 1 |\n')
    text = render_report(tmp_path, may_lack_tables=True)
    shown = '| attention | paper |\n| --- | --- |\n| softmax | 0.754 |\n'
    assert f'\n\n### Video\n\nA note.\n\nMachine: this.\n\n![video](video.png)\n\n{shown}\n' in text
    assert '### Heat\n\nMore.\n\nMachine: this.\n\nTable: [heat.md](heat.md).\n' in text
    assert text.endswith('## Other tables\n\n### Extra\n\nMore.\n\nMachine: this.\n\nTable: [extra.md](extra.md).\n')
    assert 'there is no table motifs. Run `python -m benchmarks --full motifs`' in text


def test_results_stand_between_the_markers():
    start, end = MARKERS
    written = render_results(RESULTS, f'a\n{start}\nold\n{end}\nb')
    number = sum(path in CHAPTERS[:-2] and claim.verdict != MEASURED for path, claim in CLAIMS)
    assert written.startswith(f'a\n{start}\n## Claims of the papers\n\nWe examined {number} claims of four papers. ')
    assert written.endswith(f'\n{end}\nb')
    assert 'old' not in written.split('\n')
    for broken in ('none', f'{end}{start}', f'{start}{start}{end}'):
        with pytest.raises(ValueError, match='page: lacks'):
            render_results(RESULTS, broken)


def test_figures_of_the_page_follow_the_tables(tmp_path):
    shutil.copytree(RESULTS, tmp_path, dirs_exist_ok=True)
    write(tmp_path, 'heat', table('time / scipy|error', (0.25, 6e-8), (0.25, 1e-9)))
    (tmp_path / 'heat.md').write_text('# Heat\n\nMachine: Intel(R) Core(TM) Processor, 2 cores; 2026-11-22.\n\n| a |\n')
    (line,) = [line for line in render_results(tmp_path, ''.join(MARKERS)).splitlines() if line.startswith('| Heat kernel')]
    assert '| 4.0 times as fast, errors up to 6.0e-08 | Intel Core(TM) | [heat](../benchmarks/results/heat.md) |' in line
    (tmp_path / 'heat.csv').unlink()
    with pytest.raises(ReportError, match='there is no table heat'):
        render_results(tmp_path, ''.join(MARKERS))


def test_what_the_runs_cost(tmp_path):
    assert 'What the runs cost' not in render_report(tmp_path, may_lack_tables=True)
    write(tmp_path, 'durations', [{'benchmark': 'heat', 'minutes': '1.5'}])
    write(tmp_path, 'accuracy_runs', [{'task': 'trees', 'seconds': seconds} for seconds in (1000, 1880)])
    report = render_report(tmp_path, may_lack_tables=True)
    assert '| heat | 1.5 |' in report
    assert '| trees | 0.8 |' in report
