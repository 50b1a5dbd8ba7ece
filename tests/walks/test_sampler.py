from collections.abc import Callable

import numpy as np
import pytest
import torch
from graphs import GRAPHS, small_digraph, small_graph, small_weighted_graph, uneven_graphs
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from oracles import as_numpy, confidence, edge_weights, explicit_walks, standard_scores, walk_loads, weight_matrix
from torch import Tensor
from torch_geometric.data import Batch, Data

from pyg_topomask.graph import Graph
from pyg_topomask.walks import WalkFeatures, counter_uniform, generator_uniform, geometric_survival, sample_walks


def dense(walks: WalkFeatures) -> NDArray[np.float64]:
    """P_l as matrices; entries must be distinct."""
    loads = np.zeros((walks.max_walk_length + 1, walks.num_nodes, walks.num_nodes))
    loads[walks.length.numpy(), walks.start.numpy(), walks.visited.numpy()] = walks.load.numpy()
    return loads


def table(num_walkers: int, hops: int) -> tuple[Tensor, Callable[[int, Tensor], Tensor]]:
    numbers = torch.rand(hops + 1, num_walkers, dtype=torch.float64)
    return numbers, lambda step, walkers: numbers[step].index_select(0, walkers)


def assert_walks_match(data: Data, num_walks: int, p_halt: float, hops: int, normalization: str | None) -> None:
    edges, weight, num_nodes, _ = as_numpy(data)
    numbers, uniform = table(num_nodes * num_walks, hops)
    survival = geometric_survival(p_halt, hops)
    walks = explicit_walks(edges, num_nodes, num_walks, survival.numpy(), lambda step, walker: float(numbers[step, walker]))
    factors = edge_weights(edges, weight, num_nodes, normalization)
    expected = walk_loads(edges, factors, num_nodes, walks, survival.numpy())
    found = sample_walks(Graph.from_data(data), num_walks, survival, uniform, normalization)
    np.testing.assert_allclose(dense(found), expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize('normalization', ['sym', 'rw', None])
@pytest.mark.parametrize('p_halt', [0.0, 0.4])
@pytest.mark.parametrize('name', GRAPHS)
def test_loads_are_those_of_explicit_walks(name: str, p_halt: float, normalization: str | None) -> None:
    assert_walks_match(GRAPHS[name](), 3, p_halt, 3, normalization)


@settings(deadline=None, max_examples=30, derandomize=True)
@given(
    num_nodes=st.integers(1, 8),
    num_edges=st.integers(0, 20),
    num_walks=st.integers(1, 5),
    p_halt=st.floats(0.0, 0.9),
    hops=st.integers(0, 5),
    seed=st.integers(0, 100),
)
def test_loads_of_random_graphs(
    num_nodes: int, num_edges: int, num_walks: int, p_halt: float, hops: int, seed: int
) -> None:
    generator = torch.Generator().manual_seed(seed)
    edges = torch.randint(num_nodes, (2, num_edges), generator=generator)
    weight = torch.randn(num_edges, generator=generator, dtype=torch.float64)
    assert_walks_match(Data(edge_index=edges, edge_weight=weight, num_nodes=num_nodes), num_walks, p_halt, hops, 'sym')


@pytest.mark.parametrize('counter', [True, False], ids=['counter', 'generator'])
@pytest.mark.parametrize('p_halt', [0.0, 0.4])
@pytest.mark.parametrize('graph', [small_graph, small_weighted_graph, small_digraph])
def test_expected_loads_are_the_powers_of_the_weights(graph: Callable[[], Data], p_halt: float, counter: bool) -> None:
    data, survival, samples = graph(), geometric_survival(p_halt, 3), []
    for seed in range(400):
        if counter:
            uniform = counter_uniform(seed, torch.arange(6), 4)
        else:
            uniform = generator_uniform(torch.Generator().manual_seed(seed), torch.device('cpu'))
        samples.append(dense(sample_walks(Graph.from_data(data), 4, survival, uniform)))
    weight = weight_matrix(data, 'sym')
    powers = np.stack([np.linalg.matrix_power(weight, length) for length in range(4)])
    assert np.abs(standard_scores(np.stack(samples), powers)).max() < confidence(12 * powers.size)


def walk(data: Data, num_walks: int = 6, p_halt: float = 0.3, hops: int = 4) -> WalkFeatures:
    graph = Graph.from_data(data)
    return sample_walks(graph, num_walks, geometric_survival(p_halt, hops), counter_uniform(0, graph.local_id, num_walks))


@pytest.mark.parametrize('name', GRAPHS)
def test_every_visit_is_reachable_in_exactly_its_hops(name: str) -> None:
    data = GRAPHS[name]()
    edges, _, num_nodes, _ = as_numpy(data)
    adjacency = np.zeros((num_nodes, num_nodes))
    adjacency[edges[0], edges[1]] = 1
    walks = walk(data)
    for start, visited, length in zip(walks.start, walks.visited, walks.length, strict=True):
        assert np.linalg.matrix_power(adjacency, int(length))[start, visited] > 0


@pytest.mark.parametrize('name', GRAPHS)
def test_entries_are_distinct_and_ascend(name: str) -> None:
    walks = walk(GRAPHS[name]())
    keys = list(zip(walks.start.tolist(), walks.visited.tolist(), walks.length.tolist(), strict=True))
    assert keys == sorted(set(keys))


@pytest.mark.parametrize('name', GRAPHS)
def test_every_node_keeps_its_own_entry_of_no_hops_with_load_one(name: str) -> None:
    walks = walk(GRAPHS[name]())
    own = walks.length == 0
    assert walks.start[own].tolist() == list(range(walks.num_nodes))
    assert torch.equal(walks.start[own], walks.visited[own])
    assert (walks.load[own] == 1).all()


def test_isolated_nodes_visit_nothing_else() -> None:
    walks = walk(GRAPHS['batch']())
    assert (walks.start == 32).sum() == 1  # the last node of the graph of 30


def test_walks_end_at_dead_ends() -> None:
    walks = walk(Data(edge_index=torch.tensor([[0, 1], [1, 2]]), num_nodes=3), p_halt=0.0)
    entries = list(zip(walks.start.tolist(), walks.visited.tolist(), walks.length.tolist(), strict=True))
    assert entries == [(0, 0, 0), (0, 1, 1), (0, 2, 2), (1, 1, 0), (1, 2, 1), (2, 2, 0)]


def test_no_hops() -> None:
    walks = walk(small_graph(), hops=0)
    assert walks.nnz == 6
    assert walks.length.tolist() == [0] * 6


@pytest.mark.parametrize('p_halt', [0.0, 0.4])
def test_every_walk_deposits_its_load_at_every_hop_it_makes(p_halt: float) -> None:
    """With W = D^-1 A of an unweighted graph, a hop has the load 1 over the probability that walks are that long."""
    survival, walks = geometric_survival(p_halt, 3), 8
    uniform = counter_uniform(0, torch.arange(6), walks)
    loads = dense(sample_walks(Graph.from_data(small_graph()), walks, survival, uniform, 'rw')).sum(2)
    counts = loads * survival.numpy()[:, None] * walks
    np.testing.assert_allclose(counts, counts.round(), atol=1e-4)
    assert (np.diff(counts, axis=0) <= 1e-4).all()
    assert (counts <= walks + 1e-4).all()
    if p_halt == 0:
        np.testing.assert_allclose(counts, walks, atol=1e-4)


def test_zero_weight_edges_are_walked_with_load_zero() -> None:
    walks = walk(GRAPHS['zero_weights']())
    assert (walks.load[walks.length > 0] == 0).all()
    assert walks.load.isfinite().all()


@pytest.mark.parametrize('order', [[0, 1, 2, 3], [3, 1, 0, 2], [2, 2, 0]])
def test_walks_of_a_graph_are_the_same_in_any_batch(order: list[int]) -> None:
    graphs = uneven_graphs()
    found = dense(walk(Batch.from_data_list([graphs[index] for index in order])))
    first = 0
    for index in order:
        size = graphs[index].num_nodes
        own = slice(first, first + size)
        assert np.array_equal(found[:, own, own], dense(walk(graphs[index])))
        first += size


def test_number_next_to_one_takes_the_last_edge() -> None:
    below = torch.nextafter(torch.ones(1), torch.zeros(1))
    data = Data(edge_index=torch.tensor([[0, 0, 0], [1, 2, 3]]), num_nodes=4)

    def uniform(step: int, walkers: Tensor) -> Tensor:
        return (below if step else torch.zeros(1)).expand(walkers.numel())

    walks = sample_walks(Graph.from_data(data), 1, geometric_survival(0.5, 1), uniform)
    assert walks.visited.tolist() == [0, 3, 1, 2, 3]
