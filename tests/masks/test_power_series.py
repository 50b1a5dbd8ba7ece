"""Power series of the weights: the equation, its parameters, their gradients, and batches."""

import copy
from collections.abc import Callable

import numpy as np
import pytest
import torch
from dense_attention import assert_dense_attention, dense_weight
from graphs import GRAPH_NAMES, GRAPHS, small_graph, small_weighted_graph
from grids import covering
from numpy.typing import NDArray
from oracles import power_series, weight_matrix
from scipy.linalg import cosm, expm, inv
from torch import Tensor
from torch_geometric.data import Data

from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks import PowerSeriesMask

Matrix = NDArray[np.float64]
NORMALIZATIONS = ['sym', 'rw', None]
GROWS = 'ignore:The spectral radius:UserWarning'


def numbers(seed: int, *size: int) -> Tensor:
    return torch.randn(*size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def with_parameters(mask: PowerSeriesMask, values: Tensor) -> PowerSeriesMask:
    mask = mask.double()
    with torch.no_grad():
        mask.coefficients.copy_(values)
    return mask


def dense(mask: PowerSeriesMask, data: Data) -> Matrix:
    return mask(data).to_dense().detach().numpy()


# The equation ---------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings(GROWS)
@pytest.mark.parametrize(('order', 'normalization'), covering([0, 1, 4], NORMALIZATIONS))
@pytest.mark.parametrize('graph', GRAPH_NAMES)
def test_coefficients_are_those_of_the_powers(graph: str, order: int, normalization: str | None) -> None:
    data, alpha = GRAPHS[graph](), numbers(order, 2, order + 1)
    mask = with_parameters(PowerSeriesMask(2, order, normalization=normalization, positive=False), alpha)
    weight = weight_matrix(data, normalization)
    expected = np.stack([power_series(weight, coefficients) for coefficients in alpha.numpy()])
    np.testing.assert_allclose(dense(mask, data), expected, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(mask(data).T.to_dense().detach().numpy(), expected.transpose(0, 2, 1), rtol=1e-6, atol=1e-6)


@pytest.mark.filterwarnings(GROWS)
@pytest.mark.parametrize(('graph', 'normalization'), covering(['directed', 'batch', 'weighted'], NORMALIZATIONS))
@pytest.mark.parametrize(('order', 'length'), [(0, 1), (3, 2), (6, 4)])
def test_f_is_a_square_root(graph: str, order: int, length: int, normalization: str | None) -> None:
    """Sum_k (f * f)_k W^k = (sum_l f_l W^l)^2."""
    data, f = GRAPHS[graph](), numbers(order, 2, length)
    mask = with_parameters(PowerSeriesMask(2, order, None, 'f', normalization, positive=False), f)
    root = np.stack([power_series(weight_matrix(data, normalization), coefficients) for coefficients in f.numpy()])
    np.testing.assert_allclose(dense(mask, data), root @ root, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(
        mask.alpha.detach().numpy(), np.stack([np.convolve(coefficients, coefficients) for coefficients in f.numpy()])
    )


@pytest.mark.parametrize('graph', [small_graph, small_weighted_graph, lambda: GRAPHS['batch']()])
def test_f_makes_masks_of_symmetric_weights_positive_semi_definite(graph: Callable[[], Data]) -> None:
    data = graph()
    reverse = torch.cat([data.edge_index, data.edge_index.flip(0)], dim=1)
    weight = data.get('edge_weight')
    data = Data(edge_index=reverse, edge_weight=None if weight is None else weight.repeat(2), num_nodes=data.num_nodes)
    lowest_alpha = 0.0
    for seed in range(20):
        values = numbers(seed, 3, 4)
        matrix = dense(with_parameters(PowerSeriesMask(3, 6, parameterization='f', positive=False), values), data)
        np.testing.assert_allclose(matrix, matrix.transpose(0, 2, 1), atol=1e-6)
        assert np.linalg.eigvalsh(matrix).min() > -1e-6
        alpha_mask = with_parameters(PowerSeriesMask(3, 3, positive=False), values)
        lowest_alpha = min(lowest_alpha, np.linalg.eigvalsh(dense(alpha_mask, data)).min())
    assert lowest_alpha < -0.1  # while alpha alone does not


KERNEL_MATRICES: dict[str, Callable[[Matrix], Matrix]] = {
    'heat': lambda lap: expm(-lap),
    'heat:0.3': lambda lap: expm(-0.3 * lap),
    'diffusion:1.4': lambda lap: expm(-0.98 * lap),
    'regularized_laplacian': lambda lap: inv(np.eye(len(lap)) + lap),
    'random_walk': lambda lap: np.linalg.matrix_power(2 * np.eye(len(lap)) - lap, 2),
    'cosine': lambda lap: cosm(np.pi / 4 * lap),
}


def test_kernels_by_name(subtests: pytest.Subtests) -> None:
    for name, parameterization in [
        *((name, 'alpha') for name in KERNEL_MATRICES),
        *((name, 'f') for name in KERNEL_MATRICES if name != 'cosine'),
    ]:
        with subtests.test(name=name, parameterization=parameterization):
            data = small_graph()
            mask = PowerSeriesMask(2, 80, name, parameterization).double()
            expected = KERNEL_MATRICES[name](np.eye(6) - weight_matrix(data, 'sym'))
            np.testing.assert_allclose(dense(mask, data), np.stack([expected] * 2), atol=1e-5)
            assert mask.coefficients.shape == (2, 81 if parameterization == 'alpha' else 41)


# Parameters -----------------------------------------------------------------------------------------------------------


def test_initial_coefficients() -> None:
    torch.testing.assert_close(PowerSeriesMask(2, 2).alpha, torch.tensor([[1.0, 0.5, 0.25]] * 2))
    given = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    assert torch.equal(PowerSeriesMask(2, 2, given, positive=False).alpha, given)
    assert torch.equal(PowerSeriesMask(2, 2, given[1], positive=False).alpha, given[[1, 1]])
    assert torch.equal(PowerSeriesMask(1, 1, torch.tensor([1, 2]), positive=False).alpha, torch.tensor([[1.0, 2.0]]))


def test_initial_f_gives_the_coefficients_up_to_its_length() -> None:
    mask = PowerSeriesMask(1, 5, torch.tensor([4.0, 8.0, 0.0]), 'f')
    assert mask.coefficients.tolist() == [[2.0, 2.0, -1.0]]
    assert mask.alpha.tolist() == [[4.0, 8.0, 0.0, -4.0, 1.0]]


def test_given_coefficients_are_copied_and_reset_to() -> None:
    given = torch.tensor([1.0, 2.0], requires_grad=True)
    mask = PowerSeriesMask(2, 1, given, positive=False)
    with torch.no_grad():
        mask.coefficients[0].fill_(7.0)
    assert given.tolist() == [1.0, 2.0]
    assert mask.coefficients.is_leaf
    assert mask.coefficients[1].tolist() == [1.0, 2.0]
    mask.reset_parameters()
    assert mask.coefficients.tolist() == [[1.0, 2.0]] * 2


@pytest.mark.parametrize('parameterization', ['alpha', 'f'])
def test_coefficients_may_be_fixed(parameterization: str) -> None:
    mask = PowerSeriesMask(2, 2, 'heat:0.2', parameterization, learnable=False)
    assert not mask.coefficients.requires_grad
    x = torch.ones(6, 2, 1, requires_grad=True)
    mask(small_graph()).matmul(x).sum().backward()
    assert x.grad is not None
    assert mask.coefficients.grad is None
    mask.reset_parameters()
    assert not mask.coefficients.requires_grad


@pytest.mark.parametrize(
    ('coefficients', 'positive'), [(None, True), ('heat', True), ([1.0, -0.5, 0.2], False), ([1.0, 0.0, 0.5], False)], ids=str
)
def test_coefficients_stay_positive_where_they_start_so(coefficients: object, positive: bool) -> None:
    mask = PowerSeriesMask(order=2, coefficients=coefficients)
    assert mask.positive == positive
    assert torch.equal(mask.alpha, mask.coefficients.exp() if positive else mask.coefficients)


@pytest.mark.parametrize('parameterization', ['alpha', 'f'])
def test_positive_coefficients_start_as_given_and_stay_positive(parameterization: str) -> None:
    data = small_graph()
    plain = PowerSeriesMask(2, 4, 'heat', parameterization, positive=False).double()
    mask = PowerSeriesMask(2, 4, 'heat', parameterization, positive=True).double()
    torch.testing.assert_close(mask.alpha, plain.alpha, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(dense(mask, data), dense(plain, data), rtol=1e-6, atol=1e-6)
    before, optimizer = mask.alpha.detach().clone(), torch.optim.SGD(mask.parameters(), lr=1.0)
    for _ in range(20):
        optimizer.zero_grad()
        mask(data).to_dense().sum().backward()
        optimizer.step()
    assert (mask.alpha > 0).all()
    assert (mask.alpha < before).all()
    assert (mask(data).to_dense() >= 0).all()
    mask.reset_parameters()
    torch.testing.assert_close(mask.alpha, before)


@pytest.mark.parametrize('positive', [False, True])
def test_coefficients_of_a_kernel_are_exact_in_double_precision(positive: bool) -> None:
    mask = PowerSeriesMask(2, 6, 'heat', positive=positive)
    expected = np.exp(-1.0) / np.cumprod([1.0, *range(1, 7)])
    assert mask.coefficients.dtype == torch.float32
    np.testing.assert_allclose(mask.alpha.detach().numpy(), [expected] * 2, rtol=1e-6)
    mask.double().reset_parameters()
    np.testing.assert_allclose(mask.alpha.detach().numpy(), [expected] * 2, rtol=1e-14)
    assert copy.deepcopy(mask).float().coefficients.dtype == torch.float32


# Gradients ------------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings(GROWS)
@pytest.mark.parametrize(
    ('graph', 'normalization', 'transposed', 'parameterization', 'positive'),
    covering(
        ['negative_weights', 'parallel_edges'],
        NORMALIZATIONS,
        [False, True],
        [pytest.param('alpha', False), pytest.param('f', False), pytest.param('alpha', True)],
        strength=2,
    ),
)
def test_gradients_of_coefficients_edge_weights_and_input(
    graph: str, parameterization: str, positive: bool, normalization: str | None, transposed: bool
) -> None:
    data = GRAPHS[graph]()
    mask = PowerSeriesMask(2, 4, None, parameterization, normalization, positive=positive).double()
    size = data.num_nodes or 0

    def product(coefficients: Tensor, weight: Tensor, x: Tensor) -> Tensor:
        weighted = Graph.from_tensors(data.edge_index, size, weight)
        operator = torch.func.functional_call(mask, {'coefficients': coefficients}, (weighted,))
        return (operator.T if transposed else operator).matmul(x)

    inputs = [mask.coefficients.detach() + 0.1 * numbers(1, *mask.coefficients.shape), data.edge_weight, numbers(2, size, 2, 1)]
    assert torch.autograd.gradcheck(product, [tensor.clone().requires_grad_() for tensor in inputs], atol=1e-6, fast_mode=True)


def test_weights_that_require_a_gradient_are_read_anew_on_a_common_graph() -> None:
    mask, weight = PowerSeriesMask(order=2, normalization='rw').double(), torch.ones(14, dtype=torch.float64)
    graph = Graph.from_tensors(small_graph().edge_index, 6, weight.requires_grad_())
    for seed in range(3):
        with torch.no_grad():
            weight.copy_(numbers(seed, 14).abs())
        data = Data(edge_index=graph.edge_index, edge_weight=weight.detach(), num_nodes=6)
        expected = power_series(weight_matrix(data, 'rw'), np.array([1.0, 0.5, 0.25]))
        out = mask(graph).to_dense()
        np.testing.assert_allclose(out[0].detach().numpy(), expected, atol=1e-12)
        out.square().sum().backward()
    assert weight.grad is not None
    assert weight.grad.any()


@pytest.mark.filterwarnings(GROWS)
@pytest.mark.parametrize(
    ('graph', 'parameterization', 'normalization', 'transposed'),
    covering(['undirected', 'negative_weights', 'batch'], ['alpha', 'f'], NORMALIZATIONS, [False, True], strength=2),
)
def test_masked_attention_and_all_its_gradients_are_those_of_the_dense_matrix(
    graph: str, parameterization: str, normalization: str | None, transposed: bool
) -> None:
    data = GRAPHS[graph]()
    size, edge_index = data.num_nodes or 0, data.edge_index
    weight = data.edge_weight.clone() if 'edge_weight' in data else numbers(5, edge_index.size(1)).abs() + 0.5
    mask = PowerSeriesMask(2, 4, None, parameterization, normalization, positive=False).double()
    weight.requires_grad_()
    operator = mask(Graph.from_tensors(edge_index, size, weight, data.get('batch')))
    matrix, alpha = dense_weight(edge_index, weight, size, normalization), mask.coefficients
    if parameterization == 'f':
        f = mask.coefficients
        alpha = torch.stack([sum(f[:, p] * f[:, s - p] for p in range(3) if 0 <= s - p < 3) for s in range(5)], dim=1)
    powers = [torch.eye(size, dtype=torch.float64)]
    for _ in range(4):
        powers.append(powers[-1] @ matrix)
    series = torch.einsum('hk,knm->hnm', alpha, torch.stack(powers))
    learned = [weight, mask.coefficients]
    if transposed:
        operator, series = operator.T, series.transpose(1, 2)
    assert_dense_attention(operator, series, learned)


# Batches --------------------------------------------------------------------------------------------------------------


def test_double_is_exact_also_without_edge_weights() -> None:
    data = small_graph()
    mask = PowerSeriesMask(order=3, coefficients='heat:0.5').double()
    mask.reset_parameters()
    series = np.exp(-0.5) * 0.5 ** np.arange(4) / np.array([1, 1, 2, 6])
    matrix = weight_matrix(data, 'sym')
    expected = sum(c * np.linalg.matrix_power(matrix, k) for k, c in enumerate(series))
    np.testing.assert_allclose(mask(data).to_dense().detach()[0].numpy(), expected, rtol=1e-13, atol=1e-15)


def test_squares_warn_of_the_powers_that_they_leave_out() -> None:
    with pytest.warns(UserWarning, match=r"^order // 2 is 2, which leaves out 15% of the kernel 'heat:2'"):
        mask = PowerSeriesMask(order=4, coefficients='heat:2', parameterization='f')
    assert mask.alpha.shape == (1, 5)
    assert PowerSeriesMask(order=5, parameterization='f').order == 4
