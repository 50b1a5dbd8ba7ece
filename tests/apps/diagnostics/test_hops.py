"""How far masks look, against dense matrices and breadth-first search."""

import networkx
import numpy as np
import pytest
import torch
from graphs import GRAPH_NAMES, GRAPHS, ring
from grids import covering
from torch_geometric.data import Data

from pyg_topomask.apps.diagnostics import mask_rows, weight_by_hops
from pyg_topomask.masks import AdjacencyMask, GRFMask, Mask, PackingMask, PowerSeriesMask
from pyg_topomask.operators.base import MaskOperator

MASKS = {
    'packing': PackingMask,
    'adjacency': lambda: AdjacencyMask(2, self_loop=None),
    'series': lambda: PowerSeriesMask(2, 3),
    'grf': lambda: GRFMask(2, 4, 0.3, 3, modulation=torch.tensor([1.0, -0.5, 0.2, 0.1]), asymmetric=True),
}


def expected_shares(matrix: np.ndarray, data: Data, nodes: list[int], max_hops: int) -> np.ndarray:
    graph = networkx.DiGraph()
    graph.add_nodes_from(range(data.num_nodes))
    graph.add_edges_from([] if data.edge_index is None else data.edge_index.flip(0).t().tolist())
    shares, rows = np.zeros((matrix.shape[0], max_hops + 2)), np.zeros((matrix.shape[0], 1))
    for node in nodes:
        distance = networkx.single_source_shortest_path_length(graph, node)
        for head, row in enumerate(np.abs(matrix[:, node])):
            if row.sum() > 0:
                rows[head] += 1
                for column, weight in enumerate(row):
                    shares[head, min(distance.get(column, max_hops + 1), max_hops + 1)] += weight / row.sum()
    return shares / np.maximum(rows, 1)


@pytest.mark.parametrize(('name', 'graph'), covering(MASKS, GRAPH_NAMES))
def test_rows_and_shares_are_those_of_the_matrix(name: str, graph: str) -> None:
    data, mask = GRAPHS[graph](), MASKS[name]()
    matrix = mask(data).to_dense().detach().numpy()
    nodes = list(range(data.num_nodes))[::2]
    np.testing.assert_allclose(mask_rows(mask, data, torch.tensor(nodes, dtype=torch.long)), matrix[:, nodes], atol=1e-6)
    for max_hops in (0, 2):
        actual = weight_by_hops(mask, data, max_hops, torch.tensor(nodes, dtype=torch.long))
        np.testing.assert_allclose(actual, expected_shares(matrix, data, nodes, max_hops), atol=1e-5)
    whole = weight_by_hops(mask, data, 2)
    np.testing.assert_allclose(whole, expected_shares(matrix, data, list(range(data.num_nodes)), 2), atol=1e-5)


def test_rows_that_are_given_are_not_computed_again() -> None:
    data, nodes = Data(edge_index=ring(6), num_nodes=6), torch.tensor([1, 4])
    mask, other_mask = PowerSeriesMask(), PackingMask()
    rows = mask_rows(mask, data, nodes)
    torch.testing.assert_close(weight_by_hops(other_mask, data, 2, nodes, rows), weight_by_hops(mask, data, 2, nodes))


def test_distances_are_counted_along_the_flow_that_is_asked_for() -> None:
    data = Data(edge_index=torch.tensor([[0, 1], [1, 2]]), num_nodes=3)  # node 0 hears of none, and node 2 of both
    assert weight_by_hops(PackingMask(), data, 1, 2).tolist() == [pytest.approx([1 / 3, 1 / 3, 1 / 3])]
    assert weight_by_hops(PackingMask(), data, 1, 2, flow='target_to_source').tolist() == [pytest.approx([1 / 3, 0, 2 / 3])]


def test_negative_distances_are_refused() -> None:
    with pytest.raises(ValueError, match=r'^max_hops: got -1'):
        weight_by_hops(PackingMask(), Data(edge_index=ring(3), num_nodes=3), -1)


@pytest.mark.parametrize('mask', [GRFMask(), PowerSeriesMask(), AdjacencyMask()], ids=repr)
def test_large_graphs_never_form_the_matrix(mask: Mask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MaskOperator, 'to_dense', lambda self: pytest.fail('formed the matrix'))
    size = 200_000
    shares = weight_by_hops(mask, Data(edge_index=ring(size), num_nodes=size), nodes=torch.arange(0, size, size // 4))
    assert shares.shape == (1, 6)
    torch.testing.assert_close(shares.sum(), torch.tensor(1.0))
