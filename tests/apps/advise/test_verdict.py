from __future__ import annotations

import math

import pytest

from pyg_topomask.apps.advise.report import Chance, Verdict, decide


def runs(*test: float, val: float | None = None) -> dict[int, dict[str, float]]:
    return {seed: {'val_accuracy': value if val is None else val, 'test_accuracy': value} for seed, value in enumerate(test)}


def judge(masked: tuple[float, ...], without: tuple[float, ...], maximize: bool = True) -> Verdict:
    return decide({'GIN+Hop': runs(*masked)}, {'GIN+None': runs(*without)}, 'accuracy', maximize)


def test_verdicts(subtests: pytest.Subtests) -> None:
    for masked, without, maximize, word, said in [
        ((0.9, 0.91, 0.92), (0.6, 0.62, 0.61), True, 'gain', 'GIN+Hop gains 0.300 ± 0.006 accuracy'),
        ((0.6, 0.62, 0.61), (0.9, 0.91, 0.92), True, 'loss', 'No mask helps: GIN+Hop, the best with a mask, loses 0.300'),
        ((0.6, 0.62, 0.61), (0.9, 0.91, 0.92), False, 'gain', 'GIN+Hop has 0.300 ± 0.006 accuracy less than'),
        ((0.6, 0.62, 0.61), (0.61, 0.61, 0.61), True, 'none', 'A gain above 0.012 would have shown'),
        ((0.60, 0.64, 0.62), (0.60, 0.61, 0.62), True, 'undecided', '9 more seeds would decide'),
        ((0.5, 0.5), (0.5, 0.5), True, 'none', 'have the same accuracy in all 2 seeds'),
        ((0.62,), (0.61,), True, 'undecided', 'with one seed. Two more would show an error'),
    ]:
        with subtests.test(masked=masked, without=without, maximize=maximize, word=word, said=said):
            verdict = judge(masked, without, maximize)
            assert verdict.word == word
            assert said in verdict.sentence


def test_the_number_of_seeds_that_would_decide() -> None:
    # Differences 0, 0.03, 0: mean 0.01, deviation 0.01732. 2 * 0.01732 / sqrt(n) <= 0.01 from n = 12 on.
    verdict = judge((0.60, 0.64, 0.62), (0.60, 0.61, 0.62))
    assert math.isclose(verdict.gain, 0.01)
    assert math.isclose(verdict.error, 0.01)
    assert '9 more' in verdict.sentence


def test_a_difference_that_never_varies_has_no_known_error() -> None:
    verdict = judge((0.7, 0.7), (0.6, 0.6))
    assert (verdict.word, '+0.100 accuracy over GIN+None in each of 2 seeds' in verdict.sentence) == ('undecided', True)


def test_differences_of_errors_are_more_or_less(subtests: pytest.Subtests) -> None:
    for masked, without, said in [
        ((0.60, 0.60, 0.60), (0.60, 0.64, 0.62), 'Undecided: GIN+Hop has 0.020 ± 0.012 accuracy less than the best without'),
        ((0.5, 0.5), (0.6, 0.6), 'Undecided: GIN+Hop has 0.100 accuracy less than GIN+None in each of 2 seeds'),
        ((0.62,), (0.61,), 'Undecided: GIN+Hop has 0.01 accuracy more than GIN+None with one seed'),
    ]:
        with subtests.test(said=said):
            assert judge(masked, without, maximize=False).sentence.startswith(said)


@pytest.mark.parametrize(('constant', 'word'), [(0.599, 'none'), (0.601, 'gain')])
def test_no_gain_counts_above_the_error_of_a_constant(constant: float, word: str) -> None:
    masked, without = {'GIN+Hop': runs(0.59, 0.6, 0.61)}, {'GIN+None': runs(0.9, 0.92, 0.91)}
    verdict = decide(masked, without, 'accuracy', False, Chance(error=constant))
    assert verdict.word == word
    assert ('no model is better than a constant (accuracy 0.599)' in verdict.sentence) == (word == 'none')


@pytest.mark.parametrize(('frequent', 'word'), [(915, 'gain'), (920, 'none')])
def test_no_gain_counts_below_the_most_frequent_class(frequent: int, word: str) -> None:
    masked, without = {'GIN+Hop': runs(0.91, 0.92, 0.93)}, {'GIN+None': runs(0.6, 0.62, 0.61)}
    verdict = decide(masked, without, 'accuracy', True, Chance([1000 - frequent, frequent]))
    assert verdict.word == word
    assert ('better than the most frequent class (92%)' in verdict.sentence) == (word == 'none')


@pytest.mark.parametrize(
    ('labels', 'word', 'said'),
    [
        # The variance of 0.7 and 0.6 is 0.21 + 0.24, and that over seeds 0.0001. A gain of 0.1 needs a variance of 0.0025.
        (188, 'gain', 'GIN+Hop gains 0.100 ± 0.010 accuracy'),
        (187, 'undecided', '1 more seed would decide'),
        (180, 'undecided', '+0.100 ± 0.010 accuracy over the best without a mask (GIN+None), but 180 test labels are too few'),
    ],
)
def test_few_test_labels_add_to_the_error(labels: int, word: str, said: str) -> None:
    masked, without = {'GIN+Hop': runs(0.69, 0.7, 0.71)}, {'GIN+None': runs(0.607320508, 0.6, 0.592679492)}
    verdict = decide(masked, without, 'accuracy', True, Chance([labels // 2, labels - labels // 2]))
    assert (verdict.word, said in verdict.sentence) == (word, True)


def test_a_bound_includes_the_error_of_few_test_labels() -> None:
    masked, without = {'GIN+Hop': runs(0.7, 0.7)}, {'GIN+None': runs(0.68, 0.71)}  # a gain of 0.005 +- 0.015
    verdict = decide(masked, without, 'accuracy', True, Chance([50, 50]))
    bound = 0.005 + 2 * (0.015**2 + (0.7 * 0.3 + 0.695 * 0.305) / 100) ** 0.5
    assert (verdict.word, f'A gain above {bound:.2g} would have shown' in verdict.sentence) == ('none', True)


def test_models_are_chosen_by_validation() -> None:
    masked = {'GIN+Hop': runs(0.9, 0.9, val=0.5), 'GIN+GRF': runs(0.7, 0.71, val=0.6)}
    without = {'GIN+None': runs(0.8, 0.8, val=0.4), 'GIN+Linear': runs(0.6, 0.6, val=0.5)}
    verdict = decide(masked, without, 'accuracy', True)
    assert (verdict.masked, verdict.without) == ('GIN+GRF', 'GIN+Linear')
    assert math.isclose(verdict.gain, 0.105)
    assert decide(masked, without, 'accuracy', False).masked == 'GIN+Hop'


def test_only_common_seeds_are_compared_and_validation_stands_in_for_a_test_split() -> None:
    one = {0: {'val_accuracy': 0.5}, 1: {'val_accuracy': 0.7}, 2: {'val_accuracy': 0.9}}
    other = {1: {'val_accuracy': 0.6}, 2: {'val_accuracy': 0.8}}
    assert math.isclose(decide({'a': one}, {'b': other}, 'accuracy', True).gain, 0.1)


@pytest.mark.parametrize(('late', 'word'), [(0.03, 'undecided'), (0.01, 'gain')])
def test_a_gain_has_to_be_larger_than_that_of_the_last_epochs(late: float, word: str) -> None:
    masked, without = {'GIN+Hop': runs(0.64, 0.64, 0.643)}, {'GIN+None': runs(0.62, 0.62, 0.62)}
    verdict = decide(masked, without, 'accuracy', True, late={'GIN+None': late})
    assert verdict.word == word
    if word == 'undecided':
        assert verdict.sentence == (
            'Undecided: GIN+Hop has +0.021 ± 0.001 accuracy over the best without a mask (GIN+None), which still learns: it '
            'would gain 0.030 at the rate of its last epochs. Train longer.'
        )
