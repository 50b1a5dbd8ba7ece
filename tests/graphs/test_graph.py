from typing import Any
from unittest import mock

import numpy as np
import pytest
import torch
from graphs import GRAPH_NAMES, GRAPHS, no_edges, ring, small_digraph, small_graph, uneven_graphs
from oracles import as_numpy, edge_weights, weight_matrix
from torch import Tensor
from torch_geometric.data import Batch, Data, HeteroData
from torch_geometric.data.hypergraph_data import HyperGraphData
from torch_geometric.transforms import ToSparseTensor

from pyg_topomask import Graph
from pyg_topomask.masks import AdjacencyMask
from pyg_topomask.nn import MaskedLinearAttention, TopoGPSConv


@pytest.mark.parametrize('normalization', ['sym', 'rw', None])
@pytest.mark.parametrize('name', GRAPH_NAMES)
def test_normalization(name: str, normalization: str | None) -> None:
    data = GRAPHS[name]()
    edges, weight, num_nodes, _ = as_numpy(data)
    actual = Graph.from_data(data).normalized_weight(normalization).numpy()
    np.testing.assert_allclose(actual, edge_weights(edges, weight, num_nodes, normalization), rtol=1e-12)


@pytest.mark.parametrize('scale', [1e-30, 1e30])
def test_normalization_of_extreme_weights(scale: float) -> None:
    graph = Graph(ring(5), 5, edge_weight=torch.full((10,), scale))
    half = torch.full((10,), 0.5, dtype=torch.float64)
    torch.testing.assert_close(graph.normalized_weight('sym'), half)
    torch.testing.assert_close(graph.normalized_weight('rw'), half)


def test_unknown_normalization_lists_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r'^normalization: got .*sym.*rw.*None'):
        Graph(ring(3), 3).normalized_weight('unknown')


@pytest.mark.parametrize('name', GRAPH_NAMES)
def test_graph_of_data(name: str) -> None:
    data = GRAPHS[name]()
    edges, weight, num_nodes, _ = as_numpy(data)
    graph = Graph.from_data(data)
    assert (graph.num_nodes, graph.num_edges) == (num_nodes, edges.shape[1])
    assert graph.num_graphs == (data.num_graphs if isinstance(data, Batch) else 1)
    np.testing.assert_allclose(graph.weight.numpy(), weight)
    assert graph.data is data


def test_a_graph_is_one_of_itself_and_of_data() -> None:
    data = small_graph()
    graph = Graph.of(data)
    assert Graph.of(graph) is graph
    assert (graph.data, graph.num_nodes) == (data, data.num_nodes)
    with pytest.raises(ValueError, match=r'^data: got int; accepted:'):
        Graph.of(3)


@pytest.mark.parametrize(('name', 'given'), [('edge_weight', [1.0]), ('batch', (0, 0))])
def test_what_is_no_tensor_is_refused(name: str, given: Any) -> None:
    with pytest.raises(ValueError, match=rf'^{name}: got {type(given).__name__}; accepted: a tensor, or None$'):
        Graph(torch.tensor([[0], [1]]), 2, **{name: given})


@pytest.mark.filterwarnings('ignore:Unable to accurately infer:UserWarning')  # PyG's own
def test_data_without_anything_is_an_empty_graph() -> None:
    graph = Graph.from_data(Data())
    assert (graph.num_nodes, graph.num_edges, graph.num_graphs) == (0, 0, 1)


NAN, INFINITE = float('nan'), float('inf')


def test_bad_arguments_are_named(subtests: pytest.Subtests) -> None:
    for name, arguments in [
        ('edge_index', {'edge_index': torch.zeros(3, 2, dtype=torch.long)}),
        ('edge_index', {'edge_index': torch.zeros(2, dtype=torch.long)}),
        ('edge_index', {'edge_index': torch.zeros(2, 4)}),
        ('edge_index', {'edge_index': torch.tensor([[0, 1], [1, 3]])}),
        ('edge_index', {'edge_index': torch.tensor([[0, -1], [1, 0]])}),
        ('edge_index', {'batch': torch.tensor([0, 0, 1])}),
        ('edge_weight', {'edge_weight': torch.ones(5)}),
        ('edge_weight', {'edge_weight': torch.ones(6, 1)}),
        ('edge_weight', {'edge_weight': torch.ones(6, dtype=torch.bool)}),
        ('edge_weight', {'edge_weight': torch.tensor([1.0, 1.0, NAN, 1.0, 1.0, 1.0])}),
        ('edge_weight', {'edge_weight': torch.tensor([1.0, 1.0, 1.0, 1.0, 1.0, -INFINITE])}),
        ('batch', {'batch': torch.tensor([0, 1, 0])}),
        ('batch', {'batch': torch.tensor([-1, 0, 0])}),
        ('batch', {'batch': torch.tensor([0, 0])}),
        ('num_nodes', {'edge_index': no_edges(), 'num_nodes': -1}),
        ('num_graphs', {'edge_index': no_edges(), 'batch': torch.tensor([0, 1, 2]), 'num_graphs': 2}),
        ('num_graphs', {'edge_index': no_edges(), 'num_graphs': 2.5}),
        ('num_graphs', {'num_graphs': 3}),
        ('num_nodes', {'edge_index': no_edges(), 'num_nodes': 2.5}),
    ]:
        with subtests.test(name=name, arguments=arguments), pytest.raises(ValueError, match=f'^{name}: got .*; accepted'):
            Graph(**{'edge_index': ring(3), 'num_nodes': 3} | arguments)


def test_message_says_which_weight_is_not_finite() -> None:
    with pytest.raises(ValueError, match=r'got nan at edge 2'):
        Graph(ring(2), 2, edge_weight=torch.tensor([1.0, 1.0, NAN, 1.0]))


def test_message_says_which_nodes_were_named() -> None:
    with pytest.raises(ValueError, match=r'nodes 0 to 7; accepted: 0 to 2'):
        Graph(torch.tensor([[0], [7]]), 3)


def test_graphs_without_nodes_have_no_edges() -> None:
    with pytest.raises(ValueError, match=r'nodes 0 to 0; accepted: no edges'):
        Graph(torch.tensor([[0], [0]]), 0)


@pytest.mark.parametrize(
    ('batch', 'message'), [([-1, 0, 0], 'got the graph id -1'), ([0, 2, 1], 'got a vector that is not ascending, 1 after 2')]
)
def test_message_says_what_is_wrong_with_a_batch(batch: list[int], message: str) -> None:
    with pytest.raises(ValueError, match=f'^batch: {message}'):
        Graph(ring(3), 3, batch=torch.tensor(batch))


#: The example of PyG 2.8.1's documentation. Its edge_index[1] has hyperedges, which used to be read as nodes.
HYPERGRAPH = HyperGraphData(edge_index=torch.tensor([[0, 1, 2, 1, 2, 3, 4], [0, 0, 0, 1, 1, 1, 1]]), num_nodes=5)


def test_other_data_is_refused(subtests: pytest.Subtests) -> None:
    for data in [HeteroData(), {'edge_index': ring(3)}, HYPERGRAPH, Batch.from_data_list([HYPERGRAPH])]:
        with subtests.test(data=data), pytest.raises(ValueError, match=r'^data: got'):
            Graph.from_data(data)


def test_states_are_prepared_once_for_each_setting() -> None:
    graph, calls = Graph.from_data(uneven_graphs()[2]), []

    def prepare() -> int:
        calls.append(1)
        return len(calls)

    assert [graph.cached(name, prepare) for name in ('a', 'a', 'b', 'a')] == [1, 1, 2, 1]


def test_representation_tells_the_sizes() -> None:
    assert repr(Graph(ring(3), 3)) == 'Graph(num_nodes=3, num_edges=6, num_graphs=1)'


@pytest.mark.filterwarnings('ignore:Sparse invariant checks')
def test_transposed_adjacency_matrices_stand_for_the_edges() -> None:
    data = Data(edge_index=torch.tensor([[0, 0, 2], [1, 2, 1]]), edge_weight=torch.tensor([1.0, 2.0, 3.0]), num_nodes=3)
    graph = Graph.from_data(ToSparseTensor(attr='edge_weight', layout=torch.sparse_csr)(data.clone()))
    assert 'edge_index' not in graph.data
    torch.testing.assert_close(dense(graph), dense(Graph.from_data(data)))


def dense(graph: Graph) -> Tensor:
    return torch.zeros(3, 3).index_put(tuple(graph.edge_index), graph.weight, accumulate=True)


def test_fingerprint_takes_weights_of_one_for_none() -> None:
    plain, ones = Graph(ring(3), 3), Graph(ring(3), 3, torch.ones(6))
    assert torch.equal(plain.fingerprint, ones.fingerprint)
    assert not torch.equal(plain.fingerprint, Graph(ring(3), 3, torch.tensor([1.0, 1.0, 2.0, 1.0, 1.0, 1.0])).fingerprint)


@pytest.mark.filterwarnings('ignore:Sparse invariant checks')  # PyG's, once in a process
@pytest.mark.parametrize('layout', [torch.sparse_coo, torch.sparse_csr])
def test_layers_take_adj_t(layout: torch.layout) -> None:
    data = small_digraph()
    sparse = ToSparseTensor(attr='edge_weight', layout=layout)(data.clone())
    graph = Graph.from_tensors(sparse.adj_t.float(), data.num_nodes)
    dense = AdjacencyMask(self_loop=None)(graph).to_dense().detach()[0].numpy()
    np.testing.assert_allclose(dense, weight_matrix(data, None), rtol=1e-6)
    layer, x = MaskedLinearAttention(8, 2, AdjacencyMask(2)), torch.randn(6, 8)
    expected = layer(x, data.edge_index, data.edge_weight.float())
    torch.testing.assert_close(layer(x, sparse.adj_t.float()), expected)
    torch.testing.assert_close(TopoGPSConv(8, None, norm=None, attn=layer)(x, sparse.adj_t.float()).shape, x.shape)


def test_a_graph_moves_with_its_data_and_without_what_is_prepared() -> None:
    data = Batch.from_data_list(uneven_graphs())
    graph = Graph.from_data(data)
    graph.cached('mark', lambda: 1)
    assert graph.to('cpu') is graph
    with mock.patch.object(Graph, 'device', torch.device('meta')):  # as if it were elsewhere
        moved = graph.to('cpu')
    assert moved is not graph
    assert moved.data is not data
    assert torch.equal(moved.fingerprint, graph.fingerprint)
    assert torch.equal(moved.batch, graph.batch)
    assert moved.cached('mark', lambda: 2) == 2


@pytest.mark.parametrize('batch', [[0, 0, 0, 0], [0, 0, 1, 2]])
def test_a_batch_is_no_weight(batch: list[int]) -> None:
    edges, batch = torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]]), torch.tensor(batch)
    for edge_index in (edges, edges[:, :2]):
        with pytest.raises(
            ValueError, match=r'^edge_weight: got whole numbers that ascend from 0, .*; give the batch vector as batch='
        ):
            Graph.from_tensors(edge_index, 4, batch)
    Graph.from_tensors(edges, 4, batch + 1)
    Graph.from_tensors(edges, 4, batch.float())


def test_whole_numbers_are_weights() -> None:
    weight = torch.tensor([1, 2, 3, 1, 2, 3])
    graph = Graph.from_tensors(ring(3), 3, weight)
    assert graph.weight.dtype == torch.float32
    expected = Graph(ring(3), 3, weight.float())
    assert torch.equal(*(AdjacencyMask(1, None)(weighted).to_dense() for weighted in (graph, expected)))
    for kind in (torch.uint8, torch.int8, torch.int16):
        assert torch.equal(Graph.from_tensors(ring(3), 3, weight.to(kind)).weight, weight.to(kind).float())
    with pytest.raises(ValueError, match=r'^edge_weight: got shape \(6,\) of torch.bool'):
        Graph.from_tensors(ring(3), 3, weight > 1)


def test_shared_graph_of_data_that_has_gained_nodes_is_a_new_one() -> None:
    data = Data(x=torch.randn(3, 2), edge_index=torch.tensor([[0, 1], [1, 0]]))
    assert Graph.shared(data).num_nodes == 3
    data.x = torch.randn(5, 2)
    assert Graph.shared(data).num_nodes == 5
    graph = Graph.shared(data)  # with what masks prepare in float32
    torch.set_default_dtype(torch.float64)
    try:
        assert Graph.shared(data) is not graph
    finally:
        torch.set_default_dtype(torch.float32)


def test_graphs_with_other_weights_share_the_first() -> None:
    graph = Graph(ring(4), 4)
    again = graph.with_weights(torch.rand(8)).with_weights(torch.rand(8))
    assert again.unweighted is graph


def test_shared_graph_sees_attributes_that_were_replaced_or_added_before_a_mask_read_them() -> None:
    batch = Batch.from_data_list([Data(edge_index=ring(3), num_nodes=3, time=torch.arange(3))])
    graph = Graph.shared(batch)
    batch.time = -batch.time
    batch.place = torch.ones(3)
    assert Graph.shared(batch) is graph
    assert torch.equal(graph.get('time'), batch.time)
    assert torch.equal(graph.get('place'), batch.place)


@pytest.mark.parametrize('layout', [torch.sparse_csr, torch.sparse_coo])
def test_edge_weights_beside_adj_t_are_those_of_its_edges(layout: torch.layout) -> None:
    data = Data(edge_index=torch.tensor([[2, 0, 1], [1, 1, 0]]), edge_weight=torch.tensor([3.0, 5.0, 7.0]), num_nodes=3)
    expected = AdjacencyMask(1, None)(data).to_dense()
    sparse = ToSparseTensor(attr=None, layout=layout)(data)
    assert 'edge_index' not in sparse
    assert 'edge_weight' in sparse
    assert torch.equal(AdjacencyMask(1, None)(sparse).to_dense(), expected)


def test_a_batch_of_batches_has_all_their_graphs() -> None:
    sizes = [[3, 4], [5, 3]]
    batches = [Batch.from_data_list([Data(edge_index=ring(size), num_nodes=size) for size in part]) for part in sizes]
    assert Graph.from_data(Batch.from_data_list(batches)).segments.sizes.tolist() == [3, 4, 5, 3]


@pytest.mark.filterwarnings('ignore:Sparse CSR tensor support', 'ignore:Sparse invariant checks')
def test_learned_values_of_a_matrix_do_not_pass_through_it() -> None:
    """torch 2.13 makes the gradient of the values of a CSR matrix through a dense one of all pairs of nodes."""
    number = 600
    pointer, col = torch.arange(number + 1), torch.arange(number).roll(1)
    gradients, largest = [], []
    for learned in (torch.rand(number).requires_grad_(), torch.rand(number).requires_grad_()):
        adj_t = torch.sparse_csr_tensor(pointer, col, learned, (number, number))
        graph = Graph.from_data(Data(adj_t=adj_t, num_nodes=number)) if gradients else Graph.from_tensors(adj_t, number)
        assert graph.edge_index[:, :2].tolist() == [[number - 1, 0], [0, 1]]
        factor = torch.arange(1.0, number + 1)
        with torch.profiler.profile(profile_memory=True) as profiler:
            (graph.weight * factor).sum().backward()
        largest.append(max(event.self_cpu_memory_usage for event in profiler.key_averages()))
        gradients.append(learned.grad)
    assert all(torch.equal(gradient, factor) for gradient in gradients)
    assert max(largest) < number**2


def test_other_weights_on_a_device_are_not_read() -> None:
    graph = Graph.from_tensors(torch.tensor([[0, 1], [1, 0]]), num_nodes=2)
    assert graph.with_weights(torch.empty(2, device='meta')).weight.is_meta  # a look at its numbers would raise an error
    with pytest.raises(ValueError, match=r'^edge_weight: got inf at edge 1'):
        graph.with_weights(torch.tensor([1.0, torch.inf]))
