"""Attention on a large graph whose nodes are numbered anew inside: results are those in the given numbers."""

import copy
import pickle
from collections.abc import Callable

import pytest
import torch
from graphs import random_edges, weighted
from grids import covering
from torch import Tensor
from torch_geometric.data import Data

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs import graph as graphs
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks import GRFMask, HeatKernelMask, HopMask, Mask, MultiHeadMask, PowerSeriesMask
from pyg_topomask.nn import AsymmetricGRFAttention, MaskedLinearAttention, MaskedSoftmaxAttention

SIZE = 12

MASKS: dict[str, Callable[[], Mask]] = {
    'hop': lambda: HopMask(2, 2),
    'series': lambda: PowerSeriesMask(2, 3, normalization='rw'),
    'heat': lambda: HeatKernelMask(2, 'random_walk_laplacian', lam=[0.5, 1.0]),
    'GRF': lambda: GRFMask(2, num_walks=8),
    'asymmetric GRF': lambda: GRFMask(2, num_walks=8, asymmetric='pairs', independent_ensembles=True),
    'stitched GRF': lambda: GRFMask(2, num_walks=8, stitch=2),
    'transpose': lambda: PowerSeriesMask(2, 3).T,
    'composed': lambda: HopMask(2, 1) * GRFMask(2, num_walks=8) + 0.5 * HeatKernelMask(2, 'random_walk_laplacian'),
    'side by side': lambda: MultiHeadMask(HopMask(1), GRFMask(1)),
}

every_mask = pytest.mark.parametrize('make', MASKS.values(), ids=MASKS)


def directed() -> Data:
    """A directed, weighted graph in two parts, with isolated nodes."""
    edges = torch.cat([random_edges(6, 10, seed=0), 6 + random_edges(4, 6, seed=1)], dim=1)
    return weighted(edges, SIZE, seed=2)


def as_numbered(data: Data) -> Graph:
    graph = Graph.from_data(data)
    graph.cached('near', lambda: None)
    return graph


@pytest.fixture(autouse=True)
def _any_order(monkeypatch: pytest.MonkeyPatch) -> None:
    order = torch.randperm(SIZE, generator=torch.Generator().manual_seed(3))
    monkeypatch.setattr(graphs, 'near_order', lambda edge_index, num_nodes: order)


@every_mask
def test_operators_there_are_permuted(make: Callable[[], Mask]) -> None:
    graph, mask = Graph.from_data(directed()), make()
    near = graph.near(mask)
    assert near is not None
    assert near.order is not None
    torch.testing.assert_close(mask(near).to_dense(), mask(graph).to_dense()[:, near.order][:, :, near.order])


@pytest.mark.filterwarnings('ignore:edge_weight. got weights that require a gradient')
@pytest.mark.parametrize(('name', 'learned'), covering(MASKS, [False, True]))
def test_outputs_and_gradients_are_those_in_the_given_numbers(name: str, learned: bool) -> None:
    torch.manual_seed(0)
    layer = MaskedLinearAttention(8, 2, MASKS[name]()).double()
    x, upstream = torch.randn(2, SIZE, 8, dtype=torch.float64)
    results: list[tuple[Tensor | None, ...]] = []
    for to_graph in (Graph.from_data, as_numbered):
        data, features = directed(), x.clone().requires_grad_()
        data.edge_weight.requires_grad_(learned)
        graph = to_graph(data)
        assert (graph.near(layer.mask) is None) == (to_graph is as_numbered)
        out = layer(features, graph=graph)
        inputs = [features, *layer.parameters(), *([data.edge_weight] if learned else [])]
        first = torch.autograd.grad((out * upstream).sum(), inputs, allow_unused=True, create_graph=True)
        size = torch.stack([grad.square().sum() for grad in first if grad is not None]).sum()
        second = torch.autograd.grad(size, inputs, allow_unused=True)
        results.append((out, *first, *second))
    torch.testing.assert_close(*results, atol=1e-9, rtol=1e-6)


def test_a_layer_gives_a_shuffled_graph_what_it_gives_the_graph() -> None:
    data, place = directed(), torch.randperm(SIZE)
    shuffled = copy.copy(data)
    shuffled.edge_index = place[data.edge_index]
    layer, x = MaskedLinearAttention(8, 2, PowerSeriesMask(2)).double(), torch.randn(SIZE, 8, dtype=torch.float64)
    moved = torch.empty_like(x).index_copy_(0, place, x)
    torch.testing.assert_close(layer(moved, graph=shuffled)[place], layer(x, graph=data))


def test_softmax_and_entries_are_those_in_the_given_numbers() -> None:
    x = torch.randn(SIZE, 8)
    for layer in (MaskedSoftmaxAttention(8, 2, HopMask(2)), AsymmetricGRFAttention(8, 2)):
        found, expected = (layer(x, graph=graph) for graph in (Graph.from_data(directed()), as_numbered(directed())))
        torch.testing.assert_close(found, expected)


@pytest.mark.parametrize('make', [lambda: HopMask(2), lambda: GRFMask(2, num_walks=8)], ids=['graph', 'state'])
def test_layers_are_vectorized_and_compiled(make: Callable[[], Mask]) -> None:
    x, graph = torch.rand(2, SIZE, 8), Graph.from_data(directed())
    layer = MaskedLinearAttention(8, 2, make())
    expected = torch.stack([layer(each, graph=graph) for each in x])
    torch.testing.assert_close(torch.func.vmap(lambda each: layer(each, graph=graph))(x), expected)
    compiled = torch.compile(layer, backend='eager', fullgraph=True)
    torch.testing.assert_close(compiled(x[0], graph=graph), expected[0])


def test_a_prepared_graph_is_copied_and_stored() -> None:
    graph, layer, x = Graph.from_data(directed()), MaskedLinearAttention(8, 2, GRFMask(2, num_walks=8)), torch.rand(SIZE, 8)
    expected = layer(x, graph=graph)
    for other in (copy.deepcopy(graph), pickle.loads(pickle.dumps(graph))):
        torch.testing.assert_close(layer(x, graph=other), expected)


def test_a_prepared_graph_has_the_state() -> None:
    graph = Graph.from_data(directed())
    for mask in (HopMask(), GRFMask(), HopMask() + GRFMask(seed=1)):
        assert not graph.has_state(mask)
        MaskedLinearAttention(8, mask=mask)(torch.rand(SIZE, 8), graph=graph)
        assert graph.has_state(mask)


def test_errors_name_the_given_nodes() -> None:
    with pytest.raises(ArgumentError, match=r'between \((7, 4|4, 7)\) and \((7, 4|4, 7)\)'):
        HeatKernelMask()(Data(edge_index=torch.tensor([[7], [4]]), num_nodes=SIZE))
