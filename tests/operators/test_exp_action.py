import importlib

import numpy as np
import pytest
import torch
from graphs import random_edges
from grids import covering
from numpy.typing import NDArray
from scipy.linalg import expm
from scipy.special import ive
from scipy.stats import poisson
from torch import Tensor

from pyg_topomask.graphs.sparse_pattern import SparsePattern
from pyg_topomask.operators.exponential import GlobalReductions, chebyshev_coefficients, taylor_coefficients
from pyg_topomask.operators.polynomial import polynomial_action

METHODS = {'chebyshev': chebyshev_coefficients, 'powers': taylor_coefficients}


def sparse(size: int, symmetric: bool, seed: int = 0) -> tuple[SparsePattern, Tensor, Tensor]:
    """A random sparse matrix of norm 1: pattern, entries [1, nnz] and the dense matrix."""
    edges = random_edges(size, 3 * size, seed)
    dense = torch.zeros(size, size, dtype=torch.float64)
    dense[edges[0], edges[1]] = torch.rand(3 * size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) - 0.3
    dense = dense + dense.T if symmetric else dense
    dense = dense / torch.linalg.matrix_norm(dense, 2) if symmetric else dense / dense.abs().sum(1).max()
    row, col = dense.nonzero().t()
    return SparsePattern.from_sorted(row, col, size, size), dense[row, col].unsqueeze(0), dense


def chebyshev(matrix: NDArray[np.float64], coefficients: NDArray[np.float64]) -> NDArray[np.float64]:
    before, current = np.eye(len(matrix)), matrix
    total = coefficients[0] * before
    for c in coefficients[1:]:
        total = total + c * current
        before, current = current, 2 * matrix @ current - before
    return total


def taylor(matrix: NDArray[np.float64], coefficients: NDArray[np.float64]) -> NDArray[np.float64]:
    return sum(c * np.linalg.matrix_power(matrix, k) for k, c in enumerate(coefficients))


@pytest.mark.parametrize(('z', 'tolerance'), covering([0.0, 1e-3, 1.0, 7.5, 300.0], [1e-3, 1e-8, 1e-14]))
def test_coefficients_are_bessel_functions_and_poisson_probabilities(z: float, tolerance: float) -> None:
    coefficients = chebyshev_coefficients(torch.tensor([z], dtype=torch.float64), tolerance)[0].numpy()
    k = np.arange(len(coefficients))
    np.testing.assert_allclose(coefficients, np.where(k == 0, 1, 2) * ive(k, z), atol=1e-14)
    t = np.cos(np.linspace(0, np.pi, 500))
    assert np.abs(np.polynomial.chebyshev.chebval(t, coefficients) - np.exp(z * (t - 1))).max() <= tolerance
    coefficients = taylor_coefficients(torch.tensor([z], dtype=torch.float64), tolerance)[0].numpy()
    np.testing.assert_allclose(coefficients, poisson.pmf(np.arange(len(coefficients)), z), atol=1e-14)
    assert abs(coefficients.sum() - 1) <= tolerance + 1e-13


@pytest.mark.parametrize('method', METHODS)
def test_degree_is_that_of_the_hardest_head_and_grows_with_the_accuracy(method: str) -> None:
    make = METHODS[method]
    degrees = [make(torch.tensor([z]), 1e-8).size(1) for z in (0.1, 1.0, 10.0, 100.0)]
    assert degrees == sorted(set(degrees))
    assert make(torch.tensor([0.1, 100.0]), 1e-8).shape == (2, degrees[-1])
    assert make(torch.tensor([10.0]), 1e-4).size(1) < degrees[2] < make(torch.tensor([10.0]), 1e-12).size(1)
    if method == 'chebyshev':
        assert degrees[3] < 80  # about the root of z, where Taylor takes z


@pytest.mark.parametrize('method', METHODS)
def test_coefficients_are_differentiable(method: str) -> None:
    z = torch.tensor([0.3, 4.0], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda z: METHODS[method](z, 1e-6)[:, :5], [z])


@pytest.mark.parametrize('shared', [False, True])
@pytest.mark.parametrize('transpose', [False, True])
@pytest.mark.parametrize('method', METHODS)
def test_polynomial_is_that_of_the_dense_matrix(method: str, transpose: bool, shared: bool) -> None:
    pattern, value, dense = sparse(12, symmetric=False)
    coefficients = torch.randn(2, 6, dtype=torch.float64)
    x = torch.randn(12, 1, 3, dtype=torch.float64).expand(-1, 2, -1) if shared else torch.randn(12, 2, 3, dtype=torch.float64)
    oracle = {'chebyshev': chebyshev, 'powers': taylor}[method]
    polynomials = np.stack([oracle(dense.numpy().T if transpose else dense.numpy(), c) for c in coefficients.numpy()])
    expected = np.einsum('hnk,khc->nhc', polynomials, x.numpy())
    for entries in (value, value.clone().requires_grad_()):
        out = polynomial_action(coefficients, entries, pattern, x, method, transpose)
        np.testing.assert_allclose(out.detach().numpy(), expected, atol=1e-12)


@pytest.mark.parametrize('shared', [False, True])
@pytest.mark.parametrize('method', METHODS)
def test_many_chunks_of_columns_agree_with_one(method: str, shared: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    module = importlib.import_module('pyg_topomask.operators.polynomial')
    pattern, value, _ = sparse(12, symmetric=False)
    coefficients = torch.randn(2, 6, dtype=torch.float64, requires_grad=True)
    x = torch.randn(12, 1 if shared else 2, 50, dtype=torch.float64).expand(-1, 2, -1).requires_grad_(not shared)
    leaves, results = [coefficients] if shared else [coefficients, x], []
    for numbers in (module._NEAR, 1):
        monkeypatch.setattr(module, '_NEAR', numbers)
        assert len(module._chunks(x)) == (1 if numbers > 1 else -(-x[0].numel() // 32))
        out = polynomial_action(coefficients, value, pattern, x, method)
        results.append((out, *torch.autograd.grad(out.sin().sum(), leaves)))
    for actual, expected in zip(*results, strict=True):
        torch.testing.assert_close(actual, expected)


@pytest.mark.parametrize('method', METHODS)
def test_exponential_is_that_of_scipy(method: str) -> None:
    pattern, value, dense = sparse(40, symmetric=method == 'chebyshev')
    z, x = torch.tensor([0.5, 20.0], dtype=torch.float64), torch.randn(40, 2, 3, dtype=torch.float64)
    out = polynomial_action(METHODS[method](z, 1e-12), value, pattern, x, method)
    for head in range(2):
        expected = expm(float(z[head]) * (dense.numpy() - np.eye(40))) @ x[:, head].numpy()
        np.testing.assert_allclose(out[:, head].numpy(), expected, atol=1e-11)


@pytest.mark.parametrize('weighted', [False, True])
@pytest.mark.parametrize('transpose', [False, True])
@pytest.mark.parametrize('method', METHODS)
def test_gradients(method: str, transpose: bool, weighted: bool) -> None:
    pattern, value, _ = sparse(6, symmetric=False)
    coefficients = torch.randn(2, 5, dtype=torch.float64, requires_grad=True)
    x = torch.randn(6, 2, 2, dtype=torch.float64, requires_grad=True)

    def action(coefficients: Tensor, x: Tensor, value: Tensor = value) -> Tensor:
        return polynomial_action(coefficients, value, pattern, x, method, transpose)

    inputs = [coefficients, x, value.clone().requires_grad_()] if weighted else [coefficients, x]
    assert torch.autograd.gradcheck(action, inputs)
    _, pull = torch.func.vjp(lambda x: action(coefficients.detach(), x), x.detach())
    gradient = torch.autograd.grad(action(coefficients, x).sum(), x)[0]
    torch.testing.assert_close(pull(torch.ones_like(x))[0], gradient.detach())


def test_gradients_of_one_input_alone() -> None:
    pattern, value, _ = sparse(6, symmetric=False)
    x, c = torch.randn(6, 1, 2, dtype=torch.float64), torch.randn(1, 4, dtype=torch.float64)
    for x_grad, c_grad in ((True, False), (False, True)):
        inputs = [c.clone().requires_grad_(c_grad), x.clone().requires_grad_(x_grad)]
        assert torch.autograd.gradcheck(lambda c, x: polynomial_action(c, value, pattern, x, 'chebyshev'), inputs)


@pytest.mark.parametrize('transpose', [False, True])
@pytest.mark.parametrize('method', METHODS)
def test_gradients_with_a_block_that_heads_share(method: str, transpose: bool) -> None:
    pattern, value, _ = sparse(6, symmetric=False)
    x = torch.randn(6, 1, 40, dtype=torch.float64)
    for heads in (1, 3):
        c = torch.randn(heads, 4, dtype=torch.float64, requires_grad=True)
        alone = polynomial_action(c, value, pattern, x.repeat(1, 3, 1), method, transpose)
        weight = torch.randn_like(alone)
        expected = torch.autograd.grad((alone * weight).sum(), c)[0]
        actual = polynomial_action(c, value, pattern, x.expand(-1, 3, -1), method, transpose)
        torch.testing.assert_close(actual, alone)
        torch.testing.assert_close(torch.autograd.grad((actual * weight).sum(), c)[0], expected)
        _, pull = torch.func.vjp(lambda c: polynomial_action(c, value, pattern, x.expand(-1, 3, -1), method, transpose), c)
        torch.testing.assert_close(pull(weight)[0], expected)
        expanded, repeated = (x.clone().requires_grad_() for _ in range(2))
        polynomial_action(c, value, pattern, expanded.expand(-1, 3, -1), method, transpose).mul(weight).sum().backward()
        polynomial_action(c, value, pattern, repeated.repeat(1, 3, 1), method, transpose).mul(weight).sum().backward()
        torch.testing.assert_close(expanded.grad, repeated.grad)


def test_half_precision_is_computed_in_single() -> None:
    pattern, value, _ = sparse(12, symmetric=True)
    c, x = chebyshev_coefficients(torch.tensor([2.0]), 1e-6), torch.randn(12, 1, 3)
    c, value, x = c.bfloat16(), value.bfloat16(), x.bfloat16()
    expected = polynomial_action(c.float(), value.float(), pattern, x.float(), 'chebyshev')
    out = polynomial_action(c, value, pattern, x, 'chebyshev')
    assert out.dtype == torch.bfloat16
    torch.testing.assert_close(out, expected.bfloat16(), atol=1e-6, rtol=torch.finfo(torch.bfloat16).eps)


def test_empty_blocks() -> None:
    pattern, value, _ = sparse(6, symmetric=True)
    assert polynomial_action(torch.ones(2, 3), value, pattern, torch.ones(6, 2, 0), 'powers').shape == (6, 2, 0)


def test_an_edge_without_its_mirror_has_the_numbers_that_its_ends_had_before() -> None:
    pattern, _ = SparsePattern.from_pairs(torch.tensor([0, 1, 1]), torch.tensor([1, 0, 2]), 3, 3)
    assert GlobalReductions(pattern).asymmetric(torch.ones(3)) == (1, 2)
    assert GlobalReductions(pattern, torch.tensor([7, 5, 9])).asymmetric(torch.ones(3)) == (5, 9)
    assert GlobalReductions(pattern, torch.tensor([7, 5, 9])).asymmetric(torch.tensor([1.0, 2.0, 0.0])) == (7, 5)
