"""Masks on a large graph whose nodes are numbered anew inside: results are those in the given numbers."""

import copy
from collections.abc import Callable

import pytest
import torch
from graphs import random_edges, weighted
from torch import Tensor
from torch_geometric.data import Data

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs import graph as graphs
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks import GRFMask, HeatKernelMask, HopMask, Mask, MultiHeadMask, PowerSeriesMask
from pyg_topomask.nn import MaskedLinearAttention, MaskedSoftmaxAttention
from pyg_topomask.operators.renumbered import Renumbered
from pyg_topomask.ops import masked_linear_attention
from pyg_topomask.testing import assert_mask_operator

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
def test_operators_are_those_in_the_given_numbers(make: Callable[[], Mask]) -> None:
    data, mask = directed(), make()
    operator, expected = mask(data), mask(as_numbered(data))
    assert isinstance(operator, Renumbered)
    assert not isinstance(expected, Renumbered)
    torch.testing.assert_close(operator.to_dense(), expected.to_dense())
    torch.testing.assert_close(operator.T.to_dense(), expected.T.to_dense())
    torch.testing.assert_close(
        (operator * torch.tensor([2.0, 3.0])).to_dense(), expected.to_dense() * torch.tensor([[[2.0]], [[3.0]]])
    )
    assert_mask_operator(mask, data)


@every_mask
@pytest.mark.filterwarnings('ignore:edge_weight. got weights that require a gradient')
@pytest.mark.parametrize('learned', [False, True], ids=['fixed weights', 'learned weights'])
def test_outputs_and_gradients_are_those_in_the_given_numbers(make: Callable[[], Mask], learned: bool) -> None:
    torch.manual_seed(0)
    layer = MaskedLinearAttention(8, 2, make()).double()
    x, upstream = torch.randn(2, SIZE, 8, dtype=torch.float64)
    results: list[tuple[Tensor | None, ...]] = []
    for to_graph in (Graph.from_data, as_numbered):
        data, features = directed(), x.clone().requires_grad_()
        data.edge_weight.requires_grad_(learned)
        graph = to_graph(data)
        assert isinstance(layer.mask(graph), Renumbered) == (to_graph is not as_numbered)
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
    layer, x = MaskedSoftmaxAttention(8, 2, HopMask(2)), torch.randn(SIZE, 8)
    graph, given = Graph.from_data(directed()), as_numbered(directed())
    torch.testing.assert_close(layer(x, graph=graph), layer(x, graph=given))
    (entries, expected) = (layer.mask(each).entries() for each in (graph, given))
    assert torch.equal(entries.pattern.row, expected.pattern.row)
    assert torch.equal(entries.pattern.col, expected.pattern.col)
    torch.testing.assert_close(entries.value, expected.value)


def test_products_are_vectorized_and_compiled() -> None:
    q, k, v = torch.rand(3, 2, SIZE, 2, 4)
    graph, mask = Graph.from_data(directed()), HopMask(2)
    mask(graph)

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return masked_linear_attention(q, k, v, mask(graph))

    expected = torch.stack([attend(*each) for each in zip(q, k, v, strict=True)])
    torch.testing.assert_close(torch.func.vmap(attend)(q, k, v), expected)
    torch.testing.assert_close(torch.compile(attend, backend='eager', fullgraph=True)(q[0], k[0], v[0]), expected[0])


def test_a_prepared_graph_has_the_state() -> None:
    graph = Graph.from_data(directed())
    for mask in (HopMask(), GRFMask(), HopMask() + GRFMask(seed=1)):
        assert not graph.has_state(mask)
        mask(graph)
        assert graph.has_state(mask)


def test_errors_name_the_given_nodes() -> None:
    with pytest.raises(ArgumentError, match=r'between \((7, 4|4, 7)\) and \((7, 4|4, 7)\)'):
        HeatKernelMask()(Data(edge_index=torch.tensor([[7], [4]]), num_nodes=SIZE))
