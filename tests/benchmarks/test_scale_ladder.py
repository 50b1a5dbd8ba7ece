"""The ladder of the benchmark "scale", with memory and time that are known."""

import math
from collections.abc import Callable

import pytest

from benchmarks.scale import climb, summarize

LADDER = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)


def needs(gib: Callable[[int], float], seconds: Callable[[int], float] = lambda size: 1.0) -> Callable[[int], dict[str, float]]:
    def measure(size: int) -> dict[str, float]:
        return {'GiB': gib(size) if gib(size) <= 8 else math.inf, 'nodes': size, 'seconds': seconds(size)}

    return measure


def test_climbs_until_memory_ends() -> None:
    cells = climb(needs(lambda size: 3e-6 * size), LADDER, 100_000)
    assert list(cells) == [100_000, 1_000_000, 10_000_000]
    row = summarize(cells)
    assert [row[f'N in {budget} GiB'] for budget in (2, 4, 8)] == [100_000, 1_000_000, 1_000_000]
    assert row['bytes per node'] == pytest.approx(3e-6 * 2**30)
    assert row['GiB'] == pytest.approx(3.0)


def test_climbs_until_time_ends() -> None:
    cells = climb(needs(lambda size: 1e-9 * size, lambda size: 100 * (size / 1_000_000) ** 2), LADDER, 100_000)
    assert list(cells) == [100_000, 1_000_000]
    assert summarize(cells)['N in 8 GiB'] == '>= 1000000'


def test_descends_to_what_fits() -> None:
    cells = climb(needs(lambda size: 3e-8 * size**2), LADDER, 100_000)
    assert list(cells) == [1_000, 10_000, 100_000]
    row = summarize(cells)
    assert [row[f'N in {budget} GiB'] for budget in (2, 4, 8)] == [1_000, 10_000, 10_000]
    assert row['bytes per node'] == pytest.approx((3.0 - 0.03) / 9_000 * 2**30)
    assert math.isnan(row['GiB'])
