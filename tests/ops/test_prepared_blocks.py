"""Masks whose blocks are combinations of prepared ones: attention beside the dense equation, in both of its forms."""

import importlib
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch
from graphs import GRAPH_NAMES, GRAPHS, no_edges, ring, star, undirected
from grids import covering
from linear_masks import inputs
from oracles import Array, masked_attention, power_series, weight_matrix
from scipy.linalg import expm
from scipy.sparse.csgraph import shortest_path
from torch import Tensor
from torch_geometric.data import Batch, Data

from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks import HeatKernelMask, HopMask, Mask, PowerSeriesMask, RWGNKMask, ToeplitzMask
from pyg_topomask.ops import masked_linear_attention
from pyg_topomask.ops.routes import blocks as prepared_blocks
from pyg_topomask.ops.routes import choice
from pyg_topomask.ops.routes.choice import choose_route

attention = importlib.import_module('pyg_topomask.ops.masked_linear_attention')

LAM = 0.6
ALPHA = np.array([0.5, -0.25, 0.75, 0.5])
TABLE = np.array([0.5, -0.3, 1.5, 0.7, -0.2])


def in_double(mask: Mask) -> Mask:
    mask.double().reset_parameters()
    return mask


def power_mask(heads: int = 2) -> Mask:
    return in_double(PowerSeriesMask(heads, 3, torch.from_numpy(ALPHA)))


def heat_mask(heads: int = 2) -> Mask:
    return in_double(HeatKernelMask(heads, lam=LAM, tolerance=1e-12))


def taylor_mask(heads: int = 2) -> Mask:
    return in_double(HeatKernelMask(heads, 'random_walk_laplacian', LAM, 1e-12))


def visits_mask(heads: int = 2) -> Mask:
    return in_double(RWGNKMask(heads, num_walks=None, p_halt=0.2, lam=LAM))


def power_matrix(data: Data) -> Array:
    return power_series(weight_matrix(data, 'sym'), ALPHA)


def heat_matrix(data: Data) -> Array:
    adjacency = weight_matrix(data, None)
    return expm(LAM * (adjacency - np.diag(adjacency.sum(0))))


def taylor_matrix(data: Data) -> Array:
    adjacency = weight_matrix(data, None)
    degree = adjacency.sum(0)
    return expm(LAM * (adjacency / np.where(degree > 0, degree, 1.0) - np.diag(degree > 0)))


def visits_matrix(data: Data) -> Array:
    frequency = power_series(weight_matrix(data, 'rw'), (0.8 * LAM) ** np.arange(4))
    norm = np.linalg.norm(frequency, axis=1)
    return frequency @ frequency.T / np.outer(norm, norm)


def hop_mask(heads: int = 2) -> Mask:
    return in_double(HopMask(heads, 2, torch.from_numpy(TABLE[:3])))


def hop_matrix(data: Data) -> Array:
    distance = shortest_path(weight_matrix(data, None), unweighted=True)
    return np.append(TABLE[:3], 0.0)[np.minimum(distance, 3).astype(int)]


def offset_mask(heads: int = 2) -> Mask:
    return in_double(ToeplitzMask(heads, 1, window=2, beyond='zero', initial=torch.from_numpy(TABLE)))


def offset_matrix(data: Data) -> Array:
    size = data.num_nodes
    graph = np.zeros(size, dtype=int) if data.batch is None else data.batch.numpy()
    offset = np.subtract.outer(np.arange(size), np.arange(size))
    return np.where((np.abs(offset) <= 2) & (graph[:, None] == graph), TABLE[np.clip(offset + 2, 0, 4)], 0.0)


CASES: dict[str, tuple[Callable[[int], Mask], Callable[[Data], Array]]] = {
    'power_series': (power_mask, power_matrix),
    'heat': (heat_mask, heat_matrix),
    'heat_by_powers': (taylor_mask, taylor_matrix),
    'rwgnk': (visits_mask, visits_matrix),
    'hop': (hop_mask, hop_matrix),
    'toeplitz': (offset_mask, offset_matrix),
}


def uneven() -> list[Data]:
    """Symmetric graphs, also one without edges and one without nodes."""
    sizes_and_edges = [(5, ring(5)), (1, no_edges()), (8, star(6)), (3, ring(3)), (0, no_edges())]
    return [Data(edge_index=edges, num_nodes=size) for size, edges in sizes_and_edges]


FORMS = ('machine_code', 'torch', 'small_tiles')


@pytest.fixture(params=FORMS)
def form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    if request.param == 'machine_code':
        compiled = pytest.importorskip('pyg_topomask.machine.batches', reason='Numba is not installed')
        monkeypatch.setattr(compiled, '_TILE', 8)
    else:
        monkeypatch.setattr('pyg_topomask.machine.backend.has_numba', lambda: False)
    if request.param == 'small_tiles':
        monkeypatch.setattr(prepared_blocks, '_TILE', 1)
        monkeypatch.setattr(prepared_blocks, '_ROWS', 3)
    return request.param


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Counts the calls that take the prepared blocks."""
    calls, attend = [], attention._prepared_blocks
    monkeypatch.setattr(attention, '_prepared_blocks', lambda *arguments: calls.append(1) or attend(*arguments))
    return calls


@pytest.mark.parametrize('name', CASES)
def test_attention_is_that_of_the_equation(name: str, form: str, taken: list[int]) -> None:
    make, matrix = CASES[name]
    batch = Batch.from_data_list(uneven())
    mask, (q, k, v) = make(2), inputs(batch.num_nodes)
    out = masked_linear_attention(q, k, v, mask(batch)).detach().numpy()
    expected = masked_attention(q.numpy(), k.numpy(), v.numpy(), np.stack([matrix(batch)] * 2))
    assert taken
    np.testing.assert_allclose(out, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(('name', 'heads'), covering(CASES, [1, 2]))
def test_gradients_are_those_of_the_features_route(name: str, heads: int, form: str, taken: list[int]) -> None:
    graph, mask = Graph.from_data(Batch.from_data_list(uneven())), CASES[name][0](heads)
    scale, results = torch.tensor([0.5, -2.0], dtype=torch.float64, requires_grad=True), []
    leaves = [tensor.requires_grad_() for tensor in inputs(graph.num_nodes)]
    for route in ('features', 'blocks'):
        out = masked_linear_attention(*leaves, mask(graph) * scale, route)
        results.append([out, *torch.autograd.grad(out.sin().sum(), [*leaves, scale, *mask.parameters()])])
    assert len(taken) == 1
    for actual, expected in zip(*reversed(results), strict=True):
        torch.testing.assert_close(actual, expected, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize('name', CASES)
def test_a_mask_of_one_head_serves_all(name: str, form: str) -> None:
    graph, mask = Graph.from_data(Batch.from_data_list(uneven())), CASES[name][0](1)
    leaves, results = [tensor.requires_grad_() for tensor in inputs(graph.num_nodes, heads=3)], []
    for route in ('features', 'blocks'):
        out = masked_linear_attention(*leaves, mask(graph), route)
        results.append([out, *torch.autograd.grad(out.sin().sum(), [*leaves, *mask.parameters()])])
    for actual, expected in zip(*reversed(results), strict=True):
        torch.testing.assert_close(actual, expected, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize('name', CASES)
def test_a_batch_is_its_graphs_one_by_one(name: str, form: str) -> None:
    graphs, mask = uneven(), CASES[name][0](2).float()
    batch = Batch.from_data_list(graphs)
    q, k, v = (tensor.float() for tensor in inputs(batch.num_nodes))
    together, start = masked_linear_attention(q, k, v, mask(batch), 'blocks'), 0
    for data in graphs:
        nodes = slice(start, start + data.num_nodes)
        alone = masked_linear_attention(q[nodes], k[nodes], v[nodes], mask(data), 'blocks')
        torch.testing.assert_close(together[nodes], alone, rtol=1e-4, atol=1e-5)
        start = nodes.stop


@pytest.mark.parametrize('heads', [1, 2])
def test_labels_name_the_coefficients_that_add_up(heads: int, form: str) -> None:
    graph, generator = Graph.from_data(Batch.from_data_list(uneven())), torch.Generator().manual_seed(0)
    labels = torch.randint(4, (3, graph.segments.num_pairs), generator=generator, dtype=torch.int16)
    coefficients = torch.rand(heads, 4, generator=generator, dtype=torch.float64, requires_grad=True)
    leaves, results = [*(tensor.requires_grad_() for tensor in inputs(graph.num_nodes)), coefficients], []
    ones = torch.stack([(labels == label).sum(0) for label in range(4)]).double()
    for terms in (labels, ones):
        out, _ = prepared_blocks.attend_prepared_blocks(*leaves[:3], [coefficients, terms], [graph.segments.ptr])
        grads = torch.autograd.grad(out.sin().sum(), leaves, create_graph=True)
        results.append([out, *grads, *torch.autograd.grad(grads[0].sin().sum(), leaves[1:])])
    for actual, expected in zip(*results, strict=True):
        torch.testing.assert_close(actual, expected)


def test_blocks_are_prepared_once_for_layers_heads_and_steps() -> None:
    graph = Graph.from_data(Batch.from_data_list(uneven()))
    q, k, v = inputs(graph.num_nodes)
    for name, (make, _) in CASES.items():
        kept = set()
        for mask in (make(2), make(2)):
            for _ in range(2):
                masked_linear_attention(q, k, v, mask(graph), 'blocks')
                kept.add(mask(graph).blocks.terms(graph.segments, torch.float64).data_ptr())
        assert len(kept) == 1, name


def test_a_kernel_that_grows_prepares_more_terms() -> None:
    graph = Graph.from_data(Batch.from_data_list(uneven()))
    q, k, v = inputs(graph.num_nodes)
    operators = [HeatKernelMask(2, lam=lam).double()(graph) for lam in (0.1, 5.0, 0.5)]
    for operator in operators:  # bound before the blocks of the next are prepared
        expected = masked_linear_attention(q, k, v, operator, 'features')
        torch.testing.assert_close(masked_linear_attention(q, k, v, operator, 'blocks'), expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize('kind', ['laplacian', 'random_walk_laplacian'])
@pytest.mark.parametrize('tolerance', [1e-2, 1e-5])
def test_few_blocks_span_the_kernels_of_all_heads(kind: str, tolerance: float, form: str) -> None:
    graph, lam = Graph.from_data(Data(edge_index=ring(40), num_nodes=40)), torch.tensor([0.9, 1.0, 1.2])
    mask = HeatKernelMask(3, kind, lam, tolerance).double()
    for factor in (1.0, 1.1, 2.0):  # the last prepares them anew
        mask.raw_lam.data = HeatKernelMask(3, lam=lam * factor).initial
        blocks, terms = mask(graph).blocks, mask.coefficients(graph.state(mask))[0].size(1)
        actual = (blocks.coefficients @ blocks.terms(graph.segments, torch.float64)).view(3, 40, 40).detach().numpy()
        adjacency = weight_matrix(Data(edge_index=ring(40), num_nodes=40), None)
        laplacian = (np.diag(adjacency.sum(0)) - adjacency) / (1 if kind == 'laplacian' else 2)
        exact = np.stack([expm(-float(time) * laplacian) for time in lam * factor])
        assert np.linalg.norm(actual - exact, 2, axis=(1, 2)).max() < 2 * tolerance
        assert blocks.count < terms or kind == 'random_walk_laplacian'  # a Taylor series keeps its terms
        # The sums of the first rows change by those of -L exp(-lam L), weighted by the columns.
        weight = torch.arange(40.0, dtype=torch.float64)
        rows = (blocks.coefficients @ blocks.terms(graph.segments, torch.float64)[:, :40]) @ weight
        slope = torch.autograd.grad(rows.sum(), mask.raw_lam)[0] / torch.sigmoid(mask.raw_lam.detach())
        np.testing.assert_allclose(slope, (-laplacian @ exact)[:, 0] @ weight.numpy(), atol=40 * 40 * tolerance)


def test_blocks_that_would_hold_too_much_are_not_prepared(monkeypatch: pytest.MonkeyPatch, taken: list[int]) -> None:
    graph = Graph.from_data(Batch.from_data_list(uneven()))
    q, k, v = inputs(graph.num_nodes)
    for make, _ in CASES.values():
        mask = make(2)(graph)
        expected = masked_linear_attention(q, k, v, mask, 'blocks')
        monkeypatch.setattr(choice, '_MOST_PREPARED', mask.blocks.count * mask.segments.num_pairs - 1)
        taken.clear()
        torch.testing.assert_close(masked_linear_attention(q, k, v, mask, 'blocks'), expected, rtol=1e-8, atol=1e-9)
        assert not taken
        monkeypatch.undo()


def test_many_small_graphs_beside_a_large_one_are_not_padded(monkeypatch: pytest.MonkeyPatch, taken: list[int]) -> None:
    graphs = [Data(edge_index=ring(size) if size > 2 else torch.empty(2, 0).long(), num_nodes=size) for size in [8] + [1] * 20]
    graph = Graph.from_data(Batch.from_data_list(graphs))
    q, k, v = inputs(graph.num_nodes)
    for limit in (100, 200):  # 84 pairs, and 28 nodes padded to rows of 8
        monkeypatch.setattr(choice, '_MOST_PREPARED', limit)
        masked_linear_attention(q, k, v, hop_mask(2)(graph), 'blocks')
        assert len(taken) == (limit == 200)


@pytest.mark.parametrize(('make', 'form'), covering([heat_mask, power_mask, taylor_mask], FORMS), indirect=['form'])
def test_blocks_of_learned_edge_weights_hand_gradients_on(make: Callable[[int], Mask], form: str, taken: list[int]) -> None:
    batch, mask, generator = Batch.from_data_list(uneven()), make(2), torch.Generator().manual_seed(0)
    half = torch.rand(batch.num_edges, generator=generator, dtype=torch.float64) + 0.5
    pair = batch.edge_index.sort(0).values
    weight = half[(pair[0] * batch.num_nodes + pair[1]).unique(return_inverse=True)[1]].requires_grad_()
    leaves, results = [*(tensor.requires_grad_() for tensor in inputs(batch.num_nodes)), weight, *mask.parameters()], []
    for route in ('blocks', 'features'):
        operator = mask(Graph.from_tensors(batch.edge_index, batch.num_nodes, weight, batch.batch))
        out = masked_linear_attention(*leaves[:3], operator, route)
        grads = torch.autograd.grad(out.sin().sum(), leaves, create_graph=True)
        results.append([out, *grads, *torch.autograd.grad(grads[0].sin().sum(), leaves)])
        operator = mask(Graph.from_tensors(batch.edge_index, batch.num_nodes, weight, batch.batch))
        results[-1] += torch.autograd.grad(masked_linear_attention(*leaves[:3], operator, route).cos().sum(), leaves)
    assert len(taken) == 2
    for actual, expected in zip(*results, strict=True):
        torch.testing.assert_close(actual, expected, rtol=1e-5, atol=1e-6)


def test_operations_without_prepared_blocks_keep_the_others() -> None:
    graph = Graph.from_data(Batch.from_data_list(uneven()))
    q, k, v = inputs(graph.num_nodes)
    mask = heat_mask(2)
    for operator in (mask(graph).T, mask(graph) + mask(graph)):
        assert operator.blocks is None
        expected = masked_linear_attention(q, k, v, mask(graph), 'features')
        torch.testing.assert_close(masked_linear_attention(q, k, v, operator), expected)


@pytest.mark.parametrize('scale', [1.0, -2.0])
@pytest.mark.parametrize('weight', [1.0, -1.0])
def test_terms_that_cancel_leave_no_weight(weight: float, scale: float, form: str) -> None:
    """The matrix of self-loops alone is the identity, or its negative."""
    nodes = torch.arange(4)
    graph = Graph.from_tensors(torch.stack([nodes, nodes]), 4, edge_weight=torch.full((4,), weight))
    coefficients = torch.tensor([0.3, -0.1, -0.2] if weight > 0 else [0.1, 0.3, 0.2])
    mask = (PowerSeriesMask(2, order=2, coefficients=coefficients, normalization=None) * scale)(graph)
    q, k, v = (tensor.float().requires_grad_() for tensor in inputs(4))
    out = masked_linear_attention(q, k, v, mask, 'blocks')
    assert not out.any()
    assert all(not grad.any() for grad in torch.autograd.grad(out.sum(), [q, k, v]))


def test_rows_below_the_error_of_a_kernel_leave_no_weight(form: str) -> None:
    """Of a node far from the only key, the series holds nothing but its error."""
    pairs = [(i, i + 1) for i in range(39)]
    graph, mask = Graph.from_tensors(undirected(pairs), 40), HeatKernelMask(1, lam=0.5, tolerance=1e-3)
    q, v = torch.rand(40, 1, 2) + 0.5, torch.rand(40, 1, 3)
    k = torch.zeros(40, 1, 2)
    k[0] = 1.0
    out = masked_linear_attention(q, k, v, mask(graph), 'blocks')
    torch.testing.assert_close(out[:2], v[:1].expand(2, -1, -1), rtol=1e-5, atol=1e-6)
    assert not out[10:].any()


def test_batches_of_small_graphs_take_prepared_blocks() -> None:
    graph = Graph.from_data(Batch.from_data_list([Data(edge_index=ring(23), num_nodes=23) for _ in range(8)]))
    for make in (heat_mask, taylor_mask, visits_mask, offset_mask):
        assert choose_route(make(4)(graph), 16, 16) == 'blocks'


@pytest.mark.parametrize('graph', GRAPH_NAMES)
def test_every_graph(graph: str, form: str) -> None:
    data = GRAPHS[graph]()
    q, k, v = inputs(data.num_nodes or 0)
    for make in (power_mask, visits_mask, taylor_mask):
        mask = make(2)(data)
        expected: Tensor = masked_linear_attention(q, k, v, mask, 'features')
        torch.testing.assert_close(masked_linear_attention(q, k, v, mask, 'blocks'), expected, rtol=1e-7, atol=1e-8)
