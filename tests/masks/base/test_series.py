import math
from collections.abc import Callable
from functools import reduce

import numpy as np
import pytest
import torch
from grids import by_day
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from oracles import power_series
from scipy.linalg import cosm, expm, fractional_matrix_power, inv
from torch import Tensor

from pyg_topomask.masks import convolve, deconvolve, kernel_series, modulation
from pyg_topomask.masks.base.series import KERNELS

Matrix = NDArray[np.float64]


def numbers(seed: int, *size: int) -> Tensor:
    return torch.randn(*size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def positive_series(seed: int, *size: int) -> Tensor:
    """Series that start at 0.5 or more."""
    series = numbers(seed, *size)
    return torch.cat([series[..., :1].abs() + 0.5, series[..., 1:]], dim=-1)


# Convolutions ---------------------------------------------------------------------------------------------------------


def test_convolution(subtests: pytest.Subtests) -> None:
    for first, second in [(1, 1), (4, 4), (2, 5), (5, 2), (1, 6)]:
        with subtests.test(first=first, second=second):
            a, b = numbers(1, first), numbers(2, second)
            np.testing.assert_allclose(convolve(a, b).numpy(), np.convolve(a, b), atol=1e-14)


def test_convolution_of_heads_is_head_by_head() -> None:
    a, b, shared = numbers(1, 3, 2, 4), numbers(2, 3, 2, 5), numbers(3, 5)
    both, with_shared = convolve(a, b), convolve(a, shared)
    assert both.shape == with_shared.shape == (3, 2, 8)
    for index in np.ndindex(3, 2):
        np.testing.assert_allclose(both[index].numpy(), np.convolve(a[index], b[index]), atol=1e-14)
        np.testing.assert_allclose(with_shared[index].numpy(), np.convolve(a[index], shared), atol=1e-14)


@settings(deadline=None, max_examples=50, derandomize=True)
@given(length=st.integers(1, 8), heads=st.integers(0, 3), seed=st.integers(0, 1000))
def test_deconvolution_is_the_inverse_of_the_convolution_with_itself(length: int, heads: int, seed: int) -> None:
    series = positive_series(seed, *(() if heads == 0 else (heads,)), length)
    # f_k grows with k; what is lost to rounding is relative to it.
    f = deconvolve(series)
    size = max(1.0, float(f.abs().max()) ** 2)
    assert f.shape == series.shape
    torch.testing.assert_close(convolve(f, f)[..., :length], series, rtol=0, atol=1e-12 * size)
    grown = deconvolve(convolve(series, series))
    size = max(1.0, float(grown.abs().max()) ** 2, float(f.abs().max()) ** 2)
    torch.testing.assert_close(grown[..., :length], series, rtol=0, atol=1e-9 * size)


def test_deconvolution_has_no_terms_beyond_the_original() -> None:
    f = torch.tensor([2.0, -1.0, 0.5], dtype=torch.float64)
    torch.testing.assert_close(deconvolve(convolve(f, f)), torch.cat([f, torch.zeros(2, dtype=torch.float64)]))
    torch.testing.assert_close(deconvolve(convolve(-f, -f))[:3], f)


@pytest.mark.parametrize('factors', [1, 3, 4, 5])
def test_deconvolution_into_several_factors(factors: int) -> None:
    f = positive_series(factors, 2, 4).requires_grad_()
    alpha = torch.from_numpy(np.stack([reduce(np.convolve, [row] * factors) for row in f.detach().numpy()])).requires_grad_()
    size = min(8, alpha.size(1))  # rounding errors grow with the number of terms
    expected = torch.nn.functional.pad(f, (0, size - 4))
    torch.testing.assert_close(deconvolve(alpha, factors)[:, :size], expected, rtol=0, atol=1e-8)
    assert torch.autograd.gradcheck(lambda alpha: deconvolve(alpha, factors)[..., :3], (alpha,))
    with pytest.raises(ValueError, match=r'^factors: got 0'):
        deconvolve(alpha, 0)


def test_deconvolution_needs_a_first_coefficient_above_zero(subtests: pytest.Subtests) -> None:
    for series in [[0.0, 1.0], [-1.0, 1.0], [float('nan'), 1.0], [], [[1.0, 1.0], [0.0, 1.0]]]:
        with subtests.test(series=series), pytest.raises(ValueError, match=r'^alpha: got .*above 0'):
            deconvolve(torch.tensor(series))


@pytest.mark.parametrize('dtype', [torch.float32, torch.float64])
def test_deconvolution_refuses_a_first_coefficient_of_rounding_alone(dtype: torch.dtype) -> None:
    """cos(pi / 2) is 6e-17 in floating point: f would be 8e-9, 1e8, -6e23."""
    series = torch.tensor([math.cos(math.pi / 2), math.pi / 2, 0.0], dtype=dtype)
    with pytest.raises(ValueError, match=r'^alpha: got .*rounding'):
        deconvolve(series)
    with pytest.raises(ValueError, match=r'^alpha: got .*rounding'):
        deconvolve(torch.stack([torch.ones(3, dtype=dtype), series]))
    small = torch.tensor([1e-20, 2e-20, 1e-20], dtype=dtype)
    torch.testing.assert_close(deconvolve(small), torch.tensor([1e-10, 1e-10, 0.0], dtype=dtype), rtol=1e-6, atol=1e-16)
    # The heat kernel of time 40 starts at e^-40, beside 2e-2.
    expected = [math.exp(-20) * 20**k / math.factorial(k) for k in range(13)]
    np.testing.assert_allclose(modulation('heat:40', 12).numpy(), expected, rtol=1e-6)


@pytest.mark.parametrize('shape', [(4,), (2, 4)])
def test_gradients(shape: tuple[int, ...]) -> None:
    first, second = positive_series(1, *shape).requires_grad_(), positive_series(2, *shape[:-1], 3).requires_grad_()
    assert torch.autograd.gradcheck(convolve, (first, second))
    assert torch.autograd.gradcheck(deconvolve, (first,))


# Kernels --------------------------------------------------------------------------------------------------------------


def laplacian(seed: int, num_nodes: int = 9) -> Matrix:
    """The symmetric normalised Laplacian of a random weighted undirected graph, I - D^-1/2 A D^-1/2."""
    generator = np.random.default_rng(seed)
    upper = np.triu(generator.random((num_nodes, num_nodes)) * (generator.random((num_nodes, num_nodes)) < 0.4), k=1)
    adjacency = upper + upper.T
    degree = adjacency.sum(1)
    root = np.divide(1.0, np.sqrt(degree), out=np.zeros(num_nodes), where=degree > 0)
    return np.eye(num_nodes) - root[:, None] * adjacency * root


def regularized(matrix: Matrix, sigma: float, d: float) -> Matrix:
    return fractional_matrix_power(np.eye(len(matrix)) + sigma**2 * matrix, -d).real


def steps(matrix: Matrix, a: float, p: int) -> Matrix:
    return np.linalg.matrix_power(a * np.eye(len(matrix)) - matrix, p)


DENSE: dict[str, list[tuple[dict[str, float], Callable[[Matrix], Matrix]]]] = {
    'heat': [
        ({}, lambda lap: expm(-lap)),
        ({'scale': 0.3}, lambda lap: expm(-0.3 * lap)),
        ({'scale': 5.0}, lambda lap: expm(-5.0 * lap)),
        ({'scale': 0.0}, lambda lap: np.eye(len(lap))),
    ],
    'diffusion': [
        ({}, lambda lap: expm(-lap / 2)),
        ({'scale': 1.7}, lambda lap: expm(-(1.7**2) / 2 * lap)),
    ],
    'regularized_laplacian': [
        ({}, lambda lap: inv(np.eye(len(lap)) + lap)),
        ({'scale': 1.5}, lambda lap: inv(np.eye(len(lap)) + 1.5**2 * lap)),
        ({'d': 2}, lambda lap: regularized(lap, 1.0, 2)),
        ({'scale': 0.7, 'd': 0.5}, lambda lap: regularized(lap, 0.7, 0.5)),
        ({'scale': 1.2, 'd': 2.5}, lambda lap: regularized(lap, 1.2, 2.5)),
    ],
    'random_walk': [
        ({}, lambda lap: steps(lap, 2.0, 2)),
        ({'scale': 3.0, 'p': 5}, lambda lap: steps(lap, 3.0, 5)),
        ({'scale': 2.5, 'p': 0}, lambda lap: np.eye(len(lap))),
    ],
    'cosine': [
        ({}, lambda lap: cosm(np.pi / 4 * lap)),
        ({'scale': 1.1}, lambda lap: cosm(1.1 * lap)),
    ],
    'inverse_cosine': [
        ({}, lambda lap: cosm(np.pi / 4 * lap)),
        ({'scale': 0.4}, lambda lap: cosm(0.4 * lap)),
    ],
}
CASES = [(name, parameters, dense) for name, variants in DENSE.items() for parameters, dense in variants]


def test_every_kernel_is_compared() -> None:
    assert set(DENSE) == set(KERNELS)


@pytest.mark.parametrize('seed', by_day(range(3), [0]))
@pytest.mark.parametrize(('name', 'parameters', 'dense'), CASES, ids=lambda value: value if isinstance(value, str) else None)
def test_series_of_high_order_is_the_dense_kernel(
    name: str, parameters: dict[str, float], dense: Callable[[Matrix], Matrix], seed: int
) -> None:
    matrix = laplacian(seed)
    series = kernel_series(name, order=110, **parameters)
    assert series.dtype == torch.float64
    assert series.shape == (111,)
    actual = power_series(np.eye(len(matrix)) - matrix, series.numpy())
    np.testing.assert_allclose(actual, dense(matrix), rtol=0, atol=1e-10)


@pytest.mark.parametrize('name', KERNELS)
def test_shorter_series_are_the_beginnings_of_longer_ones(name: str) -> None:
    for order in range(5):
        assert torch.equal(kernel_series(name, order), kernel_series(name, 20)[: order + 1])


@pytest.mark.parametrize(('scale', 'order'), [(1.0, 400), (60.0, 300), (200.0, 600)])
def test_series_of_very_high_order_are_finite(scale: float, order: int) -> None:
    """With W = 1, where the Laplacian is 0, exp(-t L) = cos(s L) = 1."""
    assert float(kernel_series('heat', order, scale=scale).sum()) == pytest.approx(1.0, abs=1e-9)
    assert kernel_series('cosine', order).isfinite().all()


@pytest.mark.parametrize('name', KERNELS)
def test_scale_after_the_name(name: str) -> None:
    assert torch.equal(kernel_series(f'{name}:2.25', 6), kernel_series(name, 6, scale=2.25))
    assert not torch.allclose(kernel_series(f'{name}:2.25', 6), kernel_series(name, 6))
    assert torch.equal(kernel_series('random_walk:3', 6, p=4), kernel_series('random_walk', 6, scale=3.0, p=4))


@pytest.mark.parametrize(('name', 'parameters'), [('heat:0.5', {'scale': 3.0}), ('random_walk:3:p=1', {'p': 2})])
def test_a_parameter_given_twice_is_refused(name: str, parameters: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r'^name: got .* accepted: each parameter once'):
        kernel_series(name, 2, **parameters)


@pytest.mark.parametrize('name', ['random_walk:2.5:p=3', 'random_walk:p=3:2.5', 'random_walk:scale=2.5:p=3.0'])
def test_parameters_after_the_name(name: str) -> None:
    """(a I - L)^p = ((a - 1) I + W)^p."""
    expected = np.poly1d([1.0, 1.5]) ** 3
    np.testing.assert_allclose(kernel_series(name, 4).numpy(), [*expected.coeffs[::-1], 0.0], rtol=1e-14)
    np.testing.assert_allclose(kernel_series('regularized_laplacian:d=2', 3).numpy(), [0.25, 0.25, 0.1875, 0.125], rtol=1e-14)


def test_unknown_names_and_scales_are_refused(subtests: pytest.Subtests) -> None:
    for name in [
        'unknown',
        '',
        ':2',
        'Heat',
        'heat:fast',
        'heat:1:2',
        'heat:',
        'heat:scale=',
        'random_walk:p=1:p=2',
        'heat:1=2=3',
    ]:
        with subtests.test(name=name):
            with pytest.raises(ValueError, match=r'^name: got ') as error:
                kernel_series(name, 3)
            assert repr(name) in str(error.value)
            assert all(known in str(error.value) for known in KERNELS)


def test_bad_parameters_are_refused(subtests: pytest.Subtests) -> None:
    for name, parameters in [
        ('heat', {'time': 2.0}),
        ('cosine', {'d': 2.0}),
        ('random_walk', {'p': 1.5}),
        ('random_walk', {'scale': 1.9}),
        ('regularized_laplacian', {'d': -1.0}),
        ('heat', {'scale': -1.0}),
    ]:
        with subtests.test(name=name, parameters=parameters):
            ((parameter, value),) = parameters.items()
            with pytest.raises(ValueError, match=rf"^name: got '{name}' with .*{parameter}.*; accepted: "):
                kernel_series(name, 3, **parameters)
            with pytest.raises(ValueError, match=rf"^name: got '{name}:{parameter}={value}' with .*; accepted: "):
                modulation(f'{name}:{parameter}={value}', 3)


def test_series_below_the_smallest_number_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^name: got 'heat:800' .*; accepted: parameters whose series is finite and not zero"):
        kernel_series('heat:800', 4)


def test_range_of_a_parameter_is_told() -> None:
    with pytest.raises(ValueError, match='finite numbers from 2 for its scale'):
        modulation('random_walk', 4, scale=0.5)


# Modulations ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize('time', [0.4, 1.0, 3.0, 40.0])
def test_modulation_of_the_heat_kernel_is_that_of_half_the_time(time: float) -> None:
    """exp(-t L) = exp(-t L / 2)^2."""
    expected = [math.exp(-time / 2) * (time / 2) ** k / math.factorial(k) for k in range(41)]
    np.testing.assert_allclose(modulation(f'heat:{time}', 40).numpy(), expected, rtol=1e-9)


@pytest.mark.parametrize('d', [1, 2, 3])
def test_modulation_of_the_regularized_laplacian_is_that_of_half_the_power(d: int) -> None:
    expected = kernel_series('regularized_laplacian', 8, scale=1.3, d=d / 2)
    torch.testing.assert_close(modulation('regularized_laplacian', 8, scale=1.3, d=d), expected)


@pytest.mark.parametrize('name', ['heat', 'diffusion', 'regularized_laplacian', 'random_walk:3'])
def test_features_made_with_a_modulation_give_the_kernel(name: str) -> None:
    """Lemma 3.1: (sum_l f_l W^l)(sum_l f_l W^l)^T is the kernel, once the modulation is long enough."""
    matrix = laplacian(7)
    features = power_series(np.eye(len(matrix)) - matrix, modulation(name, 60).numpy())
    kernel, _, scale = name.partition(':')
    dense = {'heat': 0, 'diffusion': 0, 'regularized_laplacian': 0}
    expected = DENSE[kernel][dense[kernel]][1](matrix) if kernel in dense else steps(matrix, float(scale), 2)
    np.testing.assert_allclose(features @ features.T, expected, atol=1e-8)
