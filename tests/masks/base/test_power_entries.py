"""The entries of power series, beside SciPy's powers."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from graphs import GRAPHS, NAMES_WITH_NODES, ring, small_digraph, small_weighted_graph
from oracles import weight_matrix
from torch import Tensor

from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks import Mask, PowerSeriesMask
from pyg_topomask.masks import power_series as power_entries
from pyg_topomask.ops import masked_linear_attention
from pyg_topomask.ops.routes.choice import choose_route

MASKS: dict[str, Callable[[], Mask]] = {
    'order_0': lambda: PowerSeriesMask(2, order=0),
    'order_1': lambda: PowerSeriesMask(2, order=1),
    'order_3': lambda: PowerSeriesMask(2, order=3, normalization='rw'),
    'negative': lambda: PowerSeriesMask(2, order=2, coefficients=torch.tensor([1.0, -0.5, 0.25])),
    'unnormalized': lambda: PowerSeriesMask(2, order=2, normalization=None),
}


def matrix_of_entries(mask: Mask, graph: Graph) -> Tensor:
    entries = mask(graph).entries()
    matrix = torch.zeros(2, graph.num_nodes, graph.num_nodes, dtype=torch.float64)
    matrix[:, entries.pattern.row.long(), entries.pattern.col.long()] = entries.value.detach().double()
    return matrix


@pytest.mark.filterwarnings('ignore:The spectral radius')
@pytest.mark.parametrize('graph', NAMES_WITH_NODES)
@pytest.mark.parametrize('name', MASKS)
def test_entries_are_those_of_the_products(name: str, graph: str) -> None:
    mask, graph = MASKS[name]().double(), Graph.from_data(GRAPHS[graph]())
    torch.testing.assert_close(matrix_of_entries(mask, graph), mask(graph).to_dense().detach(), rtol=1e-9, atol=1e-9)


def test_entries_of_a_power_series_are_those_of_scipy() -> None:
    data, alpha = small_digraph(), torch.tensor([0.5, 2.0, -1.0])
    weight = weight_matrix(data, 'sym')
    expected = 0.5 * np.eye(6) + 2.0 * weight - weight @ weight
    mask = PowerSeriesMask(2, order=2, coefficients=alpha).double()
    np.testing.assert_allclose(matrix_of_entries(mask, Graph.from_data(data))[0].numpy(), expected, atol=1e-12)


@pytest.mark.filterwarnings('ignore:The spectral radius')
@pytest.mark.parametrize('name', MASKS)
def test_gradients_along_the_entries_are_those_of_the_features_route(name: str) -> None:
    mask, graph = MASKS[name]().double(), Graph.from_data(small_weighted_graph())
    q, k, v = (torch.rand(graph.num_nodes, 2, 3, dtype=torch.float64, requires_grad=True) for _ in range(3))
    results = []
    for route in ('features', 'edges'):
        out = masked_linear_attention(q, k, v, mask(graph), route)
        results.append([out, *torch.autograd.grad(out.square().sum(), [q, k, v, *mask.parameters()])])
    for actual, expected in zip(*results, strict=True):
        torch.testing.assert_close(actual, expected, rtol=1e-7, atol=1e-9)


def test_powers_are_listed_once_for_masks_of_the_same_powers(monkeypatch: pytest.MonkeyPatch) -> None:
    calls, listed = [], power_entries._listed
    monkeypatch.setattr(power_entries, '_listed', lambda *arguments: calls.append(1) or listed(*arguments))
    graph = Graph.from_tensors(ring(9), 9)
    for order, number in ((2, 1), (2, 1), (3, 2)):
        PowerSeriesMask(order=order)(graph).entries()
        assert len(calls) == number


def test_powers_are_not_listed_to_count_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(power_entries, '_listed', lambda *_: pytest.fail('listed'))
    assert PowerSeriesMask(order=2)(Graph.from_tensors(ring(20), 20)).entries.max_nnz == 5 * 20


def test_powers_of_many_entries_are_listed_only_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = torch.Generator().manual_seed(0)
    edges = torch.randint(600, (2, 1800), generator=generator)
    graph = Graph.from_tensors(torch.cat([edges, edges.flip(0)], dim=1), 600)
    assert choose_route(PowerSeriesMask(order=1)(graph), 16, 16) == 'edges'

    def listed(*arguments: object) -> None:
        raise AssertionError('listed')

    monkeypatch.setattr(power_entries, '_listed', listed)
    many = PowerSeriesMask(order=5)(graph)
    assert choose_route(many, 16, 16) == 'features'
    monkeypatch.undo()
    many = PowerSeriesMask(order=5)(graph)
    q = torch.rand(600, 1, 2)
    expected = masked_linear_attention(q, q, q, many, 'features')
    torch.testing.assert_close(masked_linear_attention(q, q, q, many, 'edges'), expected, rtol=1e-4, atol=1e-5)


def test_estimated_numbers_of_entries_are_close() -> None:
    edges = torch.randint(2000, (2, 4000), generator=torch.Generator().manual_seed(1))
    graph = Graph.from_tensors(torch.cat([edges, edges.flip(0)], dim=1), 2000)
    pattern = PowerSeriesMask(order=2)(graph).entries().pattern
    assert power_entries.count_within(pattern, 1) == pytest.approx(pattern.nnz, rel=0.3)
    small = Graph.from_tensors(ring(20), 20)
    assert PowerSeriesMask(order=3)(small).entries.max_nnz == PowerSeriesMask(order=3)(small).entries().pattern.nnz == 7 * 20


def test_learned_edge_weights_have_no_power_entries() -> None:
    weight = torch.ones(18, requires_grad=True)
    graph = Graph.from_tensors(ring(9), 9, weight)
    operator = PowerSeriesMask(order=2)(graph)
    assert operator.entries is None
    operator.to_dense().sum().backward()
    assert weight.grad.any()


def test_powers_that_are_not_listed_are_not_offered_while_tracing(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, mask = Graph.from_tensors(ring(9), 9), PowerSeriesMask(order=2)
    monkeypatch.setattr(torch.compiler, 'is_compiling', lambda: True)
    assert mask(graph).entries is None
    monkeypatch.undo()
    listed = mask(graph).entries
    assert listed is not None
    listed()
    monkeypatch.setattr(torch.compiler, 'is_compiling', lambda: True)
    assert mask(graph).entries is not None


def test_a_graph_without_nodes_has_no_entries() -> None:
    graph = Graph.from_tensors(torch.empty(2, 0, dtype=torch.long), 0)
    state = graph.state(PowerSeriesMask(order=2))
    entries = power_entries.power_entries(graph, 'empty', state.pattern, state.weight, torch.ones(1, 3))
    assert entries().pattern.nnz == 0


def test_powers_that_take_much_memory_are_listed_only_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(power_entries, '_MOST_LISTED', 9)
    graph, q = Graph.from_tensors(ring(9), 9), torch.rand(9, 1, 2)
    operator = PowerSeriesMask(order=1)(graph)
    assert choose_route(operator, 16, 16) != 'edges'
    assert not graph.has_cached(('powers', PowerSeriesMask().settings(), 1))
    expected = masked_linear_attention(q, q, q, operator, 'features')
    torch.testing.assert_close(masked_linear_attention(q, q, q, operator, 'edges'), expected)
