"""The order of nodes in which neighbors are near in memory."""

import pytest
import torch
from graphs import no_edges, random_edges, ring
from torch import Tensor

from pyg_topomask.graphs import locality
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.graphs.locality import inverse, near_order
from pyg_topomask.masks import AdjacencyMask, GRFMask, HopMask, PowerSeriesMask

SIZE = 40
SHUFFLE = torch.randperm(SIZE, generator=torch.Generator().manual_seed(0))


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locality, '_LARGE', SIZE)
    monkeypatch.setattr(locality, '_NEAR', 2)


def test_neighbors_on_a_shuffled_ring_come_near() -> None:
    order = near_order(SHUFFLE[ring(SIZE)], SIZE)
    assert order is not None
    assert order.sort().values.tolist() == list(range(SIZE))
    source, target = inverse(order)[SHUFFLE[ring(SIZE)]]
    assert int((source - target).abs().max()) <= 2


def test_the_inverse_undoes_a_permutation() -> None:
    assert torch.equal(SHUFFLE[inverse(SHUFFLE)], torch.arange(SIZE))


@pytest.mark.parametrize(
    ('edges', 'size'),
    [
        pytest.param(ring(SIZE), SIZE, id='in order'),
        pytest.param(SHUFFLE[ring(SIZE - 1)], SIZE - 1, id='small'),
        pytest.param(random_edges(SIZE, 10 * SIZE, seed=0), SIZE, id='random'),
        pytest.param(no_edges(), SIZE, id='no edges'),
    ],
)
def test_an_order_that_saves_little_is_left_out(edges: Tensor, size: int) -> None:
    assert near_order(edges, size) is None


def test_a_graph_keeps_its_order() -> None:
    graph = Graph(SHUFFLE[ring(SIZE)], SIZE)
    near = graph.near(HopMask())
    assert near is not None
    assert graph.near(PowerSeriesMask()) is near
    assert near.order is not None
    assert torch.equal(near.order[near.edge_index], graph.edge_index)


def test_batches_masks_that_read_nodes_and_fresh_walks_keep_their_numbers() -> None:
    class ReadsNodes(HopMask):
        pass

    edges = SHUFFLE[ring(SIZE)]
    graph, mask = Graph(edges, SIZE), HopMask()
    assert Graph(torch.cat([edges, edges + SIZE], 1), 2 * SIZE, batch=torch.arange(2 * SIZE) // SIZE).near(mask) is None
    for other in (ReadsNodes(), AdjacencyMask(), mask + AdjacencyMask(), GRFMask(resample='forward')):
        assert graph.near(other) is None
    assert graph.near(GRFMask(), torch.Generator()) is None
