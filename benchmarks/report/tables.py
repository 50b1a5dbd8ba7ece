r"""Tables of results as claims read them: rows by the values of their columns, numbers, and means with standard errors."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.harness import mean_error, verdict

__all__ = ['Estimate', 'Missing', 'Row', 'Table', 'span', 'times']


class Missing(LookupError):
    r"""A table, a row or a number that a claim needs is not there."""


class Estimate(NamedTuple):
    r"""A mean and its standard error, and of a paired difference what it shows, where a table knows that from before it rounded
    them.
    """

    mean: float
    error: float
    known: str = ''

    @classmethod
    def parse(cls, text: str) -> Estimate:
        r"""Reads :obj:`"0.12 ± 0.03"`, with or without words behind a colon."""
        mean, sign, error = text.partition(':')[0].partition(' ± ')
        if not sign:
            raise Missing(f'{text!r} is no mean with its error')
        return cls(float(mean), float(error))

    @property
    def verdict(self) -> str:
        r"""What a paired difference shows: better, worse, or not distinguishable from none."""
        return self.known or verdict(self.mean, self.error)

    def __neg__(self) -> Estimate:
        return Estimate(-self.mean, self.error, {'better': 'worse', 'worse': 'better'}.get(self.known, self.known))

    def minus(self, other: Estimate) -> Estimate:
        r"""The difference to another estimate that is independent of this one."""
        return Estimate(self.mean - other.mean, (self.error**2 + other.error**2) ** 0.5)


class Row(dict[str, str]):
    r"""The cells of a row by column."""

    def __missing__(self, column: str) -> str:
        raise Missing(f'There is no column {column!r}')

    def gap(self, column: str) -> Estimate:
        r"""The paired difference in a column, with what the row says that it shows."""
        return Estimate.parse(self[column])._replace(known=self.get('verdict', ''))

    def minus_by_seed(self, other: Row) -> Estimate:
        r"""The difference to another row, paired by the seeds of both."""
        seeds = zip(self['seeds'].split(), other['seeds'].split(), strict=True)
        return Estimate(*mean_error([float(own) - float(its) for own, its in seeds]))


class Table:
    r"""The rows of one csv file."""

    def __init__(self, name: str, rows: Iterable[Mapping[str, str]]) -> None:
        self.name, self.rows = name, [Row(row) for row in rows]

    @classmethod
    def read(cls, folder: Path, name: str) -> Table:
        path = folder / f'{name}.csv'
        if not path.is_file():
            raise Missing(f'There is no table {name}')
        with path.open(newline='') as file:
            return cls(name, csv.DictReader(file))

    def keep(self, wanted: Callable[[Row], object]) -> Table:
        r"""The rows that are wanted.

        Raises:
            Missing: If there are none.
        """
        rows = [row for row in self.rows if wanted(row)]
        if not rows:
            raise Missing(f'{self.name} lacks the rows')
        return Table(self.name, rows)

    def where(self, values: Mapping[str, object]) -> Table:
        r"""The rows that have these values.

        Raises:
            Missing: If there are none.
        """
        try:
            return self.keep(lambda row: all(row[key] == str(value) for key, value in values.items()))
        except Missing:
            raise Missing(f'{self.name} lacks the row {", ".join(map(str, values.values()))}') from None

    def column(self, name: str) -> list[str]:
        return [row[name] for row in self.rows]

    def numbers(self, column: str) -> list[float]:
        r"""The numbers of a column; empty cells and :obj:`nan` are left out.

        Raises:
            Missing: If there are none.
        """
        found = [float(cell) for cell in self.column(column) if cell not in ('', 'nan')]
        if not found:
            raise Missing(f'{self.name} has no number in {column!r}')
        return found

    def number(self, column: str, values: Mapping[str, object]) -> float:
        r"""The number of the one row that has these values."""
        (found,) = self.where(values).numbers(column)
        return found

    def estimate(self, column: str, values: Mapping[str, object]) -> Estimate:
        r"""The mean and standard error of the one row that has these values."""
        (row,) = self.where(values).rows
        return row.gap(column) if 'paired' in column else Estimate.parse(row[column])

    def distinct(self, column: str) -> list[str]:
        return list(dict.fromkeys(self.column(column)))


def times(value: float) -> str:
    r"""A ratio with two digits, or as many as it has before the point.

    >>> times(153.6), times(6.29), times(0.351), times(0.0098)
    ('154', '6.3', '0.35', '0.0098')
    """
    return f'{value:.0f}' if abs(value) >= 10 else f'{value:.1f}' if abs(value) >= 1 else f'{float(f"{value:.2g}"):g}'


def span(values: Sequence[float]) -> str:
    r"""The smallest and the largest of some ratios.

    >>> span([3.49, 12.4, 5]), span([0.9, 0.9])
    ('3.5 to 12', '0.9')
    """
    low, high = times(min(values)), times(max(values))
    return low if low == high else f'{low} to {high}'
