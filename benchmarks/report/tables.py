r"""The tables of results, as templates refer to them."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from pyg_topomask.apps.runs.compare import mean_error, verdict

__all__ = ['Estimate', 'Missing', 'Row', 'Table', 'form', 'growth_rates']


class Missing(Exception):
    r"""A table, a row or a number that the report refers to does not exist."""


class Estimate(NamedTuple):
    r"""A mean and its standard error. For a paired difference, :obj:`known` is the verdict that the table computed before it
    rounded both.
    """

    mean: float
    error: float
    known: str = ''

    @property
    def verdict(self) -> str:
        r"""What a difference shows: :obj:`"better"`, :obj:`"worse"` or :obj:`"not distinguishable"`."""
        return self.known or verdict(self.mean, self.error)

    def __neg__(self) -> Estimate:
        return Estimate(0.0 - self.mean, self.error, {'better': 'worse', 'worse': 'better'}.get(self.known, self.known))

    def __abs__(self) -> Estimate:
        return -self if self.mean < 0 else self

    def __sub__(self, other: Estimate) -> Estimate:
        r"""The difference of two independent estimates."""
        return Estimate(self.mean - other.mean, math.hypot(self.error, other.error))

    def __format__(self, spec: str) -> str:
        return f'{self.mean:{spec}} ± {self.error:{spec.lstrip("+")}}'


class Row:
    r"""A row. :obj:`row['test accuracy']` and, in templates, :obj:`row.test_accuracy` are a number, an :class:`Estimate` or a
    text.
    """

    def __init__(self, table: Table, cells: dict[str, str]) -> None:
        # A number that could not be measured is as good as none.
        self.cells = {_key(column): '' if cell in ('nan', 'inf') else cell for column, cell in cells.items()}
        self.table = table

    def __getitem__(self, column: str) -> Any:
        cell = self.text(column)
        if not cell:
            raise Missing(
                f'table {self.table.name} has no {column!r} in the row {", ".join(filter(None, self.cells.values()))}'
            )
        mean, is_estimate, error = cell.partition(':')[0].partition(' ± ')
        if is_estimate:
            return Estimate(float(mean), float(error), self.text('verdict') if 'paired' in column else '')
        try:
            return float(cell) if not cell.isdecimal() else int(cell)
        except ValueError:
            return cell

    def text(self, column: str) -> str:
        r"""The cell as a text, which is empty if there is none."""
        return self.cells.get(_key(column), '')

    def matches(self, wanted: dict[str, Any]) -> bool:
        r"""Whether each cell is as wanted: a number, a pattern such as :obj:`'GRF*'`, a list of both, :obj:`'<5'`,
        :obj:`'>=5'`, or :obj:`'!'` and a pattern that it must not match.
        """
        if unknown := wanted.keys() - self.cells.keys():
            raise Missing(f'table {self.table.name} has no column {unknown.pop()!r}')
        return all(_matches(self.cells[key], value) for key, value in wanted.items())

    @property
    def values(self) -> list[float]:
        r"""The values of single seeds or folds, if the table lists them."""
        return [float(value) for value in (self.text('seeds') or self.text('folds')).split()]

    def minus_by_seed(self, baseline: Row) -> Estimate:
        r"""The difference to another row, paired by the seeds of both."""
        return Estimate(*mean_error([value - base for value, base in zip(self.values, baseline.values, strict=True)]))


class Table:
    r"""The rows of :obj:`<folder>/<name>.csv`, which is read when they are needed."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name, self.path = name, folder / f'{name}.csv'

    @cached_property
    def rows(self) -> list[Row]:
        if not self.path.is_file():
            raise Missing(f'there is no table {self.name}')
        with self.path.open(newline='') as file:
            return [Row(self, cells) for cells in csv.DictReader(file)]

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __call__(self, **wanted: object) -> Table:
        r"""The rows that match, as in :obj:`motifs(model=['GCN', 'GAT'], layers='<4')`. A column :obj:`"data set"` is
        :obj:`data_set`.

        Raises:
            Missing: If there are none.
        """
        table = Table(self.path.parent, self.name)
        table.rows = [row for row in self if row.matches(wanted)]
        if not table.rows:
            raise Missing(f'table {self.name} has no row with {wanted}')
        return table

    def row(self, **wanted: object) -> Row:
        r"""The only row that matches."""
        first, *more = self(**wanted)
        if more:
            raise Missing(f'table {self.name} has {1 + len(more)} rows with {wanted}; one is needed')
        return first

    def cell(self, column: str, **wanted: object) -> Any:
        r"""A cell of the only row that matches."""
        return self.row(**wanted)[column]

    def column(self, name: str) -> list[Any]:
        r"""The cells of a column that are not empty."""
        return [row[name] for row in self(**{_key(name): '?*'})]

    def distinct(self, column: str) -> list[Any]:
        return list(dict.fromkeys(self.column(column)))

    def best(self, column: str) -> Row:
        r"""The row with the largest mean in a column."""
        return max(self, key=lambda row: row[column].mean)

    @property
    def processor(self) -> str:
        r"""The processor that the table's Markdown file names."""
        path = self.path.with_suffix('.md')
        machine = re.search(r'^Machine: ([^,\n]*)', path.read_text() if path.is_file() else '', re.MULTILINE)
        return ' '.join(machine[1].replace('(R)', '').removesuffix('Processor').split()) if machine else '?'


def _key(column: str) -> str:
    return re.sub(r'\W+', '_', column)


def _matches(cell: str, wanted: Any) -> bool:
    if isinstance(wanted, list):
        return any(_matches(cell, choice) for choice in wanted)
    sign, text = re.fullmatch(r'(>=|<|!)?(.*)', str(wanted)).groups('')  # type: ignore[union-attr]
    if sign in ('>=', '<'):
        return cell != '' and (float(cell) >= float(text) if sign == '>=' else float(cell) < float(text))
    return fnmatchcase(cell, text) != (sign == '!')


def growth_rates(points: Iterable[tuple[float, float]]) -> list[float]:
    r"""The slopes of a curve on logarithmic axes, from point to point.

    >>> growth_rates([(1, 3), (2, 12), (4, 24)])
    [2.0, 1.0]
    """
    return [math.log(y / before) / math.log(x / start) for (start, before), (x, y) in pairwise(points)]


def form(value: Any, spec: str = 'short') -> str:
    r"""Formats a number, an estimate, or the smallest and largest of a list. :obj:`"short"` has two digits, or as many as there
    are before the point.

    >>> [form(153.6), form(6.29), form(0.351), form(0.0098), form([3.49, 12.4, 5]), form(Estimate(0.5, 0.25), '+.2f')]
    ['154', '6.3', '0.35', '0.0098', '3.5 to 12', '+0.50 ± 0.25']
    """
    if isinstance(value, list):
        return ' to '.join(dict.fromkeys(form(end, spec) for end in (min(value), max(value))))
    if spec != 'short':
        return format(value, spec)
    return f'{value:.0f}' if abs(value) >= 10 else f'{value:.1f}' if abs(value) >= 1 else f'{float(f"{value:.2g}"):g}'
