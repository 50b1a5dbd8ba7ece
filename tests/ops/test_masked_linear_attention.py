"""Masked linear attention: every route against the dense matrix, its gradients and memory, and rows without weight."""

import importlib
from collections.abc import Callable

import numpy as np
import pytest
import torch
from graphs import GRAPH_NAMES, GRAPHS, no_edges, ring, small_digraph, small_graph, uneven_graphs
from grids import at_night, covering
from hypothesis import given, settings
from hypothesis import strategies as st
from linear_masks import MASKS, inputs, low_rank, numbers
from oracles import masked_attention
from torch import Tensor
from torch_geometric.data import Batch, Data

from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks import AdjacencyMask, DenseMask, GRFMask, HopMask, Mask, PackingMask, TreeMask
from pyg_topomask.operators.base import MaskOperator, low_rank_operator
from pyg_topomask.operators.description import describe
from pyg_topomask.ops import masked_linear_attention

ROUTES = ('features', 'blocks', 'edges', 'low_rank')
EVERY_MASK = ('features', 'blocks')


def offered(mask: MaskOperator) -> list[str]:
    given = {'edges': mask.entries is not None, 'low_rank': mask.low_rank is not None}
    return [route for route in ROUTES if route in EVERY_MASK or given[route]]


@pytest.mark.parametrize('graph', GRAPH_NAMES)
@pytest.mark.parametrize('name', MASKS)
def test_every_route_is_masked_attention(name: str, graph: str) -> None:
    data = GRAPHS[graph]()
    mask = MASKS[name](data).double()(data)
    q, k, v = inputs(data.num_nodes or 0)
    matrix = mask.to_dense().detach()
    expected = masked_attention(q.numpy(), k.numpy(), v.numpy(), matrix.numpy())
    weight = torch.einsum('nhm,khm->hnk', q, k) * matrix
    lost = (weight.sum(-1).abs() < 1e-5 * weight.abs().sum(-1)).t().numpy()
    for route in (*offered(mask), 'auto'):
        out = masked_linear_attention(q, k, v, mask, route).detach().numpy()
        np.testing.assert_allclose(out[~lost], expected[~lost], rtol=1e-9, atol=1e-9, err_msg=route)
        assert np.isfinite(out).all()


@settings(deadline=None, max_examples=30, derandomize=True)
@given(
    num_nodes=st.integers(0, 7),
    num_edges=st.integers(0, 15),
    heads=st.integers(1, 3),
    features=st.integers(1, 5),
    channels=st.integers(1, 4),
    seed=st.integers(0, 100),
)
def test_random_shapes(num_nodes: int, num_edges: int, heads: int, features: int, channels: int, seed: int) -> None:
    torch.manual_seed(seed)
    edges = torch.randint(max(num_nodes, 1), (2, num_edges if num_nodes else 0))
    mask = GRFMask(heads, 2, 0.4, 2, independent_ensembles=True).double()(Data(edge_index=edges, num_nodes=num_nodes))
    q, k, v = inputs(num_nodes, heads, features, channels)
    matrix = mask.to_dense().detach().numpy()
    expected = masked_attention(q.numpy(), k.numpy(), v.numpy(), matrix)
    for route in ('features', 'edges'):
        out = masked_linear_attention(q, k, v, mask, route).detach().numpy()
        np.testing.assert_allclose(out, expected, rtol=1e-8, atol=1e-8, err_msg=route)


@pytest.mark.parametrize(
    ('mask', 'route'),
    [
        (AdjacencyMask(), 'features'),
        (AdjacencyMask(), 'blocks'),
        (AdjacencyMask(), 'edges'),
        (PackingMask(), 'low_rank'),
    ],
)
@pytest.mark.parametrize('sizes', [[1], [1, 0]])
def test_gradients_of_one_node_with_one_head(sizes: list[int], mask: Mask, route: str) -> None:
    """It attends to itself, and takes its own value whatever the query and key."""
    data = Batch.from_data_list([Data(edge_index=no_edges(), num_nodes=size) for size in sizes])
    leaves = [tensor.requires_grad_() for tensor in inputs(1, heads=1)]
    out = masked_linear_attention(*leaves, mask.double()(data), route)
    torch.testing.assert_close(out, leaves[2])
    weight = numbers(*out.shape)
    for actual, expected in zip(torch.autograd.grad((out * weight).sum(), leaves), (0.0, 0.0, weight), strict=True):
        torch.testing.assert_close(actual, torch.as_tensor(expected, dtype=torch.float64).expand_as(actual))


def test_many_slices_agree_with_one(monkeypatch: pytest.MonkeyPatch) -> None:
    data = small_graph()
    module = importlib.import_module('pyg_topomask.ops.routes.features')
    mask, (q, k, v) = GRFMask(2).double()(data), inputs(6, features=7)
    weight, results = numbers(6, 2, 4), []
    for block in (1, 2**21, 3 * 60):
        monkeypatch.setattr(module, '_BLOCK', block)
        leaves = [tensor.clone().requires_grad_() for tensor in (q, k, v)]
        out = masked_linear_attention(*leaves, mask, 'features')
        results.append((out, *torch.autograd.grad((out * weight).sum(), leaves)))
    for result in results[1:]:
        for actual, expected in zip(result, results[0], strict=True):
            torch.testing.assert_close(actual, expected)


def test_groups_of_one_graph_agree_with_larger_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    data = GRAPHS['batch']()
    mask, (q, k, v) = low_rank(data).double()(data), inputs(data.num_nodes or 0)
    module = importlib.import_module('pyg_topomask.ops.routes.low_rank')
    monkeypatch.setattr('pyg_topomask.machine.backend.has_numba', lambda: False)
    results = []
    for sums in (module._SUMS, 1):
        monkeypatch.setattr(module, '_SUMS', sums)
        leaves = [tensor.clone().requires_grad_() for tensor in (q, k, v)]
        out = masked_linear_attention(*leaves, mask, 'low_rank')
        results.append((out, *torch.autograd.grad(out.sin().sum(), leaves)))
    for actual, expected in zip(*results, strict=True):
        torch.testing.assert_close(actual, expected)


def test_sums_over_more_nodes_than_are_added_up_at_a_time() -> None:
    """Means over the nodes of a graph of a batch, and their gradients."""
    sizes = torch.tensor([9000, 3])
    mask = PackingMask()(Graph(no_edges(), 9003, batch=torch.arange(2).repeat_interleave(sizes)))
    v, weight = torch.rand(2, 9003, 1, 1, dtype=torch.float64)
    out = masked_linear_attention(*torch.ones(2, 9003, 1, 1, dtype=torch.float64), v.requires_grad_(), mask, 'low_rank')
    (out * weight).sum().backward()
    for actual, averaged in ((out, v), (v.grad, weight)):
        means = [part.detach().numpy().mean() for part in averaged.split(sizes.tolist())]
        np.testing.assert_allclose(actual.detach().flatten().numpy(), np.repeat(means, sizes.numpy()), rtol=1e-12)


@pytest.mark.parametrize('name', ['packing', 'low_rank', 'scaled_low_rank'])
@pytest.mark.parametrize('rows', [[4, 0, 4], []])
def test_rows_of_masks_of_low_rank(name: str, rows: list[int]) -> None:
    data, index = small_graph(), torch.tensor(rows, dtype=torch.long)
    mask = MASKS[name](data).double()(data)
    q, k, v = inputs(6)
    expected = masked_attention(*(tensor.numpy() for tensor in (q, k, v)), mask.to_dense().detach().numpy())[rows]
    out = masked_linear_attention(q[index], k, v, mask, rows=index)
    np.testing.assert_allclose(out.detach().numpy(), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize('ranks', [1, 2])
@pytest.mark.parametrize('shared', [(True, True), (True, False), (False, True)], ids=str)
def test_factors_that_all_nodes_share_are_as_any_others(shared: tuple[bool, bool], ranks: int) -> None:
    q, k, v = (numbers(5, 2, 3) for _ in range(3))
    factors = [numbers(1 if is_shared else 5, 2, ranks).requires_grad_() for is_shared in shared]
    expanded = [factor.expand(5, -1, -1) for factor in factors]
    actual, expected = (
        masked_linear_attention(q, k, v, low_rank_operator(Graph.from_data(Data(num_nodes=5)), *given))
        for given in (expanded, [factor.clone(memory_format=torch.contiguous_format) for factor in expanded])
    )
    torch.testing.assert_close(actual, expected)
    for gradient, expected_gradient in zip(
        *(torch.autograd.grad(out.sin().sum(), factors) for out in (actual, expected)), strict=True
    ):
        torch.testing.assert_close(gradient, expected_gradient)


CASES = [
    *(pytest.param(name, route) for name in ('grf', 'hadamard') for route in ROUTES[:3]),
    *(at_night(name, route) for name in ('grf_independent', 'adjacency', 'scaled_grf') for route in ROUTES[:3]),
    pytest.param('transposed', 'edges'),
    *(pytest.param(name, 'low_rank') for name in ('packing', 'low_rank', 'scaled_low_rank')),
    *(pytest.param(name, route) for name in ('dense', 'low_rank', 'sum', 'packing') for route in ROUTES[:2]),
]


@pytest.mark.parametrize(('batched', 'name', 'route'), covering([False, True], CASES))
def test_gradients_of_inputs_and_mask_parameters(name: str, route: str, batched: bool) -> None:
    data = Batch.from_data_list([uneven_graphs()[1], small_graph_with_weights()]) if batched else small_digraph()
    mask = MASKS[name](data).double()
    graph = Graph.from_data(data)
    names = [key for key, _ in mask.named_parameters()]
    q, k, v = (tensor.requires_grad_() for tensor in inputs(data.num_nodes, features=2, channels=2))

    def attend(q: Tensor, k: Tensor, v: Tensor, *parameters: Tensor) -> Tensor:
        operator = torch.func.functional_call(mask, dict(zip(names, parameters, strict=True)), (graph,))
        return masked_linear_attention(q, k, v, operator, route)

    parameters = [parameter.detach().clone().requires_grad_() for parameter in mask.parameters()]
    assert torch.autograd.gradcheck(attend, (q, k, v, *parameters), atol=1e-6, rtol=1e-4, fast_mode=True)


@pytest.mark.parametrize('name', ['packing', 'low_rank'])
def test_second_derivatives_of_masks_of_low_rank(name: str) -> None:
    data = small_digraph()
    operator = MASKS[name](data).double()(data)
    q, k, v = (tensor.requires_grad_() for tensor in inputs(data.num_nodes, features=2, channels=2))
    assert torch.autograd.gradgradcheck(lambda q, k, v: masked_linear_attention(q, k, v, operator, 'low_rank'), (q, k, v))


def small_graph_with_weights() -> Data:
    data = small_graph()
    data.edge_weight = torch.linspace(0.2, 1.0, 14, dtype=torch.float64)
    return data


@pytest.mark.parametrize('name', MASKS)
def test_gradients_agree_between_routes(name: str) -> None:
    data = GRAPHS['batch']()
    mask = MASKS[name](data).double()
    leaves = [tensor.requires_grad_() for tensor in inputs(40)]
    weight, parameters = numbers(40, 2, 4), list(mask.parameters())
    gradients = {}
    for route in offered(mask(data)):
        out = masked_linear_attention(*leaves, mask(data), route)
        gradients[route] = torch.autograd.grad((out * weight).sum(), [*leaves, *parameters])
    for route_gradients in gradients.values():
        for actual, expected in zip(route_gradients, gradients['features'], strict=True):
            torch.testing.assert_close(actual, expected, rtol=1e-6, atol=1e-6)


# Memory ---------------------------------------------------------------------------------------------------------------


def saved_for_backward(run: Callable[[], Tensor]) -> int:
    """Numbers in all memory that autograd keeps, shared memory counted once."""
    storages: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        storages[storage.data_ptr()] = storage.nbytes() // tensor.element_size()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        out = run()
    assert out.requires_grad
    return sum(storages.values())


MEMORY_CASES = [
    ('grf', 'features'),
    ('grf', 'edges'),
    ('grf_independent', 'features'),
    ('adjacency', 'features'),
    ('adjacency', 'edges'),
    ('low_rank', 'low_rank'),
    ('low_rank', 'features'),
    ('packing', 'low_rank'),
    ('packing', 'features'),
]


@pytest.mark.parametrize(('name', 'route', 'batched'), covering([pytest.param(*case) for case in MEMORY_CASES], [False, True]))
def test_memory_kept_for_the_backward_pass_is_linear_in_features_plus_channels(name: str, route: str, batched: bool) -> None:
    size, heads, features, channels = 240, 2, 32, 24
    graphs = [Data(edge_index=ring(size // 4), num_nodes=size // 4)] * 4
    data = Batch.from_data_list(graphs) if batched else Data(edge_index=ring(size), num_nodes=size)
    operator = MASKS[name](data)(data)
    q, k, v = (tensor.float().requires_grad_() for tensor in inputs(size, heads, features, channels))
    operator_size = sum(tensor.numel() for tensor in describe(operator)[0])
    if route == 'edges':
        entries = operator.entries()
        operator_size += entries.value.numel() * 8 + sum(tensor.numel() for tensor in entries.pattern.tensors) * 8
    sums = 4 * heads * features * (channels + 1) * 2 * 2 if route == 'low_rank' else 0
    kept = saved_for_backward(lambda: masked_linear_attention(q, k, v, operator, route))
    accepted = 6 * size * heads * (features + channels + 1) + operator_size + sums
    assert accepted < size * heads * features * channels
    assert kept <= accepted


# Rows without weight, data types --------------------------------------------------------------------------------------


@pytest.mark.parametrize('route', ROUTES)
def test_rows_without_weight_give_zero_with_gradient_zero(route: str) -> None:
    data = small_graph()
    mask = (low_rank(data) if route == 'low_rank' else GRFMask(2)).double()(data)
    q, k, v = inputs(6)
    q[2] = 0.0
    q[4, 1] = 0.0
    leaves = [tensor.requires_grad_() for tensor in (q, k, v)]
    out = masked_linear_attention(*leaves, mask, route)
    assert not out[2].any()
    assert not out[4, 1].any()
    assert out[4, 0].any()
    gradients = torch.autograd.grad(out[2].sum() + out[4, 1].sum(), leaves, retain_graph=True)
    assert not any(gradient.any() for gradient in gradients)
    everywhere = torch.autograd.grad(out.sum(), leaves)
    assert all(gradient.isfinite().all() for gradient in everywhere)
    assert not everywhere[0][2].any()


@pytest.mark.parametrize('route', ['features', 'edges'])
def test_rows_of_a_mask_that_are_zero_give_zero(route: str) -> None:
    mask = AdjacencyMask(2, self_loop=None, flow='target_to_source').double()(small_digraph())
    out = masked_linear_attention(*inputs(6), mask, route)
    assert not out[5].any()
    assert out[:5].any(-1).all()


@pytest.mark.parametrize('route', ['features', 'edges'])
def test_negative_modulation_keeps_the_sign(route: str) -> None:
    data = small_graph()
    q, k, v = inputs(6)
    mask = GRFMask(2, modulation=torch.tensor([-1.0, -0.5, -0.2, 0.0, 0.0])).double()
    operator = mask(data) * -1.0
    expected = masked_attention(q.numpy(), k.numpy(), v.numpy(), operator.to_dense().detach().numpy())
    out = masked_linear_attention(q, k, v, operator, route)
    np.testing.assert_allclose(out.detach().numpy(), expected, atol=1e-9)
    torch.testing.assert_close(out, masked_linear_attention(q, k, v, mask(data), route))


@pytest.mark.parametrize('route', ['features', 'edges'])
@pytest.mark.parametrize('dtype', [torch.float32, torch.float64])
def test_signed_weights_stay_finite(route: str, dtype: torch.dtype) -> None:
    data = small_graph()
    for seed in range(20):
        torch.manual_seed(seed)
        mask = GRFMask(2, modulation=torch.randn(2, 5), seed=seed).to(dtype)
        leaves = [torch.randn(6, 2, 3, dtype=dtype).requires_grad_() for _ in range(3)]
        out = masked_linear_attention(*leaves, mask(data), route)
        out.sum().backward()
        assert out.isfinite().all()
        assert all(leaf.grad.isfinite().all() for leaf in (*leaves, mask.modulation))


def test_exact_cancellation_of_a_float32_row_is_a_row_without_weight() -> None:
    matrix = torch.tensor([[0.1, 0.2, -0.3], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    mask = DenseMask(matrix=matrix)(Data(num_nodes=3))
    ones = torch.ones(3, 1, 1)
    assert masked_linear_attention(ones, ones, torch.randn(3, 1, 2), mask)[0].tolist() == [[0.0, 0.0]]


@pytest.mark.parametrize(('scale', 'route'), covering([1e-10, 1e-6, 1e6, 1e10], ROUTES))
def test_output_does_not_depend_on_the_scale_of_queries_and_keys(route: str, scale: float) -> None:
    data = small_graph()
    mask = (low_rank(data).float() if route == 'low_rank' else GRFMask(2))(data)
    q, k, v = (tensor.float() for tensor in inputs(6))
    expected = masked_linear_attention(q, k, v, mask, route)
    torch.testing.assert_close(masked_linear_attention(q * scale, k * scale, v, mask, route), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize('route', ROUTES)
@pytest.mark.parametrize('dtype', [torch.bfloat16, torch.float16])
def test_half_precision_accumulates_in_single(dtype: torch.dtype, route: str) -> None:
    data = Data(edge_index=ring(300), num_nodes=300)
    mask = (PackingMask() if route == 'low_rank' else GRFMask(2))(data)
    q, k, v = (tensor.to(dtype) for tensor in inputs(300))
    out = masked_linear_attention(q, k, v, mask, route)
    assert out.dtype == dtype
    expected = masked_linear_attention(q.float(), k.float(), v.float(), mask, route)
    torch.testing.assert_close(out, expected.to(dtype), rtol=1e-6, atol=1e-6)


# Graphs of a batch ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize('route', ROUTES)
def test_nothing_passes_between_graphs(route: str) -> None:
    data = GRAPHS['batch']()
    mask = (PackingMask() if route == 'low_rank' else GRFMask(2)).double()(data)
    q, k, v = inputs(40)
    expected = masked_linear_attention(q, k, v, mask, route)
    for tensor in (q, k, v):
        tensor[3:33] = float('nan')
    out = masked_linear_attention(q, k, v, mask, route)
    torch.testing.assert_close(out[:3], expected[:3])
    torch.testing.assert_close(out[33:], expected[33:])


@pytest.mark.parametrize('batched', [False, True])
def test_sums_over_many_nodes_keep_their_digits(batched: bool) -> None:
    size = 400_000
    batch = torch.tensor([0] * (size - 1) + [1]) if batched else None
    mask = PackingMask()(Graph(no_edges(), size, batch=batch))
    ones, v = torch.ones(size, 1, 1), torch.full((size, 1, 1), 0.1, requires_grad=True)
    out = masked_linear_attention(ones, ones, v, mask)
    out.sum().backward()
    torch.testing.assert_close(out.detach()[0], torch.tensor([[0.1]]), rtol=1e-4, atol=0)
    assert v.grad is not None
    torch.testing.assert_close(v.grad[0], torch.tensor([[1.0]]), rtol=1e-4, atol=0)


def test_no_gradient_passes_between_the_blocks_of_graphs() -> None:
    sizes = [5, 4, 1, 7, 2, 9]  # which are padded to 6, 4, 4, 8, 4 and 9 nodes
    data = Batch.from_data_list([Data(edge_index=ring(size), num_nodes=size) for size in sizes])
    mask, bad = GRFMask(2).double()(data), data.batch == 3
    leaves = inputs(int(bad.numel()))
    expected = torch.autograd.grad(blocks_of(mask, leaves)[~bad].square().sum(), leaves)
    with torch.no_grad():
        for tensor in leaves:
            tensor[bad] = float('nan')
    actual = torch.autograd.grad(blocks_of(mask, leaves)[~bad].square().sum(), leaves)
    for gradient, expected_gradient in zip(actual, expected, strict=True):
        torch.testing.assert_close(gradient[~bad], expected_gradient[~bad])


def blocks_of(mask: MaskOperator, leaves: tuple[Tensor, ...]) -> Tensor:
    return masked_linear_attention(*(tensor.requires_grad_() for tensor in leaves), mask, 'blocks')


@pytest.fixture(params=[True, False], ids=['machine_code', 'plain'])
def _compiled_or_not(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if not request.param:
        monkeypatch.setattr('pyg_topomask.machine.backend.has_numba', lambda: False)


@pytest.mark.usefixtures('_compiled_or_not')
@pytest.mark.parametrize('graphs', [1, 2])
def test_weights_of_low_rank_that_cancel_up_to_rounding_are_none(graphs: int) -> None:
    batch = None if graphs == 1 else torch.arange(graphs).repeat_interleave(3)
    graph = Graph.from_tensors(torch.empty(2, 0, dtype=torch.long), 3 * graphs, batch=batch)
    right = torch.tensor([0.1, 0.2, -0.3], dtype=torch.float64).repeat(graphs).view(-1, 1, 1)  # 0.1 + 0.2 is above 0.3
    ones, v = torch.ones_like(right), torch.arange(3.0 * graphs, dtype=torch.float64).view(-1, 1, 1)
    for factor, k in ((right, ones), (ones, right)):
        mask = low_rank_operator(graph, ones, factor)
        assert torch.equal(masked_linear_attention(ones, k, v, mask, 'low_rank'), torch.zeros_like(v))


def star_of_three(weight: list[float] | None = None) -> Graph:
    """Edges between node 0 and each of three others, where those to node 0 have weights, and those from it have 1."""
    edges = torch.tensor([[1, 2, 3, 0, 0, 0], [0, 0, 0, 1, 2, 3]])
    weights = None if weight is None else torch.tensor([*weight, 1.0, 1.0, 1.0], dtype=torch.float64)
    return Graph.from_tensors(edges, 4, weights)


CANCELING = {
    'adjacency': lambda: AdjacencyMask(self_loop=None)(star_of_three([0.1, 0.2, -0.3])),
    'hop': lambda: HopMask(1, 1, torch.tensor([[-0.3, 0.1]], dtype=torch.float64), positive=False)(star_of_three()),
    'tree': lambda: TreeMask(
        kind='distance', f=torch.tensor([-0.3, 0.1, 1.0], dtype=torch.float64), max_distance=2, positive=False
    )(star_of_three()),
}


@pytest.mark.usefixtures('_compiled_or_not')
@pytest.mark.parametrize('name', CANCELING)
def test_weights_that_cancel_up_to_rounding_are_none(name: str) -> None:
    """0.1 + 0.2 is above 0.3, and so is 0.1 + 0.1 + 0.1. Nothing of node 0 is left, and the others have weight."""
    mask = CANCELING[name]()
    ones, v = torch.ones(4, 1, 1, dtype=torch.float64), torch.arange(1.0, 5.0, dtype=torch.float64).view(-1, 1, 1)
    matrix = mask.to_dense()[0].detach()
    expected = matrix @ v[:, 0] / matrix.sum(1, keepdim=True)
    for route in offered(mask):
        out = masked_linear_attention(ones, ones, v, mask, route)
        assert out[0].item() == 0, route
        torch.testing.assert_close(out[1:, 0].detach(), expected[1:], msg=route)


def shared_by_heads(name: str, graphs: int) -> tuple[MaskOperator, list[Tensor]]:
    """A mask of one head, and the tensors that it learns."""
    edges = torch.cat([ring(5) + 5 * graph for graph in range(graphs)], 1)
    batch = torch.arange(graphs).repeat_interleave(5)
    generator = torch.Generator().manual_seed(0)
    if name == 'low_rank':
        factors = [torch.rand(5 * graphs, 1, 2, dtype=torch.float64, generator=generator).requires_grad_() for _ in range(2)]
        return low_rank_operator(Graph(edges, 5 * graphs, batch=batch), *factors), factors
    weight = torch.rand(edges.size(1), dtype=torch.float64, generator=generator).requires_grad_()
    return AdjacencyMask()(Graph(edges, 5 * graphs, weight, batch)), [weight]


@pytest.mark.usefixtures('_compiled_or_not')
@pytest.mark.parametrize('graphs', [1, 2])
@pytest.mark.parametrize('name', ['low_rank', 'adjacency'])
def test_gradients_of_a_mask_that_all_heads_share(name: str, graphs: int) -> None:
    """Against autograd through the dense equation."""
    mask, learned = shared_by_heads(name, graphs)
    leaves = inputs(5 * graphs, 3)
    weight = torch.einsum('nhm,khm->hnk', *leaves[:2]) * mask.to_dense()
    dense = torch.einsum('hnk,khd->nhd', weight / weight.sum(-1, keepdim=True), leaves[2])
    upstream = torch.rand_like(dense)
    expected = torch.autograd.grad(dense, learned, upstream, retain_graph=True)
    for route in offered(mask):
        out = masked_linear_attention(*leaves, mask, route)
        actual = torch.autograd.grad(out, learned, upstream, retain_graph=True)
        for gradient, oracle in zip(actual, expected, strict=True):
            torch.testing.assert_close(gradient, oracle, msg=route)
