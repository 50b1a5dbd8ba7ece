"""The report and the README's results: what the tables say, by rules that can say no."""

import itertools
from pathlib import Path

import pytest
from report_tables import BETTER, CLAIMS, UNCLEAR, WORSE, table, write

from benchmarks import runner
from benchmarks.harness import mean_error
from benchmarks.harness import verdict as verdict_of
from benchmarks.registry import BENCHMARKS, find_benchmark
from benchmarks.report import README, RESULTS
from benchmarks.report.claims import (
    NOT_REPRODUCED,
    NOT_RUN,
    REPRODUCED,
    TREND,
    Claim,
    Finding,
    Section,
    judge_factor,
    judge_gaps,
    judge_holds,
    judge_trend,
)
from benchmarks.report.document import _claims, render_report
from benchmarks.report.readme import END, HEADLINES, START, insert, render_results
from benchmarks.report.tables import Estimate, Missing, Table, span, times

# --- What lies in the repository


def test_readme_and_report_are_those_of_the_tables():
    readme = README.read_text()
    assert readme == insert(readme, render_results(RESULTS))
    assert (RESULTS / 'REPORT.md').read_text() == render_report(RESULTS)


def test_every_table_has_a_benchmark_and_every_benchmark_can_be_loaded():
    for name in {claim.table for claim in CLAIMS} | {row.table for row in HEADLINES}:
        assert not name or find_benchmark(name) in BENCHMARKS
    for benchmark in BENCHMARKS.values():
        assert f'def {benchmark.function}(quick: bool, folder: Path)' in (
            Path(runner.__file__).with_name(f'{benchmark.module}.py').read_text()
        )


def test_links_of_the_readme_lead_somewhere():
    text = render_results(RESULTS)
    targets = {part.partition(')')[0] for part in text.split('](')[1:]}
    assert targets
    assert [target for target in targets if not (README.parent / target).exists()] == []


def test_what_is_not_reproduced_says_what_differs_and_why():
    open_ = [(claim, claim.decide(RESULTS).verdict) for claim in CLAIMS]
    assert [claim.where for claim, verdict in open_ if verdict in (TREND, NOT_REPRODUCED) and not claim.differs] == []
    assert [claim.where for claim, verdict in open_ if verdict == NOT_REPRODUCED and not claim.reason] == []
    for claim in CLAIMS:
        assert not claim.reason or 'probably' in claim.reason or 'not known' in claim.reason
        assert len(f'{claim.differs} {claim.reason}'.split()) <= 25


# --- Rules


@pytest.mark.parametrize(
    ('gaps', 'other_data', 'same_data'),
    [
        ([BETTER, BETTER], TREND, REPRODUCED),
        ([BETTER, BETTER, UNCLEAR], TREND, TREND),
        ([BETTER, UNCLEAR], NOT_REPRODUCED, NOT_REPRODUCED),
        ([UNCLEAR], NOT_REPRODUCED, NOT_REPRODUCED),
        ([BETTER, BETTER, WORSE], NOT_REPRODUCED, NOT_REPRODUCED),
        (['+0.000 ± 0.000'], NOT_REPRODUCED, NOT_REPRODUCED),
    ],
)
def test_gaps(gaps, other_data, same_data):
    parsed = [Estimate.parse(gap) for gap in gaps]
    assert judge_gaps(parsed) == other_data
    assert judge_gaps(parsed, same_data=True) == same_data


@pytest.mark.parametrize(
    ('ours', 'paper', 'verdict'),
    [(9.5, 9.5, REPRODUCED), (8.0, 10, REPRODUCED), (7.9, 10, TREND), (1.0, 10, NOT_REPRODUCED), (0.9, 1.06, NOT_REPRODUCED)],
)
def test_factors(ours, paper, verdict):
    assert judge_factor(ours, paper) == verdict


def test_shapes():
    assert [judge_holds(True), judge_holds(False, partly=True), judge_holds(False)] == [REPRODUCED, TREND, NOT_REPRODUCED]
    assert [judge_trend(True), judge_trend(False)] == [TREND, NOT_REPRODUCED]


def test_two_standard_errors_are_the_border():
    verdicts = [Estimate(mean, 0.01).verdict for mean in (0.0201, 0.0199, -0.0201)]
    assert verdicts == ['better', 'not distinguishable', 'worse']
    assert Estimate(3.0, 3.0).minus(Estimate(1.0, 4.0)) == Estimate(2.0, 5.0)


@pytest.mark.parametrize('graphs', [149, 150, 151, 349])
def test_two_standard_errors_exactly_are_a_difference(graphs):
    # Two seeds of three with one or two graphs more: t is 2 exactly, and rounds to either side.
    for base in itertools.product(range(graphs - 5, graphs), repeat=3):
        for more in (1, 2):
            gaps = [(count + own) / graphs - count / graphs for count, own in zip(base, (0, more, more), strict=True)]
            assert verdict_of(*mean_error(gaps)) == 'better'


def test_differences_are_paired_by_seed():
    rows = table('model|seeds', ('GCN', '0.1 0.2 0.6'), ('GIN', '0.0 0.2 0.4'))
    own, other = Table('made', rows).rows
    gap = own.minus_by_seed(other)
    assert gap.mean == pytest.approx(0.1)
    assert gap.error == pytest.approx(0.1 / 3**0.5)


# --- Tables


def test_what_a_table_knows_of_a_difference_stands_above_its_rounded_figures():
    rows = table('model|minus GAT, paired|verdict', ('GCN', '+0.016 ± 0.008', 'not distinguishable'), ('GIN', WORSE, 'worse'))
    gap, other = (Table('made', rows).estimate('minus GAT, paired', {'model': name}) for name in ('GCN', 'GIN'))
    assert [gap.verdict, (-gap).verdict] == ['not distinguishable'] * 2
    assert [other.verdict, (-other).verdict] == ['worse', 'better']


def test_tables_give_numbers_and_estimates(tmp_path):
    write(tmp_path, 'made', table('a|b', ('x', '1.5'), ('y', 'nan'), ('y', ''), ('z', '-1.2 ± 2.6: not distinguishable')))
    made = Table.read(tmp_path, 'made')
    assert made.number('b', {'a': 'x'}) == 1.5
    assert made.estimate('b', {'a': 'z'}) == Estimate(-1.2, 2.6)
    assert made.distinct('a') == ['x', 'y', 'z']
    for values in ({'a': 'y'}, {'a': 'w'}, {'c': 'x'}):
        with pytest.raises(Missing):
            made.number('b', values)
    with pytest.raises(Missing, match='no table other'):
        Table.read(tmp_path, 'other')
    with pytest.raises(Missing):
        Estimate.parse('0.5')


def test_ratios_have_two_digits_or_more():
    assert [times(value) for value in (153.6, 45.29, 9.03, 0.8654, 0.0088)] == ['154', '45', '9.0', '0.87', '0.0088']
    assert span([2, 1, 12.4]) == '1.0 to 12'


# --- Claims


@pytest.mark.parametrize('claim', CLAIMS, ids=lambda claim: f'{claim.where}-{claim.table}')
def test_without_tables_nothing_was_run(claim: Claim, tmp_path):
    verdict, sentence = claim.decide(tmp_path)
    assert verdict == NOT_RUN
    assert sentence.endswith('.')


@pytest.mark.parametrize('claim', [claim for claim in CLAIMS if claim.table], ids=lambda claim: f'{claim.where}-{claim.table}')
def test_a_table_without_the_rows_is_no_result(claim: Claim, tmp_path):
    write(tmp_path, claim.table, table('other', ('1',)))
    assert claim.decide(tmp_path).verdict == NOT_RUN


# --- The texts


def test_a_report_shows_their_figures_beside_ours(tmp_path):
    write(tmp_path, 'video', table('attention|paper', ('softmax', 0.754)))
    (tmp_path / 'video.md').write_text('# Video\n\nA note.\n\nMachine: this.\n\n| attention | paper | seeds |\n'
                                       '| --- | --- | --- |\n| softmax |  | 0.1 |\n')  # fmt: skip
    (tmp_path / 'video.png').touch()
    write(tmp_path, 'extra', table('a', (1,)))
    (tmp_path / 'extra.md').write_text('# Extra\n\nMore.\n\nMachine: this.\n\n| a |\n| --- |\n| 1 |\n')
    text = render_report(tmp_path)
    assert '### Video\n\nA note.\n\nMachine: this.\n\n![video](video.png)\n\n| attention | paper |\n' in text
    assert '| softmax |  |' in text
    assert '## Other tables\n\n### Extra\n\nMore.' in text
    assert 'There is no table motifs. `python -m benchmarks --full motifs`' in text


@pytest.mark.parametrize(
    ('verdict', 'why'),
    [
        (NOT_REPRODUCED, 'differs: size; probably luck'),
        (TREND, 'differs: size; probably luck'),
        (REPRODUCED, 'differs: size'),
    ],
)
def test_why_stands_beside_what_is_not_reproduced(verdict, why, tmp_path):
    write(tmp_path, 'heat', table('a', (1,)))
    claim = Claim('Fig. 1', 'Heat rises', 'heat', lambda own: Finding(verdict, 'So.'), differs='size', reason='probably luck')
    rows = _claims(Section('Paper', '', [claim]), tmp_path)
    assert rows[-1] == f'| Fig. 1 | Heat rises | **{verdict}** | So. | {why} | heat |'


def test_results_stand_between_the_markers():
    assert insert(f'a\n{START}\nold\n{END}\nb', 'new') == f'a\n{START}\nnew\n{END}\nb'
    for broken in ('none', f'{END}{START}', f'{START}{START}{END}'):
        with pytest.raises(ValueError, match='readme: lacks'):
            insert(broken, 'new')


def test_headlines_follow_the_tables(tmp_path):
    write(tmp_path, 'heat', table('time / scipy|error', (0.25, 6e-8), (0.05, 1e-9)))
    text = render_results(tmp_path)
    assert (
        "| Heat kernel, asked for 1e-8 | SciPy's `expm_multiply`, to 1e-16 | 4.0 to 20 times as fast, errors up to 6e-08 | ? |"
        in text
    )
    assert '| Tree mask' not in text
    write(tmp_path / 'epyc', 'heat', table('time / scipy|error', (0.5, 1e-9)))
    for folder, processor in ((tmp_path, 'Intel(R) Xeon(R) Processor'), (tmp_path / 'epyc', 'AMD EPYC')):
        (folder / 'heat.md').write_text(f'# Heat\n\nMachine: {processor}, 2 cores; 2026-11-22.\n')
    first, second = [line for line in render_results(tmp_path).splitlines() if line.startswith('| Heat kernel')]
    assert '| Intel Xeon | [heat](benchmarks/results/heat.md) |' in first
    assert '| 2.0 times as fast, errors up to 1e-09 | AMD EPYC | [heat](benchmarks/results/epyc/heat.md) |' in second
    assert '- Not run: Tree masks; Motifs' in text
