"""The kernel of Eq. 5: exact, estimated, and as Theorem 4.2 has it."""

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from graphs import GRAPH_NAMES, GRAPHS, ring, small_digraph, small_graph, uneven_graphs, weighted
from grids import at_night, covering
from numpy.typing import NDArray
from oracles import as_numpy, confidence, explicit_walks, masked_attention, standard_scores
from torch import Tensor
from torch_geometric.data import Batch, Data

from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks.rwgnk import RWGNKMask
from pyg_topomask.operators.base import low_rank_operator
from pyg_topomask.ops import masked_linear_attention
from pyg_topomask.testing import assert_mask_operator
from pyg_topomask.transforms import AddRandomWalkKernel
from pyg_topomask.utils.random import counter_uniform
from pyg_topomask.walks import expected as expected_visits

Matrix = NDArray[np.float64]
LAM = torch.tensor([0.7, 1.3], dtype=torch.float64)
SEEDS = 300
DIAGONAL = np.eye(6, dtype=bool)


def hops(data: Data, transition: str) -> Matrix:
    """The probabilities of the hops, zero where a node has nowhere to go."""
    edges, weight, num_nodes, _ = as_numpy(data)
    matrix = np.zeros((num_nodes, num_nodes))
    for (i, j), w in zip(edges.T, weight, strict=True):
        matrix[i, j] += 1.0 if transition == 'uniform' else abs(w)
    total = matrix.sum(1, keepdims=True)
    return np.divide(matrix, total, out=np.zeros_like(matrix), where=total > 0)


def expected_frequency(data: Data, lam: float, survival: list[float], transition: str = 'uniform') -> Matrix:
    """Row k: E[f_k], where a walk adds lambda^l to the node that it is at after l hops."""
    step = hops(data, transition)
    total, at = np.zeros_like(step), np.eye(len(step))
    for length, probability in enumerate(survival):
        total += lam**length * probability * at
        at = at @ step
    return total


def kernel(frequency: Matrix, alpha: float) -> Matrix:
    """Eq. 5."""
    result = np.zeros((len(frequency), len(frequency)))
    for k, vector in enumerate(frequency):
        for j, other_vector in enumerate(frequency):
            result[k, j] = vector @ other_vector / (np.linalg.norm(vector) ** alpha * np.linalg.norm(other_vector) ** alpha)
    return result


def exact(heads: int = 2, **settings: Any) -> RWGNKMask:
    return RWGNKMask(**{'heads': heads, 'num_walks': None, 'p_halt': 0.3, 'lam': LAM[:heads], **settings}).double()


def sampled(heads: int = 2, **settings: Any) -> RWGNKMask:
    return RWGNKMask(**{'heads': heads, 'num_walks': 3, 'p_halt': 0.3, 'lam': LAM[:heads], **settings}).double()


def dense(mask: RWGNKMask, data: Data) -> Matrix:
    return mask(data).to_dense().detach().numpy()


# The equation ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(('alpha', 'transition'), covering([0.0, 0.5, 1.0, 2.0], ['uniform', 'weight']))
@pytest.mark.parametrize('graph', GRAPH_NAMES)
def test_exact_mask_is_the_kernel_of_expected_frequency_vectors(graph: str, alpha: float, transition: str) -> None:
    data = GRAPHS[graph]()
    actual = dense(exact(alpha=alpha, transition=transition), data)
    survival = [0.7**length for length in range(4)]
    expected = [kernel(expected_frequency(data, lam, survival, transition), alpha) for lam in LAM.tolist()]
    np.testing.assert_allclose(actual, np.stack(expected), rtol=1e-5, atol=1e-6)


def test_exact_mask_with_another_distribution_of_lengths() -> None:
    data = small_digraph()
    actual = dense(exact(walk_length='fixed:2', max_walk_length=4), data)
    expected = [kernel(expected_frequency(data, lam, [1.0, 1.0, 1.0]), 1.0) for lam in LAM.tolist()]
    np.testing.assert_allclose(actual, np.stack(expected), atol=1e-12)


@pytest.mark.parametrize(
    ('graph', 'alpha', 'independent'),
    covering(['no_edges', 'self_loop', 'undirected', 'directed', 'disconnected'], [0.0, 0.5, 1.0], [False, True], strength=2),
)
def test_sampled_mask_is_the_kernel_of_the_frequencies_of_its_walks(graph: str, alpha: float, independent: bool) -> None:
    """The walks are taken one by one, and counted as Sec. 4.2 says."""
    data = GRAPHS[graph]()
    edges, _, num_nodes, _ = as_numpy(data)
    frequencies = np.zeros((2, 2, num_nodes, num_nodes))
    for ensemble in range(2):
        draw = counter_uniform(10 + ensemble * independent, torch.arange(num_nodes), 3)
        walks = explicit_walks(
            edges, num_nodes, 3, 0.7 ** np.arange(4), lambda step, walker, draw=draw: float(draw(step, torch.tensor([walker])))
        )
        for head, lam in enumerate(LAM.tolist()):
            for start, node_walks in enumerate(walks):
                for taken in node_walks:
                    for length, node in enumerate([start, *edges[1, taken]]):
                        frequencies[ensemble, head, start, node] += lam**length / 3
    norms = np.linalg.norm(frequencies, axis=-1, keepdims=True)
    query, key = frequencies / norms**alpha
    actual = dense(sampled(alpha=alpha, independent_ensembles=independent, seed=5), data)
    np.testing.assert_allclose(actual, query @ key.transpose(0, 2, 1), rtol=1e-6, atol=1e-6)


CASES: dict[str, Callable[[], RWGNKMask]] = {
    'exact': lambda: exact(),
    'exact_unnormalized': lambda: exact(alpha=0.0, transition='weight'),
    'sampled': lambda: sampled(),
    'sampled_unnormalized': lambda: sampled(alpha=0.0),
    'sampled_independent': lambda: sampled(alpha=0.5, independent_ensembles=True, transition='weight'),
}


@pytest.mark.parametrize(
    ('case', 'graph'),
    [
        *covering(['exact', 'sampled'], GRAPH_NAMES),
        *((case, 'batch') for case in CASES if case not in ('exact', 'sampled')),
    ],
)
def test_operator_behaves_as_its_matrix(case: str, graph: str) -> None:
    assert_mask_operator(CASES[case](), GRAPHS[graph]())


def test_norms_without_numba_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = dense(sampled(), GRAPHS['batch']())
    monkeypatch.setitem(sys.modules, 'numba', None)
    np.testing.assert_allclose(dense(sampled(), GRAPHS['batch']()), expected, rtol=1e-5, atol=1e-7)


def test_norms_do_not_depend_on_the_blocks_they_are_computed_in(monkeypatch: pytest.MonkeyPatch) -> None:
    data = Batch.from_data_list(uneven_graphs())
    whole = dense(exact(), data)
    for block in (1, 50):
        monkeypatch.setattr(expected_visits, '_BLOCK', block)
        np.testing.assert_allclose(dense(exact(), data), whole, rtol=1e-12)


# Theorem 4.2 ----------------------------------------------------------------------------------------------------------


def gamma(matrix: Matrix) -> Matrix:
    """Gamma(A) = sum_i (i + 1) A^i."""
    inverse = np.linalg.inv(np.eye(len(matrix)) - matrix)
    return inverse @ inverse


def adjacency(data: Data) -> Matrix:
    return (hops(data, 'uniform') > 0).astype(float)


def untruncated(lam: float, p_halt: float) -> RWGNKMask:
    mask = RWGNKMask(1, None, p_halt, 120, lam, alpha=0.0).double()
    with torch.no_grad():
        mask.log_lam.fill_(np.log(lam))  # the number given is kept in single precision
    return mask


@pytest.mark.parametrize(('lam', 'p_halt'), [(1.0, 0.4), (0.6, 0.0), (0.9, 0.2)])
def test_kernel_of_a_regular_graph_counts_discounted_walks(lam: float, p_halt: float) -> None:
    complete = torch.combinations(torch.arange(5)).t()
    for size, edges in ((7, ring(7)), (5, torch.cat([complete, complete.flip(0)], dim=1))):
        data = weighted(edges, size, seed=0)
        matrix = adjacency(data)
        expected = gamma((1 - p_halt) * lam / matrix.sum(1).max() * matrix)
        np.testing.assert_allclose(dense(untruncated(lam, p_halt), data)[0], expected, rtol=1e-9)


def test_kernel_of_other_graphs_is_between_those_of_the_extreme_degrees() -> None:
    data, lam, p_halt = small_graph(), 0.6, 0.5
    matrix, actual = adjacency(data), dense(untruncated(lam, p_halt), data)[0]
    rho, degree = (1 - p_halt) * lam, matrix.sum(1)
    assert rho * np.linalg.eigvalsh(matrix).max() < degree.min()  # else the series of the upper bound does not converge
    lower, upper = gamma(rho / degree.max() * matrix), gamma(rho / degree.min() * matrix)
    assert (lower <= actual + 1e-9).all()
    assert (actual <= upper + 1e-9).all()
    assert (lower < actual - 1e-3).any()
    assert (actual < upper - 1e-3).any()


# The estimate ---------------------------------------------------------------------------------------------------------


def samples(mask: RWGNKMask, data: Data) -> Matrix:
    matrices = []
    for mask.seed in range(SEEDS):
        matrices.append(dense(mask, data)[0])
    return np.stack(matrices)


@pytest.mark.parametrize(
    'settings',
    [at_night({}), at_night({'p_halt': 0.0}), at_night({'transition': 'weight'}), {'sampler': 'antithetic', 'num_walks': 4}],
)
def test_two_ensembles_without_normalisation_are_unbiased_everywhere(settings: dict[str, object]) -> None:
    data = small_digraph()
    expected = dense(exact(1, alpha=0.0, **{**settings, 'num_walks': None}), data)[0]
    z_scores = standard_scores(samples(sampled(1, alpha=0.0, independent_ensembles=True, **settings), data), expected)
    assert np.abs(z_scores).max() < confidence(10 * 36)


def test_one_ensemble_is_unbiased_off_the_diagonal_and_biased_upwards_on_it() -> None:
    data = small_graph()
    z_scores = standard_scores(samples(sampled(1, alpha=0.0, lam=1.3), data), dense(exact(1, alpha=0.0, lam=1.3), data)[0])
    assert np.abs(z_scores[~DIAGONAL]).max() < confidence(10 * 36)
    assert z_scores[DIAGONAL].min() > confidence(10 * 36)


def test_normalisation_biases_the_mean_entry_downwards_in_inverse_proportion_to_the_walks() -> None:
    data = small_graph()
    expected, lam = dense(exact(1, lam=1.0), data)[0][~DIAGONAL], 1.0
    walks = np.array([4, 16])
    estimates = [samples(sampled(1, lam=lam, num_walks=number), data) for number in walks.tolist()]
    for estimate in estimates:
        np.testing.assert_allclose(estimate[:, DIAGONAL], 1.0)
    gaps = np.stack([(estimate[:, ~DIAGONAL] - expected).mean(1) for estimate in estimates], axis=1) * walks
    assert standard_scores(gaps, np.zeros(2)).max() < -confidence(2)
    few, many = gaps.mean(0)
    # What is left is of second order in 1 / num_walks.
    assert abs(few - many) < confidence(1) * np.sqrt(gaps.var(0, ddof=1).sum() / SEEDS) + abs(few) / 4


# Parameters -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize('alpha', [0.0, 1.0, 1.5])
@pytest.mark.parametrize('make', [exact, sampled])
def test_gradient_of_the_discount(make: Callable[..., RWGNKMask], alpha: float) -> None:
    mask, graph = make(alpha=alpha), Graph.from_data(small_digraph())

    def product(log_lam: Tensor, x: Tensor) -> Tensor:
        return torch.func.functional_call(mask, {'log_lam': log_lam}, (graph,)).matmul(x)

    x = torch.randn(6, 2, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(product, (LAM.log().requires_grad_(), x), atol=1e-6)


@pytest.mark.parametrize('independent', [False, True])
@pytest.mark.parametrize('alpha', [0.0, 1.0])
def test_gradients_through_entries_and_through_products_agree(alpha: float, independent: bool) -> None:
    mask = sampled(alpha=alpha, independent_ensembles=independent)
    graph, weight = Graph.from_data(small_digraph()), torch.randn(6, 6, dtype=torch.float64)
    (by_products,) = torch.autograd.grad((mask(graph).to_dense() * weight).sum(), mask.log_lam)
    entries = mask(graph).entries()
    picked = weight[entries.pattern.row.long(), entries.pattern.col.long()]
    (by_entries,) = torch.autograd.grad((entries.value * picked).sum(), mask.log_lam)
    torch.testing.assert_close(by_products, by_entries, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize('num_walks', [2, None])
def test_gradients_of_large_discounts_do_not_underflow(num_walks: int | None) -> None:
    graph, gradients = Graph.from_data(Data(edge_index=ring(10), num_nodes=11)), []  # one node without edges
    q, k, v, upstream = torch.rand(4, 11, 1, 4, dtype=torch.float64)
    for dtype in (torch.float64, torch.float32):
        mask = RWGNKMask(num_walks=num_walks, max_walk_length=10, lam=31.0).to(dtype)
        out = masked_linear_attention(q.to(dtype), k.to(dtype), v.to(dtype), mask(graph))
        gradients.append(torch.autograd.grad((out * upstream.to(dtype)).sum(), mask.log_lam)[0].double())
    torch.testing.assert_close(*gradients, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize('num_walks', [None, 4])
@pytest.mark.parametrize('route', ['edges', 'blocks'])
def test_gradients_of_tiny_keys_do_not_overflow(num_walks: int | None, route: str) -> None:
    """Keys of far nodes are tiny compared with those of their graph, as random features of long vectors are."""
    if num_walks is None and route == 'edges':
        route = 'auto'
    edge_index = ring(24)
    mask = RWGNKMask(lam=9.0, num_walks=num_walks, max_walk_length=6)
    generator = torch.Generator().manual_seed(0)
    for exponent in range(28, 45):
        q, k, v = (torch.rand(24, 1, size, generator=generator) for size in (4, 4, 3))
        k[:16] *= 10.0**-exponent
        leaves = [q.requires_grad_(), k.detach().requires_grad_(), v.requires_grad_(), mask.log_lam]
        out = masked_linear_attention(*leaves[:3], mask(Graph(edge_index, 24)), route)
        grads = torch.autograd.grad((out * torch.rand(out.shape, generator=generator)).sum(), leaves)
        assert all(grad.isfinite().all() for grad in (out, *grads)), exponent


def test_entries_of_small_scales_do_not_underflow() -> None:
    operator = RWGNKMask(max_walk_length=20, lam=5.0, alpha=2.0)(Graph.from_data(Data(edge_index=ring(10), num_nodes=10)))
    entries = operator.entries()
    dense = operator.to_dense()[:, entries.pattern.row.long(), entries.pattern.col.long()]
    assert bool((entries.value > 0).any())
    torch.testing.assert_close(entries.value, dense, rtol=1e-4, atol=0)


def test_discount_starts_as_given_and_is_reset_to_it() -> None:
    mask = RWGNKMask(3, lam=0.25)
    assert mask.lam.tolist() == [0.25] * 3
    assert RWGNKMask(2, lam=torch.tensor([0.5, 2.0])).lam.tolist() == [0.5, 2.0]
    with torch.no_grad():
        mask.log_lam.fill_(3.0)
    mask.reset_parameters()
    assert mask.lam.tolist() == [0.25] * 3
    assert list(mask.state_dict()) == ['log_lam']


def test_discount_may_be_fixed_and_zero() -> None:
    mask = RWGNKMask(2, lam=0.0, learnable=False)
    assert not mask.log_lam.requires_grad
    assert torch.equal(mask(small_graph()).to_dense(), torch.eye(6).expand(2, -1, -1))


# The first step -------------------------------------------------------------------------------------------------------


def test_walks_are_drawn_anew_in_training_if_asked() -> None:
    data, mask = small_graph(), sampled(resample='forward')
    assert not np.array_equal(dense(mask, data), dense(mask, data))
    mask.eval()
    assert np.array_equal(dense(mask, data), dense(mask, data))
    assert np.array_equal(dense(mask, data), dense(sampled(), data))
    drawn = [mask(data, torch.Generator().manual_seed(seed)).to_dense() for seed in (1, 1, 2)]
    assert torch.equal(drawn[0], drawn[1])
    assert not torch.equal(drawn[0], drawn[2])


def test_walks_by_weight_take_no_edge_of_weight_zero() -> None:
    data, share = small_digraph(), torch.zeros(9, dtype=torch.float64)
    share[[0, 1, 4, 7, 8]] = 1.0
    graph = Graph.from_data(data).with_weights(share)
    walks = sampled(transition='weight').prepare(graph).query
    taken = set(zip(walks.start[walks.length == 1].tolist(), walks.visited[walks.length == 1].tolist(), strict=True))
    assert taken <= {tuple(pair) for pair in data.edge_index[:, share > 0].flip(0).t().tolist()}


def test_stored_walks_have_to_fit() -> None:
    data = AddRandomWalkKernel(num_walks=3, p_halt=0.3, seed=4)(small_graph())
    np.testing.assert_allclose(dense(sampled(seed=4), small_graph()), dense(sampled(), data))
    shorter = sampled(seed=4, max_walk_length=2)
    assert dense(shorter, data).shape == (2, 6, 6)
    assert shorter.prepare(Graph.from_data(data)).query.max_walk_length == 2
    np.testing.assert_allclose(dense(exact(), data), dense(exact(), small_graph()))
    with pytest.raises(ValueError, match=r'^max_walk_length: got 4, but the stored walks end after 3'):
        sampled(max_walk_length=4)(data)
    with pytest.raises(ValueError, match=r'^independent_ensembles: got True for data that stores one'):
        sampled(independent_ensembles=True)(data)


@pytest.mark.parametrize('alpha', [0.0, 0.7, 1.0])
@pytest.mark.parametrize('ensembles', [False, True], ids=['one_ensemble', 'two_ensembles'])
def test_norms_of_rows_that_attention_divides_out_change_nothing(alpha: float, ensembles: bool) -> None:
    torch.manual_seed(0)
    mask = RWGNKMask(2, alpha=alpha, lam=torch.tensor([0.5, 2.0]), independent_ensembles=ensembles).double()
    graph = Graph.from_data(small_digraph())
    q, k, v = (torch.rand(graph.num_nodes, 2, 3, dtype=torch.float64, requires_grad=True) for _ in range(3))
    leaves = [q, k, v, mask.log_lam]
    expected = masked_linear_attention(q, k, v, mask(graph), 'features')
    gradients = torch.autograd.grad(expected.square().sum(), leaves)
    for changed in (lambda operator: operator, lambda operator: operator.T.T, lambda operator: operator * 2.0):
        actual = masked_linear_attention(q, k, v, changed(mask(graph)), 'edges')
        torch.testing.assert_close(actual, expected)
        for one, other in zip(torch.autograd.grad(actual.square().sum(), leaves), gradients, strict=True):
            torch.testing.assert_close(one, other)


def test_what_is_made_of_the_kernel_has_factors_of_its_own() -> None:
    """Attention leaves the factors of rows out, which are those of columns in the transpose."""
    data = small_digraph()
    given = RWGNKMask(1, 4, independent_ensembles=True).double()(data)
    q, k, v = torch.rand(3, 6, 1, 4, dtype=torch.float64)
    left, right = torch.rand(2, 6, 1, 1, dtype=torch.float64) + 0.1
    for operator in (given.T, given * low_rank_operator(Graph.from_data(data), left, right)):
        actual = masked_linear_attention(q, k, v, operator, 'edges').detach().numpy()
        expected = masked_attention(*(x.numpy() for x in (q, k, v)), operator.to_dense().detach().numpy())
        np.testing.assert_allclose(actual, expected, rtol=1e-9)
