import numpy as np
import pytest
import torch
from graphs import path, random_tree
from numpy.typing import NDArray
from torch import Tensor

from pyg_topomask.graphs.forest import Forest
from pyg_topomask.machine import backend
from pyg_topomask.operators.tree_distance import TreeDistance, choose_method, plan_distance
from pyg_topomask.operators.tree_exp import TreeExp, plan_exp

Array = NDArray[np.float64]
CPU = torch.device('cpu')
METHODS = ['rings', 'fft']


def path_product(length: Array, a: float, x: Array) -> Array:
    """exp(a dist) on a path: sums from the left and from the right."""
    left, right = x.copy(), x.copy()
    for i in range(1, len(x)):
        left[i] += np.exp(a * length[i - 1]) * left[i - 1]
        right[-1 - i] += np.exp(a * length[-i]) * right[-i]
    return left + right - x


def exp_product(edges: Tensor, weight: Tensor, a: Tensor, x: Tensor) -> Tensor:
    forest = Forest.from_edges(edges, x.size(0))
    return TreeExp(a, torch.zeros_like(a), forest.lengths(edges, weight), *plan_exp(forest, CPU)).apply(x)


def distance_product(edges: Tensor, f: Tensor, x: Tensor, method: str) -> Tensor:
    return TreeDistance(f, method, plan_distance(Forest.from_edges(edges, x.size(0)), CPU, method)).apply(x)


@pytest.mark.parametrize('shuffled', [False, True])
def test_exp_on_a_long_path_against_two_passes_of_numpy(shuffled: bool) -> None:
    size = 20_000
    label = torch.randperm(size) if shuffled else torch.arange(size)
    weight = torch.rand(size - 1, dtype=torch.float64)
    x = torch.randn(size, 1, 2, dtype=torch.float64)
    out = exp_product(label[path(size)], weight, torch.tensor([-0.02], dtype=torch.float64), x)
    expected = path_product(weight.numpy(), -0.02, x[label, 0].numpy())
    np.testing.assert_allclose(out[label, 0].numpy(), expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize('a', [-1e-3, -0.1, -3.0])
def test_exp_in_float32_on_a_path_of_200_nodes(a: float) -> None:
    x = torch.rand(200, 1, 1)
    out = exp_product(path(200), torch.ones(199), torch.tensor([a]), x)
    expected = path_product(np.ones(199), float(np.float32(a)), x[:, 0].double().numpy())
    np.testing.assert_allclose(out[:, 0].numpy(), expected, rtol=2e-5)


@pytest.mark.parametrize('a', [-1e-5, -1e-4, -1e-2])
def test_rounding_does_not_add_up_along_a_path(a: float) -> None:
    size = 100_000
    out = exp_product(path(size), torch.ones(size - 1), torch.tensor([a]), torch.ones(size, 1, 1))
    expected = path_product(np.ones(size - 1), float(np.float32(a)), np.ones((size, 1)))
    np.testing.assert_allclose(out[:, 0].numpy(), expected, rtol=5e-6)


def test_sums_with_edges_of_no_and_of_great_length() -> None:
    x = torch.arange(1.0, 5.0).view(4, 1, 1)
    out = exp_product(path(4), torch.tensor([0.0, 1e30, 0.0]), torch.tensor([-1.0]), x)
    assert out.flatten().tolist() == [3.0, 3.0, 7.0, 7.0]


def test_the_given_terms_are_not_changed() -> None:
    x = torch.ones(50, 1, 2, requires_grad=True)
    out = exp_product(random_tree(50), torch.ones(49), torch.tensor([-1.0]), x)
    grad = torch.ones_like(out)
    out.backward(grad)
    assert x.detach().eq(1).all()
    assert grad.eq(1).all()


@pytest.mark.parametrize('method', METHODS)
def test_distance_on_a_long_path_is_a_convolution(method: str) -> None:
    size, hops = 20_000 if method == 'fft' else 2_000, 300
    f = torch.randn(1, hops + 1, dtype=torch.float64)
    f[0, -1] = 0.25
    x = torch.randn(size, 1, 1, dtype=torch.float64)
    out = distance_product(path(size), f, x, method)
    near = np.concatenate([f[0].numpy()[:0:-1], f[0].numpy()]) - 0.25
    terms = x.flatten().numpy()
    np.testing.assert_allclose(out.flatten().numpy(), np.convolve(terms, near, 'same') + 0.25 * terms.sum(), atol=1e-8)


def test_methods_agree_on_a_large_tree_with_all_gradients() -> None:
    edges, results = random_tree(3000), []
    f = torch.randn(2, 12, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    for method in METHODS:
        x = torch.randn(3000, 2, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
        inputs = [x.requires_grad_(), f.clone().requires_grad_()]
        out = distance_product(edges, inputs[1], inputs[0], method)
        results.append((out, *torch.autograd.grad((out.square() / 1e3).sum(), inputs)))
    for actual, expected in zip(*results, strict=True):
        torch.testing.assert_close(actual, expected, rtol=1e-8, atol=1e-7)


@pytest.mark.parametrize(('method', 'compiled'), [('rings', True), ('rings', False), ('fft', True)])
def test_rounding_stays_below_the_magnitude(method: str, compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many leaves in the middle of a path, most of whose nodes do not see them but for rounding."""
    if not compiled:  # machine code sums in float64
        monkeypatch.setattr(backend, 'has_numba', lambda: False)
    size, middle = 4000, 400
    edges = torch.cat([path(1000) + 3000, torch.stack([torch.full((3000,), 3000 + middle), torch.arange(3000)])], dim=1)
    f = torch.zeros(1, 6)
    f[0, 1], f[0, 3], f[0, 4] = 1e-3, 1.0, 1.0
    operator = TreeDistance(f, method, plan_distance(Forest.from_edges(edges, size), CPU, method))
    at, hops = np.append(f[0].double().numpy(), np.zeros(1000)), np.abs(np.arange(1000) - middle)
    for scale in (1.0, 0.0):  # of the numbers on the path
        x = (torch.rand(size) + 0.5) * torch.cat([torch.ones(3000), scale * torch.ones(1000)])
        leaves, line = np.split(x.double().numpy(), [3000])
        of_line = np.convolve(line, np.append(at[5:0:-1], at[:6]), 'same') + at[hops + 1] * leaves.sum()
        of_leaves = at[0] * leaves + at[2] * (leaves.sum() - leaves) + (at[hops + 1] * line).sum()
        error = np.abs(operator.apply(x.view(-1, 1, 1)).flatten().numpy() - np.append(of_leaves, of_line))
        magnitude = operator.magnitude(x.view(-1, 1, 1)).flatten().double().numpy()
        assert (error <= 16 * torch.finfo(torch.float32).eps * magnitude).all()
        # A bound that is far too large would make rows count as empty.
        assert (magnitude[3500:] < 100).all()


def test_half_precision_is_summed_in_float32() -> None:
    x = torch.ones(2000, 1, 1, dtype=torch.bfloat16)
    out = exp_product(path(2000), torch.zeros(1999), torch.tensor([-1.0]), x)
    assert out.dtype == torch.bfloat16
    assert out.eq(2000).all()
    assert distance_product(path(2000), torch.ones(1, 3), x, 'rings').eq(2000).all()


def choice(edges: Tensor, size: int, max_distance: int) -> str:
    return choose_method(Forest.from_edges(edges, size), max_distance, CPU)


def test_the_method_is_chosen_by_diameter() -> None:
    assert choice(path(3000), 3000, 3000) == 'fft'
    assert choice(path(3000), 3000, 10) == 'rings'
    assert choice(random_tree(3000), 3000, 3000) == 'rings'
    assert choice(path(1)[:, :0], 0, 3) == 'rings'


def test_unknown_methods_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^method: got 'dense'; accepted: auto, "):
        choose_method(Forest.from_edges(path(3), 3), 3, CPU, 'dense')
