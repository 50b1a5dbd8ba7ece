"""The rules of the report: what differences and their standard errors decide."""

import pytest

from benchmarks.report.effects import Comparison
from benchmarks.report.rules import NOT_REPRODUCED, REPRODUCED, TREND, UNDECIDED, agree
from benchmarks.report.tables import Estimate, Missing

#: Differences beside an effect of 0.3, which is excluded below 0.15 by two standard errors of at most 0.1.
SHOWN, NONE, OPPOSITE = Estimate(0.2, 0.01), Estimate(0.01, 0.01), Estimate(-0.2, 0.01)
OPEN, OPEN_OPPOSITE = Estimate(0.1, 0.1), Estimate(-0.9, 0.2)


def test_statements_on_accuracy(subtests: pytest.Subtests) -> None:
    for gaps, other_data, same_data in [
        ([SHOWN, SHOWN], TREND, REPRODUCED),
        ([SHOWN, SHOWN, OPEN], TREND, TREND),
        ([SHOWN, SHOWN, NONE], TREND, TREND),
        ([SHOWN, NONE], NOT_REPRODUCED, NOT_REPRODUCED),
        ([SHOWN, OPEN], UNDECIDED, UNDECIDED),
        ([OPEN], UNDECIDED, UNDECIDED),
        ([NONE], NOT_REPRODUCED, NOT_REPRODUCED),
        ([SHOWN, SHOWN, OPPOSITE], NOT_REPRODUCED, NOT_REPRODUCED),
        ([SHOWN, SHOWN, OPEN_OPPOSITE], UNDECIDED, UNDECIDED),
        ([Estimate(0.0, 0.0)], NOT_REPRODUCED, NOT_REPRODUCED),
    ]:
        with subtests.test(gaps=gaps, other_data=other_data, same_data=same_data):
            compared = [Comparison('', gap, effect=0.3) for gap in gaps]
            assert agree(compared) == other_data
            assert agree(compared, same_data=True) == same_data
            with pytest.raises(Missing):
                agree([])


def test_an_effect_is_excluded_by_small_errors_alone(subtests: pytest.Subtests) -> None:
    for mean, error, outcome in [
        (-0.06, 0.1, 'contradicted'),
        (-0.04, 0.1, 'open'),
        (-0.06, 0.101, 'open'),
        (-0.9, 0.101, 'open, of the other sign'),
        (0.13, 0.009, 'shown'),
    ]:
        with subtests.test(mean=mean, error=error, outcome=outcome):
            assert Comparison('', Estimate(mean, error), 0.3).outcome == outcome
            # Nothing excludes an effect that is not printed.
            assert Comparison('', Estimate(mean, error)).outcome != 'contradicted'


def test_cut_setups_show_effects_but_do_not_contradict_them():
    gaps = [SHOWN, NONE, OPPOSITE]
    compared = [Comparison('', gap, 0.3, runs=3, cut=True) for gap in gaps]
    assert [one.outcome for one in compared] == ['shown', 'open, cut set-up', 'open, of the other sign, cut set-up']
    assert [agree([one]) for one in compared] == [TREND, UNDECIDED, UNDECIDED]
    assert {one.runs_needed for one in compared} == {0}
    assert agree([Comparison('', NONE, 0.3), *compared]) == NOT_REPRODUCED


def test_statements_that_models_are_on_a_par(subtests: pytest.Subtests) -> None:
    for gap, verdict in [
        (Estimate(0.05, 0.04), TREND),
        (Estimate(-0.9, 0.04), TREND),
        (Estimate(0.05, 0.06), UNDECIDED),
        (Estimate(0.2, 0.04), UNDECIDED),
        (Estimate(0.9, 0.11), UNDECIDED),
        (Estimate(0.25, 0.04), NOT_REPRODUCED),
    ]:
        with subtests.test(gap=gap, verdict=verdict):
            assert agree([Comparison('', gap, 0.3, on_par=True)]) == verdict


def test_runs_to_decide():
    assert Comparison('', Estimate(0.1, 0.1), 0.4, runs=3).runs_needed == 12
    assert Comparison('', Estimate(0.1, 0.1), runs=3).runs_needed == 0
    # With an eighth of the effect as the standard error, every difference is decided.
    outcomes = {Comparison('', Estimate(mean / 1000, 0.1), 0.8).outcome for mean in range(-1000, 1000)}
    assert outcomes == {'shown', 'contradicted'}
