"""The pattern of BigBird: neighbors in the order of nodes, the ends of a graph, a few random nodes, and no other graph."""

import numpy as np
import pytest
import torch
from graphs import GRAPH_NAMES, GRAPHS, uneven_graphs
from oracles import same_graph
from torch_geometric.data import Batch, Data

from pyg_topomask import Graph
from pyg_topomask.errors import ArgumentError
from pyg_topomask.masks import BigBirdMask
from pyg_topomask.masks.expander import expander_edges
from pyg_topomask.nn import attention
from pyg_topomask.testing import assert_mask_operator


def pattern(size: int, window: int, ends: int) -> np.ndarray:
    """The entries of the equation that are not random."""
    place = np.arange(size)
    near = np.abs(place[:, None] - place) <= window
    end = (place < ends) | (place >= size - ends)
    return near | end | end[:, None]


@pytest.mark.parametrize('name', GRAPH_NAMES)
def test_it_is_a_mask(name: str) -> None:
    assert_mask_operator(BigBirdMask(window=1, ends=1, degree=2), GRAPHS[name]())


@pytest.mark.parametrize(('window', 'ends', 'degree'), [(2, 3, 4), (0, 0, 2), (3, 0, 2), (0, 2, 6)])
def test_near_nodes_and_ends_and_random_edges(window: int, ends: int, degree: int) -> None:
    graphs = [Data(num_nodes=size) for size in (60, 1, 7, 31)]
    batch = Batch.from_data_list(graphs)
    matrix = BigBirdMask(2, window, ends, degree, seed=5)(batch).to_dense().numpy()
    assert matrix.shape[0] == 2
    random = np.zeros(matrix.shape[1:], dtype=bool)
    random[tuple(expander_edges(Graph.from_data(batch), degree, 5).numpy())] = True
    assert (random * (1 - same_graph(batch)) == 0).all()
    for index, data in enumerate(graphs):
        nodes = slice(int(batch.ptr[index]), int(batch.ptr[index + 1]))
        expected = pattern(data.num_nodes or 0, window, ends) | random[nodes, nodes]
        np.testing.assert_array_equal(matrix[:, nodes, nodes], np.stack([expected, expected]))
    assert (matrix * (1 - same_graph(batch)) == 0).all()


def test_random_entries_are_few_and_depend_on_the_seed() -> None:
    drawn = [BigBirdMask(degree=4, seed=seed)(Data(num_nodes=200)).to_dense()[0].numpy() for seed in (0, 0, 1)]
    others = ~pattern(200, 4, 3)
    assert 0 < drawn[0][others].sum() <= 4 * 200
    np.testing.assert_array_equal(drawn[0], drawn[1])
    assert (drawn[0] != drawn[2]).any()


def test_small_graphs_attend_to_all() -> None:
    graph = Graph.from_data(Data(num_nodes=5))
    assert torch.equal(BigBirdMask()(graph).to_dense(), torch.ones(1, 5, 5))
    # Windows and ends larger than the graph take no more memory than it.
    assert torch.equal(BigBirdMask(window=2**20, ends=2**20)(graph).to_dense(), torch.ones(1, 5, 5))


def test_attention_of_the_word() -> None:
    """Softmax over the entries of the pattern, from the equation, for a batch."""
    torch.manual_seed(0)
    batch = Batch.from_data_list(uneven_graphs())
    layer, x = attention('BigBird', 8, 2, window=1, ends=1, degree=2).double().eval(), torch.randn(batch.num_nodes, 8).double()
    q, k, v = (lin(x).view(-1, 2, 4).transpose(0, 1) for lin in (layer.lin_q, layer.lin_k, layer.lin_v))
    allowed = BigBirdMask(window=1, ends=1, degree=2)(batch).to_dense()[0] > 0
    score = (q @ k.mT / 2.0).masked_fill(~allowed, -torch.inf)
    expected = layer.lin_out((score.softmax(-1) @ v).transpose(0, 1).flatten(1))
    out = layer(x, batch.edge_index, graph=Graph.from_data(batch))
    torch.testing.assert_close(out, expected)


@pytest.mark.parametrize(
    ('options', 'message'),
    [
        ({'window': -1}, '^window: got -1; accepted: whole numbers from 0'),
        ({'ends': 0.5}, '^ends: got 0.5; accepted: whole numbers from 0'),
        ({'degree': 3}, '^degree: got 3; accepted: even numbers'),
        ({'degree': 0}, '^degree: got 0; accepted: even numbers'),
    ],
)
def test_bad_arguments(options: dict[str, float], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        BigBirdMask(**options)
