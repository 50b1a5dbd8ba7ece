r"""The rules by which tables decide on what a paper states. :obj:`report.md` says them in words."""

from __future__ import annotations

from collections.abc import Iterable

from scipy.stats import t as student

from benchmarks.report.tables import Estimate, Missing

__all__ = [
    'MEASURED',
    'NOT_REPRODUCED',
    'NOT_RUN',
    'REPRODUCED',
    'TREND',
    'all_better',
    'by_chance',
    'count',
    'factor',
    'holds',
    'trend',
]

REPRODUCED, TREND, NOT_REPRODUCED = 'reproduced', 'trend reproduced', 'not reproduced'
NOT_RUN, MEASURED = 'not run here', 'measured'
#: The least share of a paper's factor that counts as the factor.
ENOUGH = 0.8


def all_better(gaps: Iterable[Estimate], same_data: bool = False) -> str:
    r"""Judges the statement that every one of some paired differences is positive.

    >>> all_better([Estimate(0.3, 0.1), Estimate(0.5, 0.1)]), all_better([Estimate(0.3, 0.1), Estimate(-0.5, 0.1)])
    ('trend reproduced', 'not reproduced')
    """
    verdicts = [gap.verdict for gap in gaps]
    if not verdicts:
        raise Missing('there is nothing to compare')
    better = verdicts.count('better')
    if better == len(verdicts):
        return REPRODUCED if same_data else TREND
    return TREND if 2 * better > len(verdicts) and 'worse' not in verdicts else NOT_REPRODUCED


def factor(ours: float, paper: float) -> str:
    r"""Judges a factor by which something is faster or smaller.

    >>> factor(9.0, paper=9.5), factor(2.0, paper=9.5), factor(0.7, paper=9.5)
    ('reproduced', 'trend reproduced', 'not reproduced')
    """
    if ours <= 1:
        return NOT_REPRODUCED
    return REPRODUCED if ours >= ENOUGH * paper else TREND


def holds(condition: bool, partly: bool = False) -> str:
    r"""Judges a statement on the shape of a curve, which may hold in part."""
    return REPRODUCED if condition else TREND if partly else NOT_REPRODUCED


def trend(condition: bool) -> str:
    r"""Judges a statement that can be a trend at most, for the data are not the paper's or few seeds show no difference."""
    return TREND if condition else NOT_REPRODUCED


def count(gaps: Iterable[Estimate], verdict: str) -> int:
    r"""Returns how many of some paired differences have a verdict."""
    return [gap.verdict for gap in gaps].count(verdict)


def by_chance(seeds: int) -> float:
    r"""Returns the share of comparisons of equal models, paired by seed, that show two standard errors (Student's t).

    >>> f'{by_chance(5):.2f}'
    '0.12'
    """
    return float(2 * student.sf(2, seeds - 1))
