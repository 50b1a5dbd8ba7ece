import numpy as np
import pytest
import torch
from scipy.stats import chi2

from pyg_topomask.walks import geometric_survival
from pyg_topomask.walks.lengths import lengths_from_uniform


def test_survival_is_geometric() -> None:
    np.testing.assert_allclose(geometric_survival(0.25, 3).numpy(), [1.0, 0.75, 0.75**2, 0.75**3])
    assert geometric_survival(0.0, 4).tolist() == [1.0] * 5
    assert geometric_survival(0.5, 0).tolist() == [1.0]


@pytest.mark.parametrize('p_halt', [0.1, 0.5, 0.9])
def test_lengths_have_the_given_survival(p_halt: float) -> None:
    survival, count = geometric_survival(p_halt, 4), 20_000
    uniform = torch.rand(count, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    observed = np.bincount(lengths_from_uniform(uniform, survival).numpy(), minlength=5)
    expected = -np.diff(np.append(survival.numpy(), 0.0)) * count
    assert ((observed - expected) ** 2 / expected).sum() < chi2.isf(1e-5, 4)


@pytest.mark.parametrize('dtype', [torch.float32, torch.float64])
def test_lengths_at_the_bounds_of_the_numbers(dtype: torch.dtype) -> None:
    largest = torch.nextafter(torch.ones(1, dtype=dtype), torch.zeros(1, dtype=dtype))
    numbers = torch.cat([torch.zeros(1, dtype=dtype), largest])
    assert lengths_from_uniform(numbers, geometric_survival(0.5, 3)).tolist() == [3, 0]
    assert lengths_from_uniform(numbers, geometric_survival(0.0, 3)).tolist() == [3, 3]
    assert lengths_from_uniform(numbers, geometric_survival(0.5, 0)).tolist() == [0, 0]


@pytest.mark.parametrize(('name', 'p_halt', 'hops'), [('p_halt', 1.0, 2), ('p_halt', -0.5, 2), ('max_walk_length', 0.5, -1)])
def test_bad_arguments_are_named(name: str, p_halt: float, hops: int) -> None:
    with pytest.raises(ValueError, match=f'^{name}: got'):
        geometric_survival(p_halt, hops)
