"""Grids of cases: what runs by day, and what at night alone."""

from collections.abc import Container, Iterable
from itertools import combinations, product
from typing import Any

import pytest


def at_night(*values: Any) -> Any:
    """A case that runs with the marker `nightly` alone."""
    return pytest.param(*values, marks=pytest.mark.nightly)


def by_day(values: Iterable[Any], daily: Container[Any]) -> list[Any]:
    """The values as parameters, of which only the daily ones run by day."""
    return [pytest.param(value) if value in daily else at_night(value) for value in values]


def covering(*axes: Iterable[Any], strength: int = 1) -> list[Any]:
    """All combinations of the values of the axes, of which some run by day: with a strength of 1 every value of an axis is in
    one of them, and with 2 every pair of values of two axes. Values that run at night alone are in none.
    """
    parameters = [[_as_parameter(value) for value in axis] for axis in axes]
    cases = list(product(*parameters))
    by_number = product(*(range(len(axis)) for axis in parameters))
    parts = {
        index: set(combinations(enumerate(numbers), strength))
        for index, (case, numbers) in enumerate(zip(cases, by_number, strict=True))
        if not any(value.marks for value in case)
    }
    missing, daily = set().union(*parts.values()), set()
    while missing:
        best = max(parts, key=lambda index: len(parts[index] & missing))
        missing -= parts[best]
        daily.add(best)
    values = [[value for parameter in case for value in parameter.values] for case in cases]
    return [pytest.param(*case) if index in daily else at_night(*case) for index, case in enumerate(values)]


def _as_parameter(value: Any) -> Any:
    return value if isinstance(value, type(pytest.param())) else pytest.param(value)
