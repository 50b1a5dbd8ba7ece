"""Layers that receive the same tensors share a graph, and no change of the tensors goes unnoticed."""

import gc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from weakref import ref

import pytest
import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint
from torch_geometric.data import Data

from pyg_topomask import Graph
from pyg_topomask.graphs import shared
from pyg_topomask.graphs.graph import _SHARED, MAX_GRAPHS
from pyg_topomask.graphs.shared import graph_of_data, shared_graph
from pyg_topomask.masks import AdjacencyMask, GRFMask, PackingMask
from pyg_topomask.nn import GRFAttention, HopAttention, KMIPAttention, MaskedLinearAttention
from pyg_topomask.operators import MaskOperator
from pyg_topomask.operators.base import low_rank_operator

NODES = 12


@pytest.fixture(autouse=True)
def no_earlier_graphs() -> Iterator[None]:
    shared._GRAPHS.clear()
    _SHARED.clear()
    yield
    shared._GRAPHS.clear()
    _SHARED.clear()


def edges(seed: int = 0) -> Tensor:
    return torch.randint(NODES, (2, 30), generator=torch.Generator().manual_seed(seed))


def test_two_layers_and_five_steps_prepare_once(monkeypatch: pytest.MonkeyPatch) -> None:
    prepared = []
    prepare = GRFMask.prepare
    monkeypatch.setattr(GRFMask, 'prepare', lambda *given: prepared.append(1) or prepare(*given))
    layers, x, edge_index = [GRFAttention(8, heads=2) for _ in range(2)], torch.randn(NODES, 8), edges()
    for _ in range(5):
        layers[1](layers[0](x, edge_index), edge_index).sum().backward()
    assert len(prepared) == 1


def test_whole_weights_have_the_data_type_that_is_the_default_when_they_are_given() -> None:
    edge_index, whole, kinds = edges(), torch.arange(30), []
    for dtype in (torch.float32, torch.float64, torch.float32):
        torch.set_default_dtype(dtype)
        try:
            kinds.append(shared_graph(edge_index, NODES, whole).edge_weight.dtype)
        finally:
            torch.set_default_dtype(torch.float32)
    assert kinds == [torch.float32, torch.float64, torch.float32]


def test_learned_weights_of_a_graph_are_read_each_time() -> None:
    weight = torch.rand(30, requires_grad=True)
    graph, mask = Graph.from_tensors(edges(), NODES, weight), AdjacencyMask(self_loop=None)
    for factor in (1.0, 2.0):
        with torch.no_grad():
            weight.mul_(factor)
        dense = mask(graph).to_dense()[0]
        expected = torch.zeros(NODES, NODES).index_put((edges()[1], edges()[0]), weight.detach(), accumulate=True)
        torch.testing.assert_close(dense, expected)
        dense.sum().backward()
    torch.testing.assert_close(weight.grad, torch.full_like(weight, 2.0))


@pytest.mark.parametrize('kind', [GRFAttention, HopAttention, KMIPAttention])
def test_results_are_those_of_a_new_graph(kind: type) -> None:
    layer, x, edge_index = kind(8, heads=2).eval(), torch.randn(NODES, 8), edges()
    layer(x, edge_index)
    torch.testing.assert_close(layer(x, edge_index), layer(x, graph=Graph.from_tensors(edge_index, NODES)), rtol=0, atol=0)


@pytest.mark.parametrize('changed', ['edge_index', 'edge_weight', 'batch'])
def test_changes_in_place_are_seen(changed: str) -> None:
    given = {'edge_index': edges() // 2, 'edge_weight': torch.rand(30), 'batch': torch.zeros(NODES, dtype=torch.long)}
    mask = AdjacencyMask(2) + PackingMask(2)
    layer, x = MaskedLinearAttention(8, heads=2, mask=mask), torch.randn(NODES, 8)
    before = layer(x, **given)
    given[changed][-1:] += 1
    after = layer(x, **given)
    new = layer(x, graph=Graph.from_tensors(given['edge_index'], NODES, given['edge_weight'], given['batch']))
    torch.testing.assert_close(after, new, rtol=0, atol=0)
    assert not torch.equal(before, after)


def test_storage_that_is_replaced_is_seen() -> None:
    edge_index = edges()
    first = shared_graph(edge_index, NODES)
    edge_index.data = edges(1)
    second = shared_graph(edge_index, NODES)
    assert second is not first
    assert torch.equal(second.edge_index, edge_index)
    square = torch.tensor([[0, 1], [2, 2]])
    before = shared_graph(square, NODES)
    square.data = square.data.t()  # the same memory in the same shape
    assert shared_graph(square, NODES) is not before


def test_other_tensors_numbers_of_nodes_and_data_types_have_other_graphs() -> None:
    edge_index, weight = edges(), torch.rand(30)
    graph = shared_graph(edge_index, NODES, weight)
    assert shared_graph(edge_index, NODES, weight) is graph
    assert shared_graph(edge_index.clone(), NODES, weight) is not graph
    assert shared_graph(edge_index, NODES, weight.clone()) is not graph
    assert shared_graph(edge_index, NODES + 1, weight).num_nodes == NODES + 1
    assert shared_graph(edge_index, NODES).edge_weight is None
    torch.set_default_dtype(torch.float64)
    try:
        assert shared_graph(edge_index, NODES).weight.dtype == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


def test_learned_weights_have_a_graph_of_their_own() -> None:
    edge_index, weight = edges(), torch.rand(30, requires_grad=True)
    layer = MaskedLinearAttention(8, heads=2, mask=AdjacencyMask(2))
    for _ in range(2):
        weight.grad = None
        layer(torch.randn(NODES, 8), edge_index, weight).square().sum().backward()
        assert weight.grad is not None


def test_graphs_die_with_their_edges() -> None:
    edge_index = edges()
    graph = ref(shared_graph(edge_index, NODES))
    assert graph() is not None
    del edge_index
    gc.collect()
    assert graph() is None
    assert not shared._GRAPHS


def test_the_graphs_used_last_are_kept() -> None:
    tensors = [edges(seed) for seed in range(MAX_GRAPHS + 1)]
    first, second, *_ = [shared_graph(tensor, NODES) for tensor in tensors[:-1]]
    assert shared_graph(tensors[0], NODES) is first
    shared_graph(tensors[-1], NODES)
    assert len(shared._GRAPHS) == MAX_GRAPHS
    assert shared_graph(tensors[0], NODES) is first
    assert shared_graph(tensors[1], NODES) is not second


def test_edges_made_in_inference_mode_are_never_kept() -> None:
    with torch.inference_mode():
        edge_index = edges()
        assert shared_graph(edge_index, NODES) is not shared_graph(edge_index, NODES)


def test_a_graph_first_used_in_inference_mode_is_trained_on() -> None:
    layer, x, edge_index, weight = GRFAttention(8, heads=2), torch.randn(NODES, 8), edges(), torch.rand(30)
    with torch.inference_mode():
        layer(x, edge_index, weight)
    layer(x, edge_index, weight).sum().backward()


@pytest.mark.parametrize('reentrant', [False, True])
def test_walks_of_a_checkpointed_pass_are_drawn_again(reentrant: bool) -> None:
    first, second = (GRFAttention(8, heads=2, resample='forward') for _ in range(2))
    x, edge_index = torch.randn(NODES, 8, requires_grad=True), edges()

    def run(keep: bool) -> Tensor:
        torch.manual_seed(0)
        hidden = first(x, edge_index)
        out = second(hidden, edge_index) if keep else checkpoint(second, hidden, edge_index, use_reentrant=reentrant)
        return torch.autograd.grad(out.square().sum(), x)[0] if not reentrant else _grad_of(out, x)

    torch.testing.assert_close(run(False), run(True))


def _grad_of(out: Tensor, x: Tensor) -> Tensor:
    x.grad = None
    out.square().sum().backward()
    assert x.grad is not None
    return x.grad


def test_threads_get_what_one_gets() -> None:
    layer, x, tensors = HopAttention(8, heads=2).eval(), torch.randn(NODES, 8), [edges(seed) for seed in range(40)]
    expected = [layer(x, graph=Graph.from_tensors(tensor, NODES)) for tensor in tensors]
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda tensor: layer(x, tensor), [*tensors, *tensors]))
    for actual, wanted in zip(results, [*expected, *expected], strict=True):
        torch.testing.assert_close(actual, wanted)


def test_layers_that_receive_the_same_data_prepare_once(monkeypatch: pytest.MonkeyPatch) -> None:
    prepared = []
    prepare = GRFMask.prepare
    monkeypatch.setattr(GRFMask, 'prepare', lambda *given: prepared.append(1) or prepare(*given))
    layers, x, data = (
        [GRFAttention(8, heads=2) for _ in range(2)],
        torch.randn(NODES, 8),
        Data(edge_index=edges(), num_nodes=NODES),
    )
    for _ in range(5):
        layers[1](layers[0](x, graph=data), graph=data).sum().backward()
    assert len(prepared) == 1
    kept = ref(data)
    del data
    gc.collect()
    assert kept() is None
    assert not _SHARED


@pytest.mark.parametrize('changed', ['edge_index', 'edge_weight', 'batch', 't'])
@pytest.mark.parametrize('in_place', [True, False])
def test_changes_of_data_are_seen(changed: str, in_place: bool) -> None:
    class OfAttribute(PackingMask):
        def prepare(self, graph: Graph, generator: torch.Generator | None = None) -> Tensor:
            return graph.attribute('t').clone()

        def bind(self, graph: Graph, state: Tensor) -> MaskOperator:
            return low_rank_operator(graph, state.view(-1, 1, 1), torch.ones(NODES, 1, 1))

    batch = torch.zeros(NODES, dtype=torch.long)
    data = Data(
        edge_index=edges() // 2, edge_weight=torch.rand(30), batch=batch, t=torch.arange(1.0, NODES + 1), num_nodes=NODES
    )
    layer, x = MaskedLinearAttention(8, heads=2, mask=AdjacencyMask(2) + PackingMask(2) + OfAttribute(2)), torch.randn(NODES, 8)
    before = layer(x, graph=data)
    if in_place:
        data[changed][-1:] += 1
    else:
        data[changed] = torch.cat([data[changed][:-1], data[changed][-1:] + 1])
    after = layer(x, graph=data)
    torch.testing.assert_close(after, layer(x, graph=Graph.from_data(data)), rtol=0, atol=0)
    assert not torch.equal(before, after)


def test_learned_weights_of_data_receive_gradients_in_each_step() -> None:
    weight = torch.rand(30, requires_grad=True)
    data, layer = Data(edge_index=edges(), edge_weight=weight, num_nodes=NODES), MaskedLinearAttention(8, 2, AdjacencyMask(2))
    for _ in range(2):
        weight.grad = None
        layer(torch.randn(NODES, 8), graph=data).square().sum().backward()
        assert weight.grad.any()


def test_the_graphs_of_few_data_are_kept() -> None:
    graphs = [Data(edge_index=edges(), num_nodes=NODES) for _ in range(MAX_GRAPHS + 1)]
    first = [graph_of_data(data) for data in graphs]
    assert graph_of_data(graphs[-1]) is first[-1]
    assert graph_of_data(graphs[0]) is not first[0]


@pytest.mark.parametrize('name', ['edge_weight', 'weight', 'edge_attr'])
@pytest.mark.filterwarnings('ignore:data. got edge_attr')
def test_weights_that_come_later_are_seen(name: str) -> None:
    data = Data(edge_index=edges(), num_nodes=NODES)
    layer, x = MaskedLinearAttention(8, heads=2, mask=AdjacencyMask(2)), torch.randn(NODES, 8)
    before = layer(x, graph=data)
    data[name] = torch.rand(30)
    after = layer(x, graph=data)
    torch.testing.assert_close(after, layer(x, graph=Graph.from_data(data)), rtol=0, atol=0)
    assert not torch.equal(before, after)


def test_layers_with_and_without_weights_keep_a_graph_each() -> None:
    edge_index, weight = edges(), torch.rand(30)
    plain, weighted = shared_graph(edge_index, NODES), shared_graph(edge_index, NODES, weight)
    assert plain is not weighted
    assert shared_graph(edge_index, NODES) is plain
    assert shared_graph(edge_index, NODES, weight) is weighted
