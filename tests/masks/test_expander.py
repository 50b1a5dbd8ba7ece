import numpy as np
import pytest
import torch
from graphs import GRAPH_NAMES, GRAPHS, no_edges, uneven_graphs
from grids import covering
from oracles import same_graph
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components
from torch_geometric.data import Batch, Data
from torch_geometric.transforms import Compose, VirtualNode

from pyg_topomask import Graph
from pyg_topomask.masks import AdjacencyMask, ExpanderMask, MultiHeadMask
from pyg_topomask.masks.expander import expander_edges
from pyg_topomask.nn import MaskedLinearAttention
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
