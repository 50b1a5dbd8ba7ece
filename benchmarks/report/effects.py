r"""The effects that the papers report (:obj:`effects.csv`), and our results beside them."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from benchmarks.report.tables import Estimate, Missing, Row

__all__ = ['EFFECTS', 'Comparison', 'Effect', 'compare']


class Effect(NamedTuple):
    r"""Two accuracies of a paper, the higher and the lower, and where they stand. They are nan if the paper prints none.

    :obj:`statement` names paper and place, and :obj:`comparison` is a pattern of names.
    """

    statement: str
    comparison: str
    higher: float
    lower: float
    source: str

    @property
    def size(self) -> float:
        return self.higher - self.lower

    def at(self, accuracy: float) -> float:
        r"""What the effect is worth from another accuracy on: that of equal odds ratio, which leaves accuracies below 1.

        >>> effect = Effect('', '', 0.6, 0.5, '')
        >>> f'{effect.at(0.5):.3f}, {effect.at(0.9):.3f}, {effect.at(1.0):.3f}'
        '0.100, 0.031, 0.000'
        """
        ratio = self.higher / (1 - self.higher) * (1 - self.lower) / self.lower
        return ratio * accuracy / (1 - accuracy + ratio * accuracy) - accuracy


def _read(path: Path) -> tuple[Effect, ...]:
    with path.open(newline='') as file:
        rows = list(csv.DictReader(file))
    return tuple(
        Effect(
            row['statement'],
            row['comparison'],
            higher=float(row['higher'] or 'nan'),
            lower=float(row['lower'] or 'nan'),
            source=row['source'],
        )
        for row in rows
    )


EFFECTS: Sequence[Effect] = _read(Path(__file__).with_suffix('.csv'))


class Comparison(NamedTuple):
    r"""A difference that a statement of a paper is about, which is positive if it is as the paper says.

    :obj:`effect` is the paper's on our scale, or nan. :obj:`runs` is the number of seeds or folds. If :obj:`on_par`,
    the statement is that there is no such difference, and the effect is one that the paper counts. A :obj:`cut` set-up lacks
    what the statement rests on, so that it can show the effect, but not contradict it.
    """

    name: str
    gap: Estimate
    effect: float = math.nan
    runs: int = 0
    on_par: bool = False
    printed: Effect | None = None
    cut: bool = False

    @property
    def known(self) -> bool:
        r"""Whether the paper prints the effect."""
        return self.effect > 0

    @property
    def fine(self) -> bool:
        r"""Whether the standard error is at most a third of the paper's effect."""
        # A third exactly, which rounding puts on either side, is enough.
        return 3 * self.gap.error <= self.effect * (1 + 1e-9)

    @property
    def shown(self) -> bool:
        r"""Whether the difference is as the paper says by two standard errors."""
        return self._below_half if self.on_par else self.gap.verdict == 'better'

    @property
    def contradicted(self) -> bool:
        r"""Whether the difference excludes the paper's effect by two standard errors that are small enough."""
        below, above = self._below_half, self.gap.mean - 2 * self.gap.error > self.effect / 2
        return self.fine and not self.cut and not self.shown and (above if self.on_par else below)

    @property
    def against(self) -> bool:
        r"""Whether the difference is not as the paper says by two standard errors, small or not."""
        return self.contradicted if self.on_par else self.gap.verdict == 'worse'

    @property
    def outcome(self) -> str:
        if self.shown or self.contradicted:
            return 'shown' if self.shown else 'contradicted'
        return 'open' + ', of the other sign' * self.against + ', cut set-up' * self.cut

    @property
    def runs_needed(self) -> int:
        r"""The number of runs with a standard error of an eighth of the effect. A difference is then either at least two
        standard errors above 0, or as many below half the effect. The number is 0 if no number of runs decides.
        """
        return math.ceil(self.runs * (8 * self.gap.error / self.effect) ** 2) if self.known and not self.cut else 0

    @property
    def _below_half(self) -> bool:
        return self.gap.mean + 2 * self.gap.error < self.effect / 2


def compare(
    statement: str,
    name: str,
    gap: Estimate,
    row: Row,
    at: Estimate | float | None = None,
    on_par: bool = False,
    cut: bool = False,
) -> Comparison:
    r"""Sets a difference beside the effect that a paper prints.

    Args:
        statement: The paper and the place, as in :obj:`effects.csv`.
        name: What is compared.
        gap: The difference, which is positive if it is as the paper says.
        row: The row of the table, which tells the number of runs.
        at: The accuracy of our baseline if the data are not the paper's.
        on_par: Whether the paper says that there is no difference of either sign, or none that is positive.
        cut: Whether our set-up lacks what the statement rests on.

    Raises:
        Missing: If the paper's effects have no such statement.
    """
    effects = [effect for effect in EFFECTS if effect.statement == statement]
    if not effects:
        raise Missing(f'effects.csv has no statement {statement!r}')
    printed = next((effect for effect in effects if fnmatchcase(name, effect.comparison)), None)
    size = math.nan
    if printed:
        accuracy = at.mean if isinstance(at, Estimate) else at
        size = printed.size if accuracy is None else printed.at(accuracy)
    return Comparison(name, gap, size, len(row.values), on_par, printed, cut)
