r"""The claims of a paper, and what our tables find of them.

The claims of each paper stand in a module. A claim that was run is a function whose parameters are the names of the tables
that decide, and which returns a :class:`Finding`:

.. code-block:: python

    @PAPER.claim('Sec. 4.2', 'An epoch takes 2.4 times as long', theirs='2.4 times', differs='on a CPU')
    def epoch(recommend_speed: Table) -> Finding:
        ratio = recommend_speed.cell('times DirectAU', model='MGFormer')
        return Finding(trend(ratio < 10, comparable=False), f'{form(ratio)} times')
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from benchmarks.registry import find_benchmark
from benchmarks.report.effects import Comparison
from benchmarks.report.rules import NOT_REPRODUCED, NOT_RUN, agree
from benchmarks.report.tables import Missing, Table, form

__all__ = ['Claim', 'Finding', 'Paper', 'accuracy']


class Finding(NamedTuple):
    r"""A verdict of :mod:`benchmarks.report.rules`, our figure in a few words, and the comparisons of a claim on accuracy."""

    verdict: str
    ours: str
    comparisons: Sequence[Comparison] = ()


#: The finding of a claim that was not run.
NO_FINDING = Finding(NOT_RUN, '')


def accuracy(comparisons: Sequence[Comparison], same_data: bool = False) -> Finding:
    r"""Returns what comparisons of accuracies find. On data other than the paper's, the best verdict is a trend."""
    gaps = [one.gap.mean for one in comparisons]
    shown = [one.shown for one in comparisons].count(True)
    return Finding(agree(comparisons, same_data), f'{form(gaps, "+.2g")}, {shown} of {len(gaps)} shown', comparisons)


@dataclass(frozen=True)
class Claim:
    r"""A statement of a paper.

    Args:
        place (str): Where the statement stands.
        statement (str): The statement.
        theirs (str): The paper's figure. That of a claim on accuracy is in :obj:`effects.csv`.
        differs (str): What is not as in the paper, in a few words.
        why (str): Why the statement is probably not reproduced, if it is not.
        measure (callable, optional): Returns the finding for the tables that its parameters name. (default: :obj:`None`, not
            run)
        finding (Finding): The finding, once the tables have decided. (default: not run)
    """

    place: str
    statement: str
    theirs: str = ''
    differs: str = ''
    why: str = ''
    measure: Callable[..., Finding] | None = None
    finding: Finding = NO_FINDING

    @property
    def heading(self) -> str:
        return f'{self.place}: {self.statement}'

    @property
    def tables(self) -> tuple[str, ...]:
        r"""The names of the tables that decide."""
        return tuple(inspect.signature(self.measure).parameters) if self.measure else ()

    @property
    def paper(self) -> str:
        r"""The paper's figure, or its effects on accuracy."""
        if self.theirs or not self.finding.comparisons:
            return self.theirs or '-'
        compared = self.finding.comparisons
        effects = [one.printed.size for one in compared if one.printed and one.known]
        if not effects:
            return 'not printed'
        return f'{"below " if all(one.on_par for one in compared) else ""}{form(effects, ".2g")}'

    @property
    def notes(self) -> str:
        r"""What differs from the paper and, if the statement is not reproduced, why."""
        return '; '.join(filter(None, [self.differs, self.why if self.finding.verdict == NOT_REPRODUCED else '']))

    def judged(self, tables: Mapping[str, Table], may_lack_tables: bool = False) -> Claim:
        r"""Returns the claim with its finding. If tables may be missing or have too few rows, as after a smoke run, a claim
        that they do not decide was not run.

        Raises:
            Missing: If a table, a row or a number does not exist.
        """
        if self.measure is None:
            return self
        try:
            finding = self.measure(*(tables[name] for name in self.tables))
        except (Missing, ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            if not may_lack_tables:
                raise
            finding = Finding(NOT_RUN, f'run `python -m benchmarks --full {find_benchmark(self.tables[0])}`')
        return replace(self, finding=finding)


@dataclass(frozen=True)
class Paper:
    r"""A paper and its claims."""

    title: str
    link: str
    claims: list[Claim] = field(default_factory=list)

    def claim(
        self, place: str, statement: str, theirs: str = '', differs: str = '', why: str = ''
    ) -> Callable[[Callable[..., Finding]], Callable[..., Finding]]:
        r"""Adds a claim that a function measures. The arguments are those of :class:`Claim`."""

        def add(measure: Callable[..., Finding]) -> Callable[..., Finding]:
            self.claims.append(Claim(place, statement, theirs, differs, why, measure))
            return measure

        return add

    def not_run(self, place: str, statement: str, theirs: str, differs: str) -> None:
        r"""Adds a claim that was not run, and why it was not."""
        self.claims.append(Claim(place, statement, theirs, differs))

    def judged(self, tables: Mapping[str, Table], may_lack_tables: bool = False) -> Paper:
        r"""Returns the paper with the findings of all claims."""
        return replace(self, claims=[claim.judged(tables, may_lack_tables) for claim in self.claims])

    def count(self, verdict: str) -> int:
        return [claim.finding.verdict for claim in self.claims].count(verdict)
