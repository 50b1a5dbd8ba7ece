import numpy as np
import pytest
import torch
from graphs import GRAPH_NAMES, GRAPHS, no_edges, uneven_graphs
from grids import covering
from oracles import same_graph
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components
from torch.autograd import gradcheck, gradgradcheck
from torch_geometric.data import Batch, Data
from torch_geometric.transforms import Compose, VirtualNode

from pyg_topomask import Graph
from pyg_topomask.masks import AdjacencyMask, ExpanderMask, MultiHeadMask
from pyg_topomask.masks.expander import expander_edges
from pyg_topomask.nn import MaskedLinearAttention, MaskedSoftmaxAttention
from pyg_topomask.testing import assert_mask_operator


def adjacency(edges: torch.Tensor, num_nodes: int) -> np.ndarray:
    matrix = np.zeros((num_nodes, num_nodes), dtype=int)
    np.add.at(matrix, tuple(edges.numpy()), 1)
    return matrix


@pytest.mark.parametrize('degree', [2, 6])
@pytest.mark.parametrize('num_nodes', [3, 10, 200])
def test_every_graph_is_a_union_of_cycles(num_nodes: int, degree: int) -> None:
    matrix = adjacency(expander_edges(Graph.from_tensors(no_edges(), num_nodes), degree), num_nodes)
    assert (matrix == matrix.T).all()
    assert (matrix.sum(1) == degree).all()
    assert np.diag(matrix).sum() == 0
    assert connected_components(coo_matrix(matrix))[0] == 1


def test_it_expands() -> None:
    """The second eigenvalue of a random d-regular graph is about 2 sqrt(d - 1) (Friedman)."""
    matrix = adjacency(expander_edges(Graph.from_tensors(no_edges(), 500), 6), 500)
    second = np.sort(np.abs(np.linalg.eigvalsh(matrix.astype(float))))[-2]
    assert second < 2 * np.sqrt(5) + 0.3


def test_seeds_differ_and_repeat() -> None:
    graph = Graph.from_tensors(no_edges(), 50)
    assert torch.equal(expander_edges(graph, 4, 1), expander_edges(graph, 4, 1))
    assert not torch.equal(expander_edges(graph, 4, 1), expander_edges(graph, 4, 2))


@pytest.mark.parametrize('num_nodes', [0, 1])
def test_nothing_to_join(num_nodes: int) -> None:
    assert expander_edges(Graph.from_tensors(no_edges(), num_nodes), 4).shape == (2, 0)


def test_edges_stay_in_their_graph_and_are_those_of_the_graph_alone() -> None:
    graphs = uneven_graphs()
    batch = Batch.from_data_list(graphs)
    together = adjacency(expander_edges(Graph.from_data(batch), 4), batch.num_nodes)
    for index, data in enumerate(graphs):
        nodes = slice(int(batch.ptr[index]), int(batch.ptr[index + 1]))
        alone = adjacency(expander_edges(Graph.from_data(data), 4), data.num_nodes or 0)
        np.testing.assert_array_equal(together[nodes, nodes], alone)
    assert (together * (1 - same_graph(batch)) == 0).all()


@pytest.mark.parametrize(('name', 'input_edges'), covering(GRAPH_NAMES, [False, True], strength=2))
def test_mask(name: str, input_edges: bool) -> None:
    data = GRAPHS[name]()
    num_nodes = data.num_nodes or 0
    expected = np.eye(num_nodes) + adjacency(expander_edges(Graph.from_data(data), 2, 7), num_nodes)
    if input_edges and 'edge_index' in data:
        expected += adjacency(data.edge_index.flip(0), num_nodes)
    mask = ExpanderMask(degree=2, input_edges=input_edges, seed=7)
    np.testing.assert_array_equal(mask(data).to_dense()[0].numpy(), expected > 0)
    assert_mask_operator(mask, data)


# Edge weights ------------------------------------------------------------------------------------------------------------


def of_edges(data: Data) -> torch.Tensor:
    return data.edge_index if 'edge_index' in data else no_edges()


def dense_of_weights(data: Data, weight: torch.Tensor) -> torch.Tensor:
    """1 for random edges and nodes themselves, and for edges of the graph the mean of their weights."""
    size, edges = data.num_nodes or 0, of_edges(data)
    others = np.eye(size) + adjacency(expander_edges(Graph.from_data(data), 2, 7), size) > 0
    total = torch.zeros(size, size, dtype=weight.dtype).index_put((edges[1], edges[0]), weight, accumulate=True)
    count = torch.from_numpy(adjacency(edges.flip(0), size))
    return torch.where(count > 0, total / count.clamp(min=1), torch.from_numpy(others).to(weight.dtype))


def random_weights(data: Data) -> torch.Tensor:
    """Signed weights, and some that are 0."""
    weight = torch.randn(of_edges(data).size(1), generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    weight[::4] = 0.0
    return weight.requires_grad_()


def weighted_mask() -> ExpanderMask:
    return ExpanderMask(degree=2, seed=7, input_weights=True)


@pytest.mark.parametrize('name', GRAPH_NAMES)
def test_edges_of_the_graph_carry_their_weights(name: str) -> None:
    data, mask = GRAPHS[name](), weighted_mask()
    weight = random_weights(data)
    graph = Graph(of_edges(data), data.num_nodes or 0, None, data.get('batch')).with_weights(weight)
    actual, expected = mask(graph).to_dense()[0], dense_of_weights(data, weight)
    torch.testing.assert_close(actual, expected)
    pull = torch.randn(actual.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    if weight.numel() > 0:
        gradients = [torch.autograd.grad((each * pull).sum(), weight)[0] for each in (actual, expected)]
        torch.testing.assert_close(*gradients)
    ones = mask(graph.with_weights(torch.ones_like(weight))).to_dense()
    assert torch.equal(ones.float(), ExpanderMask(degree=2, seed=7)(graph).to_dense())
    given = Data(edge_index=of_edges(data), edge_weight=weight.detach(), num_nodes=data.num_nodes)
    if 'batch' in data:
        given.batch = data.batch
    torch.testing.assert_close(mask(given).to_dense()[0], expected.detach())
    assert_mask_operator(mask, given)


def test_derivatives_of_weights_are_finite_differences() -> None:
    data = GRAPHS['directed']()

    def product(weight: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return weighted_mask()(Graph(data.edge_index, data.num_nodes).with_weights(weight)).matmul(x)

    inputs = random_weights(data), torch.randn(data.num_nodes, 1, 3, dtype=torch.float64, requires_grad=True)
    assert gradcheck(product, inputs)
    assert gradgradcheck(product, inputs)


def test_weights_of_a_batch_are_those_of_its_graphs() -> None:
    data, mask = Batch.from_data_list(uneven_graphs()), weighted_mask()
    data.edge_weight = random_weights(data)
    together = mask(data).to_dense()[0]
    blocks = [mask(one).to_dense()[0] for one in data.to_data_list()]
    torch.testing.assert_close(together, torch.block_diag(*blocks))


def test_random_edges_alone_have_no_weights() -> None:
    with pytest.raises(ValueError, match='input_weights: got True with input_edges=False; accepted: False'):
        ExpanderMask(input_edges=False, input_weights=True)
    with pytest.raises(ValueError, match="input_weights: got 'yes'"):
        ExpanderMask(input_weights='yes')
    assert weighted_mask().learns_weights
    assert not ExpanderMask().weighted


def test_softmax_attention_refuses_negative_weights_and_learns_others() -> None:
    data, layer = GRAPHS['directed'](), MaskedSoftmaxAttention(4, 2, weighted_mask())
    weight, x = torch.rand(data.num_edges).requires_grad_(), torch.randn(data.num_nodes, 4)
    assert bool(torch.autograd.grad(layer(x, data.edge_index, weight).square().sum(), weight)[0].any())
    with pytest.raises(ValueError, match='mask: got '):
        layer(x, data.edge_index, -weight)


@pytest.mark.parametrize('degree', [-2, 0, 3])
def test_bad_degree(degree: int) -> None:
    with pytest.raises(ValueError, match=f'degree: got {degree}'):
        ExpanderMask(degree=degree)
    with pytest.raises(ValueError, match=f'degree: got {degree}'):
        expander_edges(Graph.from_data(Data(num_nodes=3)), degree)


def test_each_of_several_masks_has_its_heads() -> None:
    layer = MaskedLinearAttention(8, 4, MultiHeadMask(ExpanderMask(2, degree=2), AdjacencyMask(2)))
    assert layer(torch.randn(5, 8), torch.tensor([[0, 1, 2], [1, 2, 3]])).shape == (5, 8)


def test_virtual_nodes_attend_to_all_and_all_to_them() -> None:
    data = Compose([VirtualNode(), VirtualNode()])(Data(x=torch.ones(40, 1), edge_index=no_edges(), num_nodes=40))
    matrix = ExpanderMask(degree=2)(data).to_dense()[0]
    assert matrix.shape == (42, 42)
    assert (matrix[40:] == 1).all()
    assert (matrix[:, 40:] == 1).all()
    assert matrix[:40, :40].sum(1).max() <= 3
