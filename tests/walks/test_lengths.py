import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.stats import chi2, poisson
from torch import Tensor

from pyg_topomask.walks import FixedLength, GeometricLength, PoissonLength, SurvivalLength, WalkLength
from pyg_topomask.walks.settings import walk_length
from pyg_topomask.walks.steps import IIDSampler

HOPS = np.arange(6)
CASES: list[tuple[WalkLength, NDArray[np.float64]]] = [
    (GeometricLength(0.25), 0.75**HOPS),
    (GeometricLength(0.0), np.ones(6)),
    (FixedLength(3), (HOPS <= 3).astype(float)),
    (FixedLength(0), (HOPS == 0).astype(float)),
    (PoissonLength(1.7), poisson.sf(HOPS - 1, 1.7)),
    (SurvivalLength((1, 0.5, 0.5, 0.1)), np.array([1, 0.5, 0.5, 0.1, 0, 0])),
]


def test_survival_is_that_of_the_distribution(subtests: pytest.Subtests) -> None:
    for length, expected in CASES:
        with subtests.test(length=length, expected=expected):
            np.testing.assert_allclose(length.survival(5).numpy(), expected, atol=1e-12)
            np.testing.assert_allclose(length.survival(2).numpy(), expected[:3], atol=1e-12)
            assert length.survival(0).tolist() == [1.0]


@pytest.mark.parametrize('length', [case[0] for case in CASES], ids=repr)
def test_lengths_have_the_given_survival(length: WalkLength) -> None:
    survival, count = length.survival(4), 20_000
    numbers = torch.rand(count, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    lengths = IIDSampler().lengths(lambda stream, walkers: numbers[walkers], torch.arange(count), survival)
    observed = np.bincount(lengths.numpy(), minlength=5)
    expected = -np.diff(np.append(survival.numpy(), 0.0)) * count
    possible = expected > 0
    assert (observed[~possible] == 0).all()
    statistic = ((observed - expected)[possible] ** 2 / expected[possible]).sum()
    assert statistic < chi2.isf(1e-5, max(1, possible.sum() - 1))


@pytest.mark.parametrize('dtype', [torch.float32, torch.float64])
def test_lengths_at_the_bounds_of_the_numbers(dtype: torch.dtype) -> None:
    largest = torch.nextafter(torch.ones(1, dtype=dtype), torch.zeros(1, dtype=dtype))
    numbers = torch.cat([torch.zeros(1, dtype=dtype), largest])

    def lengths(p_halt: float, hops: int) -> list[int]:
        def uniform(stream: int | Tensor, walkers: Tensor) -> Tensor:
            return numbers

        return IIDSampler().lengths(uniform, torch.arange(2), GeometricLength(p_halt).survival(hops)).tolist()

    assert lengths(0.5, 3) == [3, 0]
    assert lengths(0.0, 3) == [3, 3]
    assert lengths(0.5, 0) == [0, 0]


def test_distributions_by_name() -> None:
    assert walk_length('geometric:0.3') == GeometricLength(0.3)
    assert walk_length('fixed:3') == FixedLength(3)
    assert walk_length('poisson:2') == PoissonLength(2.0)
    assert walk_length('survival:1, 0.7,0.3') == SurvivalLength((1.0, 0.7, 0.3))
    assert walk_length(FixedLength(2)) == FixedLength(2)


def test_longest_is_the_last_that_survives(subtests: pytest.Subtests) -> None:
    for length, expected in CASES:
        with subtests.test(length=length, expected=expected):
            last = int(np.flatnonzero(expected)[-1])
            assert length.longest == (None if last == 5 else last)


BAD = ['unknown:1', 'poisson', 'poisson:-1', 'geometric:1', 'fixed:1.5', 'fixed:-1', 'fixed:inf', 'fixed:1,2', '']
BAD += ['survival:', 'survival:0.5', 'survival:1,0.5,0.6', 'survival:1,x']


def test_unknown_distributions_are_refused(subtests: pytest.Subtests) -> None:
    for text in BAD:
        with subtests.test(text=text), pytest.raises(ValueError, match=r'^walk_length: got'):
            walk_length(text)


def test_bad_arguments_are_named(subtests: pytest.Subtests) -> None:
    for name, make in [
        ('p_halt', lambda: GeometricLength(1.0)),
        ('p_halt', lambda: GeometricLength(-0.5)),
        ('hops', lambda: FixedLength(-1)),
        ('mean', lambda: PoissonLength(0.0)),
        ('mean', lambda: PoissonLength(float('inf'))),
        ('given', lambda: SurvivalLength(())),
        ('given', lambda: SurvivalLength((0.9,))),
        ('given', lambda: SurvivalLength((1.0, 0.5, 0.6))),
        ('given', lambda: SurvivalLength((1.0, float('nan')))),
        ('max_walk_length', lambda: GeometricLength(0.5).survival(-1)),
    ]:
        with subtests.test(name=name), pytest.raises(ValueError, match=f'^{name}: got'):
            make()
