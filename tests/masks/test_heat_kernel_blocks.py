"""The fast route of heat kernels on batches of small graphs: blocks that the times of all heads share."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from graphs import ring, small_graph, undirected
from grids import covering
from oracles import weight_matrix
from scipy.linalg import expm
from torch_geometric.data import Batch, Data

from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks.heat_kernel import HeatKernelMask
from pyg_topomask.ops import masked_linear_attention, masked_softmax_attention

KINDS = ['laplacian', 'random_walk_laplacian', 'normalized_laplacian', 'adjacency']


@pytest.mark.parametrize(('kind', 'lam'), covering(KINDS, [[0.1, 3.0, 100.0, 300.0], [1e-4, 1e-2, 1.0, 100.0]]))
def test_blocks_serve_times_of_very_different_sizes(kind: str, lam: list[float]) -> None:
    data = Batch.from_data_list([small_graph(), Data(edge_index=ring(30), num_nodes=30)])
    times = torch.tensor(lam, dtype=torch.float64) / (10 if kind == 'adjacency' else 1)
    mask = HeatKernelMask(4, kind, times).double()
    q, k, v = (torch.rand(data.num_nodes, 4, 3, dtype=torch.float64) for _ in range(3))
    outputs, gradients = [], []
    for route in ('blocks', 'features'):
        out = masked_linear_attention(q, k, v, mask(data), route=route)
        outputs.append(out)
        gradients.append(torch.autograd.grad((out * v).sum(), mask.raw_lam)[0])
    torch.testing.assert_close(*outputs, rtol=0, atol=1e-6)
    torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-7)


def clique_with_a_path(size: int = 40, length: int = 20) -> Data:
    """Far along the path, the rows of the adjacency's kernel are tiny."""
    path = [(size - 1 + step, size + step) for step in range(length)]
    edges = undirected([(i, j) for i in range(size) for j in range(i)] + path)
    return Data(edge_index=edges, num_nodes=size + length)


@pytest.mark.parametrize('kind', ['adjacency', 'random_walk_laplacian'])
def test_blocks_keep_small_rows(kind: str) -> None:
    data = clique_with_a_path()
    if kind == 'random_walk_laplacian':  # a directed path, and a cycle at its end
        data = Data(edge_index=torch.tensor([[*range(39), 39], [*range(1, 40), 30]]), num_nodes=40)
    mask = HeatKernelMask(8, kind, 1.0 if kind == 'adjacency' else 30.0, tolerance=1e-8)
    q, k, v = torch.rand(3, data.num_nodes, 8, 4)
    blocks, features = (masked_linear_attention(q, k, v, mask(data), route=route) for route in ('blocks', 'features'))
    torch.testing.assert_close(blocks, features, rtol=1e-3, atol=1e-3)
    assert float(blocks.detach().max()) < 1.001


@pytest.mark.parametrize('route', ['blocks', 'features'])
def test_signs_of_another_graph_do_not_matter(route: str) -> None:
    first, pair = clique_with_a_path(30), Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=2)
    first.edge_weight = torch.ones(first.num_edges)
    mask, (q, k, v) = HeatKernelMask(1, 'adjacency', 2.0), torch.rand(3, 52, 1, 4)
    outputs = []
    for sign in (1.0, -1.0):
        batch = Batch.from_data_list([first, pair.clone().update({'edge_weight': torch.full((2,), sign)})])
        outputs.append(masked_linear_attention(q, k, v, mask(batch), route=route)[:50])
    torch.testing.assert_close(*outputs, rtol=1e-5, atol=1e-6)
    assert bool((outputs[1] != 0).all())


def test_blocks_of_a_large_tolerance_do_not_serve_a_small_one() -> None:
    data = small_graph()
    graph, adjacency = Graph.from_data(data), weight_matrix(data, None)
    q, k, v = torch.rand(3, 6, 1, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    for tolerance in (0.1, 1e-10):
        mask = HeatKernelMask(1, 'laplacian', 2.0, tolerance).double()
        actual = masked_linear_attention(q, k, v, mask(graph), route='blocks').detach().numpy()
        weight = expm(float(mask.lam.detach()) * (adjacency - np.diag(adjacency.sum(0)))) * (q[:, 0] @ k[:, 0].T).numpy()
        expected = weight @ v[:, 0].numpy() / weight.sum(1, keepdims=True)
        np.testing.assert_allclose(actual[:, 0], expected, rtol=0, atol=10 * tolerance)


def test_times_that_leave_those_of_the_blocks_before() -> None:
    data = Data(edge_index=ring(30), num_nodes=30)
    graph, adjacency = Graph.from_data(data), weight_matrix(data, None)
    q, k, v = torch.rand(3, 30, 2, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    for times in ([1.0, 1.5], [0.01, 1.0], [1.0, 30.0], [1e-4, 300.0], [1.0, 1.5]):
        mask = HeatKernelMask(2, 'laplacian', torch.tensor(times, dtype=torch.float64)).double()
        actual = masked_linear_attention(q, k, v, mask(graph), route='blocks').detach().numpy()
        for head, time in enumerate(mask.lam.tolist()):
            weight = expm(time * (adjacency - np.diag(adjacency.sum(0)))) * (q[:, head] @ k[:, head].T).numpy()
            np.testing.assert_allclose(actual[:, head], weight @ v[:, head].numpy() / weight.sum(1, keepdims=True), atol=1e-6)


@pytest.mark.parametrize('scale', [1e-3, 1e5])
def test_softmax_does_not_change_with_a_factor_of_the_kernel(scale: float) -> None:
    """Some entries are negative by the error of the series."""
    data = Batch.from_data_list([Data(edge_index=undirected([(i, i + 1) for i in range(29)]), num_nodes=30)] * 3)
    mask = HeatKernelMask(2, 'laplacian', torch.tensor([30.0, 15.0]), tolerance=1e-3)
    q, k, v = torch.rand(3, 90, 2, 4, generator=torch.Generator().manual_seed(0))
    outputs = [masked_softmax_attention(q, k, v, operator) for operator in (mask(data), scale * mask(data))]
    torch.testing.assert_close(*outputs, rtol=0, atol=1e-3)


@pytest.mark.parametrize('learned', [False, True])
def test_blocks_of_more_columns_than_are_computed_at_a_time(learned: bool) -> None:
    size, node = 300, torch.arange(300)
    half = (0.5 + torch.rand(size, dtype=torch.float64)).requires_grad_(learned)
    pairs, weight = torch.stack([node, (node + 1) % size]), torch.cat([half, half])
    mask, (q, k, v) = HeatKernelMask(1).double(), torch.rand(3, size, 1, 4, dtype=torch.float64)
    graph = Graph(torch.cat([pairs, pairs.flip(0)], dim=1), size, weight)
    actual = masked_linear_attention(q, k, v, mask(graph), route='blocks')
    adjacency = torch.zeros(size, size, dtype=torch.float64).index_put(tuple(graph.edge_index), weight)
    weights = torch.matrix_exp(mask.lam * (adjacency - adjacency.sum(0).diag())) * (q[:, 0] @ k[:, 0].T)
    expected = (weights @ v[:, 0] / weights.sum(1, keepdim=True)).unsqueeze(1)
    torch.testing.assert_close(actual, expected, rtol=0, atol=1e-6)
    leaves = [mask.raw_lam, half] if learned else [mask.raw_lam]
    for gradient, exact in zip(*(torch.autograd.grad((out * v).sum(), leaves) for out in (actual, expected)), strict=True):
        torch.testing.assert_close(gradient, exact, rtol=1e-4, atol=1e-7)
