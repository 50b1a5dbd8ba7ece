"""The report and the page on results: what the tables say, by rules that can say no."""

import csv
import inspect
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
from benchmarks.report.claims import Claim, accuracy
from benchmarks.report.document import (
    MARKERS,
    PAPERS,
    read_tables,
    render_comparisons,
    render_report,
    render_results,
)
from benchmarks.report.effects import EFFECTS, Effect, compare
from benchmarks.report.rules import NOT_REPRODUCED, NOT_RUN, REPRODUCED, TREND, UNDECIDED, VERDICTS, holds, trend
from benchmarks.report.tables import Estimate, Missing, Table, form
from pyg_topomask.apps.runs.compare import mean_error

CLAIMS = [claim for paper in PAPERS for claim in paper.judged(read_tables(RESULTS)).claims]
#: The tables of benchmarks that need a GPU, which may be missing.
OF_A_GPU = {table for benchmark in BENCHMARKS.values() if benchmark.needs_gpu for table in benchmark.tables}


# --- What lies in the repository


def test_pages_are_those_of_the_tables():
    assert PAGE.read_text() == render_results(RESULTS, PAGE.read_text())
    assert (RESULTS / 'REPORT.md').read_text() == render_report(RESULTS)
    assert (RESULTS / 'comparisons.md').read_text() == render_comparisons(RESULTS)


def test_the_report_is_short_and_has_every_claim():
    text = (RESULTS / 'REPORT.md').read_text()
    assert len(text.split()) <= 3000
    rows = [line.split(' | ') for line in text.splitlines() if line.count(' | ') == 5]
    found = [(row[0].removeprefix('| '), row[3]) for row in rows if row[3] in VERDICTS and row[0] != '| paper']
    assert found == [(claim.heading, claim.finding.verdict) for claim in CLAIMS]
    assert len({heading for heading, _ in found}) == len(found) == 55


def test_every_benchmark_can_be_loaded():
    for benchmark in BENCHMARKS.values():
        assert f'def {benchmark.function}(quick: bool, folder: Path)' in (
            (Path(runner.__file__).parent / f'{benchmark.module}.py').read_text()
        )


def test_every_table_lies_here():
    for name in read_tables(RESULTS).keys() - OF_A_GPU:
        assert (RESULTS / f'{name}.csv').is_file()
        assert (RESULTS / f'{name}.md').is_file()


@pytest.mark.parametrize('page', [PAGE, RESULTS / 'REPORT.md', RESULTS / 'comparisons.md'], ids=lambda path: path.name)
def test_links_lead_somewhere(page):
    targets = re.findall(r'\]\(([^)#\s]+)\)', page.read_text())
    assert targets
    assert [target for target in targets if '://' not in target and not (page.parent / target).exists()] == []


def test_claims_lead_to_their_comparisons():
    anchors = re.findall(r'\]\(comparisons\.md#(\S+)\)', (RESULTS / 'REPORT.md').read_text())
    headings = re.findall(r'^### (.*)$', (RESULTS / 'comparisons.md').read_text(), re.MULTILINE)
    assert anchors == [re.sub(r'[^\w-]', '', heading.lower().replace(' ', '-')) for heading in headings]
    assert headings == [claim.heading for claim in CLAIMS if claim.finding.comparisons]


def test_what_is_not_reproduced_says_what_differs_and_why():
    for claim in CLAIMS:
        assert claim.differs or claim.finding.verdict == REPRODUCED, claim.heading
        assert claim.why or claim.finding.verdict != NOT_REPRODUCED, claim.heading
        assert not claim.why or 'probably' in claim.why or 'not known' in claim.why, claim.heading
        assert (claim.why in claim.notes) == (claim.finding.verdict == NOT_REPRODUCED or not claim.why)


def test_verdicts_are_computed():
    for claim in CLAIMS:
        assert claim.tables or claim.finding == (NOT_RUN, '', ()), claim.heading
        assert claim.finding.verdict in VERDICTS
    for paper in PAPERS:
        functions = [claim.measure for claim in paper.claims if claim.measure]
        assert all(set(inspect.signature(function).parameters) <= read_tables(RESULTS).keys() for function in functions)
        source = inspect.getsource(inspect.getmodule(functions[0]))
        assert not re.search('REPRODUCED|TREND|UNDECIDED|NOT_RUN', source)
        assert not any(f"'{verdict}'" in source for verdict in VERDICTS)


def test_times_of_papers_are_those_of_the_statements():
    times = [claim for claim in CLAIMS if ' times' in claim.theirs]
    assert len(times) == 6
    assert [claim.heading for claim in times if claim.theirs.partition(' (')[0] not in claim.statement] == []


def test_no_claim_lacks_its_results():
    assert [claim.heading for claim in CLAIMS if claim.measure and claim.finding.verdict == NOT_RUN] == []


# --- Effects of the papers


def test_every_statement_on_accuracy_has_an_effect_and_its_source():
    accuracies = {'motifs', 'gkat_depth', 'gkat_equal_time', 'gkat_walk_length', 'tu', 'citation', 'images', 'video'}
    accuracies |= {'interlacer', 'recommend', 'kmip_accuracy', 'kmip_full_size', 'kmip_peptides', 'kmip_all_peptides'}
    accuracies |= {'kmip_objects', 'kmip_influence'}
    on_accuracy = [claim for claim in CLAIMS if accuracies.intersection(claim.tables) and claim.place != 'Sec. 4.4']
    assert on_accuracy == [claim for claim in CLAIMS if claim.finding.comparisons]
    compared = [claim.finding.comparisons for claim in on_accuracy]
    assert set(EFFECTS) == {one.printed for comparisons in compared for one in comparisons} - {None}
    assert all(effect.source for effect in EFFECTS)
    # These figures print curves.
    without = [claim for claim in on_accuracy if not any(one.known for one in claim.finding.comparisons)]
    assert [claim.heading[:6] for claim in without] == ['Fig. 6', 'Fig. 7', 'Fig. 7', 'Fig. 6', 'Fig. 4', 'Fig. 2']
    assert all(one.runs >= 2 for comparisons in compared for one in comparisons)
    for claim in on_accuracy:
        assert all(one.known or one.printed is None for one in claim.finding.comparisons) or claim in without
        assert (claim.paper == 'not printed') == (claim in without)


def test_effects_are_those_that_the_tables_show(subtests: pytest.Subtests) -> None:
    for statement, name, column, unit in [
        ('GKAT Table 4', 'gkat_equal_time', 'paper', 1),
        ('GKAT Table 10', 'citation', 'paper, %', 100),
        ('GRF Table 1', 'images', 'paper', 1),
        ('GRF App. C.2', 'images', 'paper', 1),
        ('GRF Table 3', 'images', 'paper', 1),
        ('GRF Table 4', 'video', 'paper (Kinetics 400)', 1),
        ('k-MIP Table 6.1', 'kmip_accuracy', 'thesis', 100),
        ('k-MIP Peptides-func', 'kmip_peptides', 'thesis', 100),
        ('k-MIP ModelNet10', 'kmip_objects', 'thesis', 100),
    ]:
        with subtests.test(statement=statement, name=name, column=column, unit=unit):
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


def test_comparisons_say_what_it_takes_to_decide(tmp_path):
    rows = [('video', 'softmax', '0.5 ± 0.1', '0.1 0.2 0.3', ''), ('x', 'softmax + GRF', '', '0.1 0.2 0.3', '+0.001 ± 0.002')]
    write(tmp_path, 'video', table('data|attention|test accuracy|seeds|minus softmax, paired by seed', *rows))
    text = render_comparisons(tmp_path, may_lack_tables=True)
    row = '| 0.004 | 0.00542 | +0.001 ± 0.002 | 0.004 | 3 | open | 27 | Table 4 |'
    assert f'| softmax + GRF above softmax {row}' in text
    assert 'Verdict: undecided. Tables: [video](video.md).' in text


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
    assert [form(made.cell('b, paired', name=name), '.2f') for name in ('x', 'x y')] == ['1.50', '-1.20 ± 2.60']


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


# --- Claims


def accuracy_claim(why: str = 'probably luck') -> Claim:
    return Claim(
        'Table 4',
        'Heat rises',
        differs='size',
        why=why,
        measure=lambda heat: accuracy(
            [
                compare('GRF Table 4', name, heat.cell('gap, paired', name=name), heat.row(name=name))
                for name in heat.distinct('name')
            ]
        ),
    )


@pytest.mark.parametrize(
    ('gaps', 'verdict', 'ours', 'notes'),
    [
        (('+0.200 ± 0.010', '+0.100 ± 0.010'), TREND, '+0.1 to +0.2, 2 of 2 shown', 'size'),
        (('+0.001 ± 0.002', '-0.300 ± 0.200'), UNDECIDED, '-0.3 to +0.001, 0 of 2 shown', 'size'),
        (('-0.200 ± 0.001', '+0.100 ± 0.010'), NOT_REPRODUCED, '-0.2 to +0.1, 1 of 2 shown', 'size; probably luck'),
    ],
)
def test_a_claim_on_accuracy(gaps, verdict, ours, notes, tmp_path):
    write(
        tmp_path, 'heat', table('name|gap, paired|seeds', *((name, gap, '1 2') for name, gap in zip('ab', gaps, strict=True)))
    )
    claim = accuracy_claim().judged(read_tables(tmp_path))
    assert (claim.finding.verdict, claim.finding.ours, claim.notes, claim.paper) == (verdict, ours, notes, '0.004')


def test_only_a_folder_that_says_so_may_lack_tables(tmp_path):
    claim = accuracy_claim()
    with pytest.raises(Missing, match='there is no table heat'):
        claim.judged(read_tables(tmp_path))
    judged = claim.judged(read_tables(tmp_path), may_lack_tables=True)
    assert judged.finding == (NOT_RUN, 'run `python -m benchmarks --full heat`', ())
    write(tmp_path, 'heat', table('name|seeds', ('a', '1 2')))
    with pytest.raises(Missing, match="table heat has no 'gap, paired' in the row a"):
        claim.judged(read_tables(tmp_path))


# --- The texts


def test_without_tables_nothing_was_run(tmp_path):
    for claim, ours in zip(claims(tmp_path), CLAIMS, strict=True):
        assert claim.finding.verdict == NOT_RUN
        assert claim.heading == ours.heading
        assert claim.finding.ours.startswith('run `python -m benchmarks --full ') or not claim.tables


@pytest.mark.parametrize('rows', [1, 2, 7])
def test_a_smoke_run_of_few_rows_is_reported(rows, tmp_path):
    for path in RESULTS.glob('*.csv'):
        with path.open(newline='') as file:
            write(tmp_path, path.stem, list(itertools.islice(csv.DictReader(file), rows)))
        if path.with_suffix('.md').is_file():
            shutil.copy(path.with_suffix('.md'), tmp_path)
    text = render_report(tmp_path, quick=True, may_lack_tables=True)
    assert '**A smoke run' in text
    assert 'run `python -m benchmarks --full ' in text
    assert render_comparisons(tmp_path, may_lack_tables=True)
    with pytest.raises((Missing, LookupError, ValueError)):
        render_report(tmp_path)


def test_claims_link_tables_that_are_there(tmp_path):
    write(tmp_path, 'recommend_speed', table('model|times DirectAU', ('MGFormer', 2.5)))
    text = render_report(tmp_path, may_lack_tables=True)
    row = '| 2.4 times | 2.5 times | trend reproduced | on a CPU; time of a step by the steps of an epoch | '
    assert f'{row}|\n' in text
    (tmp_path / 'recommend_speed.md').touch()
    assert f'{row}[recommend_speed](recommend_speed.md) |\n' in render_report(tmp_path, may_lack_tables=True)


def test_results_stand_between_the_markers():
    start, end = MARKERS
    written = render_results(RESULTS, f'a\n{start}\nold\n{end}\nb')
    assert written.startswith(f'a\n{start}\n## Claims of the papers\n\nWe examined {len(CLAIMS)} claims of four papers. ')
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
    with pytest.raises(Missing, match='there is no table heat'):
        render_results(tmp_path, ''.join(MARKERS))
