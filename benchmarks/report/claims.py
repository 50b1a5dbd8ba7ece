r"""Claims: what a paper states, the table that shows it here, and the rules by which the table decides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from scipy.stats import t as student

from benchmarks.report.tables import Estimate, Missing, Table

__all__ = [
    'MEASURED',
    'NOT_REPRODUCED',
    'NOT_RUN',
    'REPRODUCED',
    'RULES',
    'TREND',
    'Claim',
    'Finding',
    'Section',
    'by_chance',
    'judge_factor',
    'judge_gaps',
    'judge_holds',
    'judge_trend',
    'not_run',
]

REPRODUCED, TREND, NOT_REPRODUCED = 'reproduced', 'trend reproduced', 'not reproduced'
NOT_RUN, MEASURED = 'not run here', 'measured'
#: The least part of a paper's factor that counts as the factor.
ENOUGH = 0.8


def by_chance(seeds: int) -> float:
    r"""Returns the share of comparisons of equal models, paired by seed, that show two standard errors (Student's t).

    >>> f'{by_chance(5):.2f}'
    '0.12'
    """
    return float(2 * student.sf(2, seeds - 1))


def _percent(seeds: int) -> str:
    return f'{100 * by_chance(seeds):.0f} %'


RULES = (
    f'A statement that one model is better than others is "{REPRODUCED}" where every difference here, paired by seed or fold '
    f'where the table has it so, has its sign and at least two standard errors, "{TREND}" where most do and none has the '
    f'opposite sign with as many, and "{NOT_REPRODUCED}" otherwise; on other data than the paper\'s, "{TREND}" is the most '
    f'that can be. A factor is "{NOT_REPRODUCED}" up to 1, "{REPRODUCED}" above it from {ENOUGH} of the paper\'s on, and '
    f'"{TREND}" between; of a cost it is "{REPRODUCED}" up to 1/{ENOUGH} of the paper\'s. Statements on the shape of a curve '
    f'are decided by the numbers that stand beside them. That models are on a par, or none better, is "{TREND}" at most: that '
    f'nothing is seen of a difference with so few seeds does not show that there is none. Models that are '
    f'equal differ by two standard errors in {_percent(3)} of all comparisons of 3 seeds, in {_percent(5)} of 5, and in '
    f'{_percent(10)} of 10.'
)


class Finding(NamedTuple):
    r"""A verdict, and the sentence with its numbers."""

    verdict: str
    sentence: str


@dataclass(frozen=True)
class Claim:
    r"""What is stated where, and how a table decides on it.

    Args:
        where (str): The table, figure or section of the paper; of what this package states on its own, a few words.
        statement (str): What it says.
        table (str): The table of results that decides, or nothing for what is not run here at all.
        check (callable): Called with the table; returns verdict and sentence, or raises :class:`Missing`.
        title (str): The words under which the README shows it; by default it does not. (default: :obj:`""`)
        differs (str): What is known to be other here than in the paper. (default: :obj:`""`)
        reason (str): Why it is not reproduced, a guess that begins with "probably", or that it is not known.
            (default: :obj:`""`)
    """

    where: str
    statement: str
    table: str
    check: Callable[[Table], Finding]
    title: str = ''
    differs: str = ''
    reason: str = ''

    def decide(self, folder: Path) -> Finding:
        r"""Returns what the tables of a folder show; where they lack what is needed, that nothing was run."""
        try:
            return self.check(Table.read(folder, self.table) if self.table else Table('', []))
        except Missing as reason:
            return Finding(NOT_RUN, f'{reason}.')


@dataclass(frozen=True)
class Section:
    r"""The claims of one paper, or of the package, the report's heading, and its source."""

    heading: str
    link: str
    claims: Sequence[Claim]


def judge_gaps(gaps: Sequence[Estimate], same_data: bool = False) -> str:
    r"""Judges the statement that every one of some differences is positive.

    >>> judge_gaps([Estimate(0.3, 0.1), Estimate(0.5, 0.1)]), judge_gaps([Estimate(0.3, 0.1), Estimate(-0.5, 0.1)])
    ('trend reproduced', 'not reproduced')
    """
    verdicts = [gap.verdict for gap in gaps]
    better = verdicts.count('better')
    if better == len(verdicts):
        return REPRODUCED if same_data else TREND
    return TREND if 2 * better > len(verdicts) and 'worse' not in verdicts else NOT_REPRODUCED


def judge_factor(ours: float, paper: float) -> str:
    r"""Judges a factor by which something is faster or smaller.

    >>> judge_factor(9.0, 9.5), judge_factor(2.0, 9.5), judge_factor(0.7, 9.5)
    ('reproduced', 'trend reproduced', 'not reproduced')
    """
    if ours <= 1:
        return NOT_REPRODUCED
    return REPRODUCED if ours >= ENOUGH * paper else TREND


def judge_holds(holds: bool, partly: bool = False) -> str:
    r"""Judges a statement on the shape of a curve, which may hold in part."""
    return REPRODUCED if holds else TREND if partly else NOT_REPRODUCED


def judge_trend(holds: bool) -> str:
    r"""Judges a statement that other data than the paper's can show as a trend at most."""
    return TREND if holds else NOT_REPRODUCED


def not_run(reason: str) -> Callable[[Table], Finding]:
    r"""The check of a statement that no benchmark here decides."""
    return lambda table: Finding(NOT_RUN, reason)
