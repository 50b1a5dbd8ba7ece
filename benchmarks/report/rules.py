r"""The rules by which tables decide on what a paper states. :obj:`report.md` and :obj:`comparisons.md` say them in words."""

from __future__ import annotations

from collections.abc import Sequence

from scipy.stats import t as student

from benchmarks.report.effects import Comparison
from benchmarks.report.tables import Missing

__all__ = [
    'NOT_REPRODUCED',
    'NOT_RUN',
    'REPRODUCED',
    'TREND',
    'UNDECIDED',
    'VERDICTS',
    'agree',
    'by_chance',
    'holds',
    'trend',
]

REPRODUCED, TREND, NOT_REPRODUCED = 'reproduced', 'trend reproduced', 'not reproduced'
UNDECIDED, NOT_RUN = 'undecided', 'not run here'
VERDICTS = (REPRODUCED, TREND, NOT_REPRODUCED, UNDECIDED, NOT_RUN)


def agree(compared: Sequence[Comparison], same_data: bool = False) -> str:
    r"""Judges a statement on accuracy, which holds if all of its comparisons do.

    >>> from benchmarks.report.tables import Estimate
    >>> gaps = {'better': Estimate(0.3, 0.1), 'none': Estimate(-0.05, 0.05), 'unclear': Estimate(0.3, 0.3)}
    >>> [agree([Comparison(name, gap, effect=0.3)]) for name, gap in gaps.items()]
    ['trend reproduced', 'not reproduced', 'undecided']
    """
    if not compared:
        raise Missing('there is nothing to compare')
    shown = [one.shown for one in compared].count(True)
    if shown == len(compared):
        return REPRODUCED if same_data else TREND
    if 2 * shown > len(compared) and not any(one.against for one in compared):
        return TREND
    return NOT_REPRODUCED if any(one.contradicted for one in compared) else UNDECIDED


def holds(condition: bool, partly: bool = False) -> str:
    r"""Judges a statement on the shape of a curve, which may hold in part."""
    return REPRODUCED if condition else TREND if partly else NOT_REPRODUCED


def trend(condition: bool, comparable: bool = True) -> str:
    r"""Judges a statement that can be a trend at most, for the data or the hardware are not the paper's. If they are not
    comparable with the paper's, it is undecided where it does not hold.
    """
    return TREND if condition else NOT_REPRODUCED if comparable else UNDECIDED


def by_chance(seeds: int) -> float:
    r"""Returns the share of comparisons of equal models, paired by seed, that show two standard errors (Student's t).

    >>> f'{by_chance(5):.2f}'
    '0.12'
    """
    return float(2 * student.sf(2, seeds - 1))
