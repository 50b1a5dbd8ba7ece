from collections.abc import Callable

import numpy as np
import pytest
import torch
from dense_attention import assert_dense_attention
from graphs import (
    GRAPH_NAMES,
    GRAPHS,
    random_edges,
    ring,
    small_digraph,
    small_graph,
    small_weighted_graph,
    undirected,
)
from grids import covering
from numpy.typing import NDArray
from oracles import as_numpy, same_graph, weight_matrix
from scipy.linalg import expm
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import expm_multiply
from torch import Tensor
from torch_geometric.data import Batch, Data

from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks.heat_kernel import HeatKernelMask
from pyg_topomask.ops import masked_linear_attention
from pyg_topomask.testing import assert_mask_operator

Matrix = NDArray[np.float64]
KINDS = ['laplacian', 'random_walk_laplacian', 'normalized_laplacian', 'adjacency']
SYMMETRIC = ('laplacian', 'normalized_laplacian')
LAM = [0.3, 2.0]


def mirrored(data: Data) -> Data:
    """The graph with every edge in both directions."""
    edges, weight, num_nodes, _ = as_numpy(data)
    both = torch.from_numpy(np.concatenate([edges, edges[::-1]], axis=1))
    result = Data(edge_index=both, edge_weight=torch.from_numpy(np.tile(weight, 2)), num_nodes=num_nodes)
    return Batch.from_data_list([mirrored(graph) for graph in data.to_data_list()]) if 'batch' in data else result


def generator(data: Data, kind: str) -> Matrix:
    """-T of the table, for the adjacency without its shift."""
    matrix = weight_matrix(data, None)
    degree = np.abs(matrix).sum(0)
    inverse = np.array([0.0 if d == 0 else 1.0 / d for d in degree])
    laplacian = np.diag(degree) - matrix
    return {
        'laplacian': -laplacian,
        'random_walk_laplacian': -laplacian * inverse[None],
        'normalized_laplacian': -laplacian * np.sqrt(inverse)[:, None] * np.sqrt(inverse)[None],
        'adjacency': matrix,
    }[kind]


def kernel(data: Data, kind: str, lam: float) -> Matrix:
    return expm(lam * generator(data, kind)) if data.num_nodes else np.zeros((0, 0))


def assert_kernel(actual: Matrix, data: Data, kind: str, lam: float) -> None:
    expected = kernel(data, kind, lam)
    if kind == 'adjacency' and len(expected) > 0:
        # One factor for each component, which is at most the one that makes the norm 1.
        count, component = connected_components(csr_array(weight_matrix(data, None)), connection='weak')
        for label in range(count):
            inside = np.ix_(component == label, component == label)
            factor = actual[inside].sum() / expected[inside].sum()
            radius = np.abs(np.linalg.eigvals(np.abs(weight_matrix(data, None)[inside]))).max()
            assert np.exp(-1.5 * lam * radius - 1) <= factor <= np.exp(-lam * radius) * (1 + 1e-9)
            expected[inside] *= factor
    np.testing.assert_allclose(actual, expected, atol=1e-7)


def graphs(kind: str) -> dict[str, Callable[[], Data]]:
    if kind in SYMMETRIC:
        return {name: lambda make=make: mirrored(make()) for name, make in GRAPHS.items()}
    return GRAPHS


# The equation ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize('graph', GRAPH_NAMES)
@pytest.mark.parametrize('kind', KINDS)
def test_matrix_is_the_exponential(kind: str, graph: str) -> None:
    data = graphs(kind)[graph]()
    dense = HeatKernelMask(2, kind, LAM).double()(data).to_dense().detach().numpy()
    for lam, matrix in zip(LAM, dense, strict=True):
        assert_kernel(matrix, data, kind, lam)
        assert not matrix[same_graph(data) == 0].any()


@pytest.mark.parametrize(
    ('kind', 'graph'), covering(KINDS, ['disconnected', 'negative_weights', 'trailing_empty_graph', 'empty'])
)
def test_operator_behaves_as_its_matrix(kind: str, graph: str) -> None:
    data = graphs(kind)[graph]()
    mask = HeatKernelMask(2, kind, LAM, tolerance=1e-11)
    assert_mask_operator(mask, data)
    if graph == 'negative_weights':
        assert_mask_operator(mask.T, data)


def clique(size: int) -> list[tuple[int, int]]:
    return [(i, j) for j in range(size) for i in range(j)]


@pytest.mark.parametrize(('dtype', 'tolerance'), [(torch.float32, 1e-4), (torch.float64, 1e-7)])
@pytest.mark.parametrize('alone', [True, False])
def test_sparse_parts_beside_dense_ones_keep_their_attention(alone: bool, dtype: torch.dtype, tolerance: float) -> None:
    # Along the path rows of the kernel are smaller by up to e^-29 than in the clique.
    path = [(node, node + 1) for node in range(29, 59)]
    lollipop = Data(edge_index=undirected(clique(30) + path), num_nodes=60)
    larger = Data(edge_index=undirected(clique(60)), num_nodes=60)
    batch = Batch.from_data_list([lollipop] if alone else [lollipop, larger])
    q, k, v = torch.rand(3, batch.num_nodes, 1, 4, dtype=dtype).unbind(0)
    out = masked_linear_attention(q, k, v, HeatKernelMask(1, 'adjacency').to(dtype)(batch))[:60, 0].detach().numpy()
    query, key, value = (tensor[:60, 0].double().numpy() for tensor in (q, k, v))
    weight = expm(weight_matrix(lollipop, None)) * (query @ key.T)
    np.testing.assert_allclose(out, weight @ value / weight.sum(1, keepdims=True), rtol=tolerance)


@pytest.mark.parametrize(('kind', 'lam'), covering(KINDS, [0.1, 1.0, 25.0]))
def test_error_on_random_graphs_is_below_one_in_a_million(kind: str, lam: float) -> None:
    edges = torch.cat([random_edges(300, 900, seed=3), ring(300)], dim=1)
    data = Data(edge_index=torch.cat([edges, edges.flip(0)], dim=1), num_nodes=300)
    x = torch.rand(300, 1, 4, dtype=torch.float64)
    out = HeatKernelMask(1, kind, lam).double()(data).matmul(x).detach().squeeze(1).numpy()
    expected = expm_multiply(lam * csr_array(generator(data, kind)), x.squeeze(1).numpy())
    if kind == 'adjacency':
        out, expected = out / np.linalg.norm(out), expected / np.linalg.norm(expected)
    assert np.linalg.norm(out - expected) < 1e-6 * np.linalg.norm(expected)


@pytest.mark.parametrize(('kind', 'tolerance'), covering(KINDS, [1e-2, 1e-5, 1e-13]))
def test_error_is_within_the_tolerance(kind: str, tolerance: float) -> None:
    data = mirrored(small_weighted_graph())
    exact, approximate = (
        HeatKernelMask(1, kind, 3.0, bound).double()(data).to_dense()[0].detach().numpy() for bound in (1e-15, tolerance)
    )
    error = np.linalg.norm(exact - approximate, 2)
    assert error <= 10 * tolerance
    assert tolerance < 1e-12 or error > 1e-4 * tolerance


@pytest.mark.parametrize('size', [30, 3000])
def test_large_adjacencies_neither_overflow_nor_vanish(size: int) -> None:
    """Stars have degrees far above their spectral radius, and the isolated node lies far below both."""
    data = Data(edge_index=undirected([(0, i) for i in range(1, size)]), num_nodes=size + 1)
    operator = HeatKernelMask(1, 'adjacency', 2.0)(data)
    q, v = torch.ones(size + 1, 1, 1), torch.randn(size + 1, 1, 2)
    out = masked_linear_attention(q, q, v, operator)
    torch.testing.assert_close(out[-1], v[-1])
    # The Perron vector of a star: the hub weighs as much as the root of all leaves.
    root = (size - 1) ** 0.5
    expected = (root * v[0] + v[1:-1].sum(0)) / (root + size - 1)
    torch.testing.assert_close(out[0], expected, atol=1e-3, rtol=1e-3)


def digraph(name: str) -> Data:
    """Directed graphs whose adjacencies are far from normal."""
    if name == 'path':
        weight = torch.ones(7, dtype=torch.float64)
        return Data(edge_index=torch.stack([torch.arange(7), torch.arange(1, 8)]), edge_weight=weight, num_nodes=8)
    if name == 'batch':
        return Batch.from_data_list([digraph(member) for member in ('path', 'acyclic', 'random', 'signed')])
    rng = np.random.default_rng(0)
    matrix = (rng.random((30, 30)) < 0.15) * rng.exponential(2.0, (30, 30))
    if name == 'acyclic':
        matrix = np.triu(matrix, 1)
    elif name == 'signed':
        matrix *= rng.choice([-1.0, 1.0], (30, 30))
    edges = np.stack(matrix.nonzero())
    return Data(edge_index=torch.from_numpy(edges), edge_weight=torch.from_numpy(matrix[tuple(edges)]), num_nodes=30)


@pytest.mark.parametrize(('graph', 'lam'), covering(['path', 'acyclic', 'random', 'signed', 'batch'], [0.1, 1.0, 4.0]))
def test_directed_adjacencies_keep_the_terms_of_growing_powers(graph: str, lam: float) -> None:
    data = digraph(graph)
    mask = HeatKernelMask(1, 'adjacency', lam, tolerance=1e-10).double()
    dense = mask(data).to_dense()[0].detach().numpy()
    matrix = weight_matrix(data, None)
    expected = expm(mask.lam.item() * matrix)  # lam has passed through float32
    count, component = connected_components(csr_array(matrix), connection='weak')
    for label in range(count):
        inside = np.ix_(component == label, component == label)
        factor = np.trace(dense[inside]) / np.trace(expected[inside])
        assert 0 < factor <= 1 + 1e-9
        np.testing.assert_allclose(dense[inside], factor * expected[inside], rtol=1e-9, atol=1e-9)


def test_gradients_of_directed_adjacencies() -> None:
    path, short = digraph('path').edge_index, torch.tensor([[0, 1], [1, 2]])
    data = Batch.from_data_list([Data(edge_index=path, num_nodes=8), Data(edge_index=short, num_nodes=3)])
    mask = HeatKernelMask(1, 'adjacency', tolerance=1e-13).double()
    weight, v = torch.rand(9, dtype=torch.float64), torch.randn(11, 1, 2, dtype=torch.float64)
    ones = torch.ones(11, 1, 1, dtype=torch.float64)

    def attend(raw_lam: Tensor, weight: Tensor, v: Tensor) -> Tensor:
        graph = Graph.from_tensors(data.edge_index, 11, weight, data.batch)
        operator = torch.func.functional_call(mask, {'raw_lam': raw_lam}, (graph,))
        return masked_linear_attention(ones, ones, v, operator)

    inputs = [tensor.clone().requires_grad_() for tensor in (mask.raw_lam.detach(), weight, v)]
    assert torch.autograd.gradcheck(attend, inputs)


@pytest.mark.parametrize('kind', ['laplacian', 'random_walk_laplacian', 'normalized_laplacian'])
@pytest.mark.parametrize('lam', [1.0, 25.0, 300.0])
def test_nodes_without_edges_attend_to_themselves(kind: str, lam: float) -> None:
    data = Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=3)
    operator = HeatKernelMask(1, kind, lam)(data)
    assert float(operator.to_dense()[0, 2, 2].detach()) == pytest.approx(1.0, rel=1e-5)
    q, v = torch.ones(3, 1, 1), torch.tensor([1.0, 2.0, 3.0]).view(3, 1, 1)
    assert float(masked_linear_attention(q, q, v, operator)[2].detach()) == pytest.approx(3.0, rel=1e-5)


# Attention ------------------------------------------------------------------------------------------------------------


def dense_generator(data: Data, weight: Tensor, kind: str) -> Tensor:
    """The generator with torch alone, so that autograd gives its gradient."""
    size = data.num_nodes or 0
    matrix = weight.new_zeros(size, size).index_put(tuple(data.edge_index.flip(0)), weight, accumulate=True)
    degree = matrix.abs().sum(0)
    inverse = 1.0 / degree.masked_fill(degree == 0, 1.0)
    if kind == 'adjacency':
        return matrix
    laplacian = torch.diag(degree) - matrix
    if kind == 'laplacian':
        return -laplacian
    if kind == 'random_walk_laplacian':
        return -laplacian * inverse.unsqueeze(0)
    return -laplacian * (inverse.unsqueeze(0) * inverse.unsqueeze(1)).sqrt()


@pytest.mark.parametrize('graph', ['undirected', 'batch', 'directed'])
@pytest.mark.parametrize('kind', KINDS)
def test_attention_and_all_its_gradients_are_those_of_the_dense_matrix(kind: str, graph: str) -> None:
    data = graphs(kind)[graph]()
    half = (0.5 + torch.rand(data.edge_index.size(1) // 2, dtype=torch.float64)).requires_grad_()
    weight = torch.cat([half, half]) if kind in SYMMETRIC else torch.cat([half, half, half])[: data.edge_index.size(1)]
    if kind in SYMMETRIC and graph == 'batch':
        pair_id = data.edge_index.min(0).values * 64 + data.edge_index.max(0).values
        weight = half[torch.unique(pair_id, return_inverse=True)[1]]
    mask = HeatKernelMask(2, kind, LAM, tolerance=1e-13).double()
    operator = mask(Graph.from_tensors(data.edge_index, data.num_nodes, weight, data.get('batch')))
    matrix = torch.linalg.matrix_exp(mask.lam.view(-1, 1, 1) * dense_generator(data, weight, kind))
    matrix = matrix * torch.from_numpy(same_graph(data))
    assert_dense_attention(operator, matrix, [mask.raw_lam, half])
    assert_dense_attention(operator.T, matrix.transpose(1, 2), [mask.raw_lam, half])


@pytest.mark.parametrize('dtype', [torch.float32, torch.float64])
@pytest.mark.parametrize('kind', KINDS)
def test_rows_that_hold_only_the_error_of_the_polynomial_give_zero(kind: str, dtype: torch.dtype) -> None:
    """Keys at three nodes of a long ring: the farther a row, the less it weighs, down to what the polynomial gets wrong."""
    data = Data(edge_index=ring(200), num_nodes=200)
    k, v = torch.zeros(200, 1, 1, dtype=dtype), torch.zeros(200, 1, 1, dtype=dtype)
    k[:3], v[1] = 1.0, 1.0
    operator = HeatKernelMask(1, kind, 0.5).to(dtype)(data)
    out = masked_linear_attention(torch.ones_like(k), k, v, operator).detach().flatten().numpy()
    matrix = kernel(data, kind, 0.5)[:, :3]
    weight, expected = matrix.sum(1), matrix[:, 1] / matrix.sum(1).clip(1e-200)
    np.testing.assert_allclose(out[weight > 1e-4], expected[weight > 1e-4], atol=1e-2)
    assert (np.abs(out - expected)[out != 0] < 0.2).all()
    assert not out[weight < 1e-15].any()


def test_hubs_keep_their_attention() -> None:
    """A bound that took the diagonal of the generator, negative at a hub, for its size would hide the row."""
    data = Data(edge_index=undirected([(0, i) for i in range(1, 40)]), num_nodes=40)
    v = torch.rand(40, 1, 1)
    out = masked_linear_attention(*torch.ones(2, 40, 1, 1), v, HeatKernelMask(1, lam=3.0)(data), 'features')
    expected = kernel(data, 'laplacian', 3.0) @ v.flatten().double().numpy()  # whose rows sum up to 1
    np.testing.assert_allclose(out.detach().flatten().numpy(), expected, rtol=1e-5)


@pytest.mark.parametrize('route', ['blocks', 'features'])
@pytest.mark.parametrize('factor', [1e-6, 1e6])
def test_numbers_that_multiply_a_mask_cancel_in_attention(factor: float, route: str) -> None:
    """Also in the bound, below which a row has no weight: those of far rows are in the dark with any factor."""
    data, mask = Data(edge_index=ring(200), num_nodes=200), HeatKernelMask(1, lam=0.5)
    k, v = torch.zeros(200, 1, 1), torch.rand(200, 1, 1)
    k[:3] = 1.0
    expected, actual = (masked_linear_attention(torch.ones_like(k), k, v, each(data), route) for each in (mask, factor * mask))
    assert (expected == 0).any()
    torch.testing.assert_close(actual == 0, expected == 0)
    torch.testing.assert_close(actual, expected, rtol=1e-3, atol=1e-3)


def test_large_keys_of_another_graph_hide_no_row() -> None:
    """What the polynomial gets wrong in a graph is relative to the largest key of this graph."""
    data, v = Data(edge_index=ring(8), num_nodes=8), torch.rand(16, 1, 1)
    k = torch.ones(16, 1, 1)
    k[8:] = 1e6
    mask = HeatKernelMask(1, lam=0.5)
    out = masked_linear_attention(torch.ones_like(k), k, v, mask(Batch.from_data_list([data, data])), 'features')
    expected = kernel(data, 'laplacian', 0.5) @ v.view(2, 8, 1).double().numpy()
    np.testing.assert_allclose(out.detach().flatten().numpy(), expected.flatten(), rtol=1e-5)


def test_magnitude_bounds_what_signs_cancel() -> None:
    edges = undirected([(0, i) for i in range(1, 101)])
    weight = torch.tensor([1.0, -1.0], dtype=torch.float64).repeat(100)
    operator = HeatKernelMask(1, 'adjacency', 1.0, 1e-15).double()(Data(edge_index=edges, edge_weight=weight, num_nodes=101))
    x = torch.ones(101, 1, 1, dtype=torch.float64)
    size = operator.to_dense()[0].abs().sum(1)
    assert size[0] > 4
    assert operator.matmul(x)[0].abs() < 1
    assert (operator.magnitude(x).flatten() >= size * (1 - 1e-12)).all()  # equal, but for rounding


# Parameters and batches -----------------------------------------------------------------------------------------------


def test_lam_is_the_softplus_of_the_parameter() -> None:
    for lam in (1e-6, 0.5, 30.0, 500.0):
        torch.testing.assert_close(HeatKernelMask(2, lam=lam).lam, torch.full((2,), lam))
    mask = HeatKernelMask(2, lam=torch.tensor([0.1, 4.0]))
    torch.testing.assert_close(mask.lam, torch.tensor([0.1, 4.0]))
    with torch.no_grad():
        mask.raw_lam.fill_(-5.0)
    assert (mask.lam > 0).all()
    mask.reset_parameters()
    torch.testing.assert_close(mask.lam, torch.tensor([0.1, 4.0]))
    assert not HeatKernelMask(learnable=False).raw_lam.requires_grad


# Bad input ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize('kind', SYMMETRIC)
def test_directed_graphs_are_refused_where_symmetry_is_needed(kind: str) -> None:
    with pytest.raises(ValueError, match=r'^edge_index: got edges whose weights differ between \(0, 2\) and \(2, 0\)'):
        HeatKernelMask(1, kind)(small_digraph())
    with pytest.raises(ValueError, match=r'^edge_index: got edges whose weights differ between \(2, 0\) and \(0, 2\)'):
        HeatKernelMask(1, kind)(Data(edge_index=torch.tensor([[0, 1, 2], [2, 2, 1]]), num_nodes=3))
    data = mirrored(small_graph())
    data.edge_weight[0] += 0.1
    for _ in range(2):
        with pytest.raises(ValueError, match=r'^edge_index: got edges whose weights differ'):
            HeatKernelMask(1, kind)(data)
        data.edge_weight *= 1e-8


def test_lam_that_training_has_ruined_is_named() -> None:
    mask = HeatKernelMask()
    torch.nn.init.constant_(mask.raw_lam, torch.nan)
    with pytest.raises(ValueError, match=r'^lam: got \[nan\] on this graph; accepted'):
        mask(small_graph())


@pytest.mark.parametrize('kind', ['laplacian', 'random_walk_laplacian'])
def test_lam_that_needs_too_many_terms_is_named(kind: str) -> None:
    with pytest.raises(ValueError, match=r'^lam: got .* on this graph; accepted: numbers up to'):
        HeatKernelMask(kind=kind, lam=1e30)(small_graph())


def test_lam_that_would_hide_the_largest_rows_of_adjacencies_is_named() -> None:
    nodes = torch.arange(39)
    edges = torch.stack([nodes, nodes + 1])
    graph = Graph(torch.cat([edges, edges.flip(0)], dim=1), 40)
    eigenvalues, vectors = np.linalg.eigh(np.diag(np.ones(39), 1) + np.diag(np.ones(39), -1))
    values = torch.ones(40, 1, 1, dtype=torch.float64)
    for lam in (600.0, 1500.0):  # a Chebyshev series
        rows = HeatKernelMask(1, 'adjacency', lam).double()(graph).matmul(values).detach().numpy().ravel()
        wanted = (vectors * np.exp(lam * (eigenvalues - eigenvalues.max()))) @ vectors.T @ np.ones(40)
        np.testing.assert_allclose(rows / rows.max(), wanted / wanted.max(), rtol=1e-2)
    with pytest.raises(ValueError, match=r'^lam: got \[5000.0\] on this graph; accepted: numbers up to 1[56]\d\d'):
        HeatKernelMask(1, 'adjacency', 5000.0).double()(graph)


def test_state_dictionaries_of_another_kind_are_refused() -> None:
    state = HeatKernelMask(kind='adjacency', lam=0.5).state_dict()
    mask = HeatKernelMask(kind='adjacency')
    mask.load_state_dict(state)
    assert mask.lam.item() == pytest.approx(0.5)
    with pytest.raises(ValueError, match=r"^kind: got a state dictionary of kind='adjacency' for kind='laplacian'"):
        HeatKernelMask().load_state_dict(state)
    with pytest.raises(RuntimeError, match='size mismatch for raw_lam'):
        HeatKernelMask(2, kind='adjacency').load_state_dict(state)


def test_an_average_of_state_dictionaries_is_loaded() -> None:
    mask = HeatKernelMask(kind='adjacency')
    mask.load_state_dict({key: 0.9 * value + 0.1 * value for key, value in mask.state_dict().items()})
    assert mask.kind == 'adjacency'


@pytest.mark.parametrize('lam', [0.5, 4.0, 20.0])
def test_rows_of_small_weight_have_the_error_of_the_docstring(lam: float) -> None:
    size, tolerance = 60, 1e-8
    nodes = torch.arange(size - 1)
    path = Data(edge_index=torch.cat([torch.stack([nodes, nodes + 1]), torch.stack([nodes + 1, nodes])], 1), num_nodes=size)
    laplacian = 2 * np.eye(size) - np.eye(size, k=1) - np.eye(size, k=-1)
    laplacian[0, 0] = laplacian[-1, -1] = 1
    expected = expm(-lam * laplacian)[:, 0]
    one = torch.eye(size)[:, :1].unsqueeze(1)
    actual = HeatKernelMask(lam=lam, tolerance=tolerance)(path).matmul(one).detach().double().flatten().numpy()
    counts = expected > 2e-6
    assert counts.sum() >= 5
    assert (abs(actual - expected) / expected)[counts].max() < (tolerance + torch.finfo(torch.float32).eps) / expected[
        counts
    ].min()
