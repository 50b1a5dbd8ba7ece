import math
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch
from graphs import GRAPH_NAMES, GRAPHS, NAMES_WITH_NODES, small_digraph, small_graph, small_weighted_graph, uneven_graphs
from grids import covering
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from oracles import as_numpy, confidence, edge_weights, explicit_walks, standard_scores, walk_loads, weight_matrix
from sampled_features import load_matrices
from scipy.stats import chi2
from torch import Tensor
from torch_geometric.data import Batch, Data

from pyg_topomask.graphs.graph import Graph
from pyg_topomask.utils.random import Uniform, counter_uniform
from pyg_topomask.walks import SurvivalLength, WalkSettings, sample_walks
from pyg_topomask.walks.features import WalkFeatures
from pyg_topomask.walks.steps import SAMPLERS, Transitions
from pyg_topomask.walks.walk import walk as walk_from


def visits(graph: Graph, settings: WalkSettings, uniform: Uniform) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    transitions = Transitions.of(graph, settings.normalization, settings.transition, settings.flow)
    return walk_from(transitions, settings, uniform, range(graph.num_nodes))


def table(num_walkers: int, hops: int) -> tuple[Tensor, Callable[[int, Tensor], Tensor]]:
    numbers = torch.rand(hops + 1, num_walkers, dtype=torch.float64)
    return numbers, lambda step, walkers: numbers[step].index_select(0, walkers)


def assert_walks_match(data: Data, num_walks: int, p_halt: float, hops: int, normalization: str | None) -> None:
    edges, weight, num_nodes, _ = as_numpy(data)
    numbers, uniform = table(num_nodes * num_walks, hops)
    survival = (1 - p_halt) ** np.arange(hops + 1)
    walks = explicit_walks(edges, num_nodes, num_walks, survival, lambda step, walker: float(numbers[step, walker]), weight)
    factors = edge_weights(edges, weight, num_nodes, normalization)
    expected = walk_loads(edges, factors, num_nodes, walks, survival)
    made = visits(Graph.from_data(data), WalkSettings(num_walks, p_halt, hops, normalization=normalization), uniform)
    actual = WalkFeatures.from_visits(*made, num_nodes, hops)
    np.testing.assert_allclose(load_matrices(actual), expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(('p_halt', 'normalization'), covering([0.0, 0.4], ['sym', 'rw', None]))
@pytest.mark.parametrize('name', GRAPH_NAMES)
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
def test_loads_of_random_graphs(num_nodes: int, num_edges: int, num_walks: int, p_halt: float, hops: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    edges = torch.randint(num_nodes, (2, num_edges), generator=generator)
    weight = torch.randn(num_edges, generator=generator, dtype=torch.float64)
    assert_walks_match(Data(edge_index=edges, edge_weight=weight, num_nodes=num_nodes), num_walks, p_halt, hops, 'sym')


@pytest.mark.parametrize(
    ('changed', 'graph', 'p_halt'),
    covering(
        [
            {},
            {'sampler': 'antithetic'},
            {'sampler': 'coupled'},
            {'sampler': 'repelling'},
            {'sampler': 'repelling_antithetic'},
            {'transition': 'weight'},
            {'walk_length': 'poisson:1.5'},
            {'walk_length': SurvivalLength((1.0, 0.9, 0.2, 0.1))},
        ],
        [small_graph, small_weighted_graph, small_digraph],
        [0.0, 0.4],
    ),
    ids=lambda value: getattr(value, '__name__', str(value)),
)
def test_expected_loads_are_the_powers_of_the_weights(graph: Callable[[], Data], p_halt: float, changed: dict) -> None:
    data, samples = graph(), []
    settings = WalkSettings(24, p_halt, 3, **changed)
    for seed in range(100):
        samples.append(load_matrices(sample_walks(Graph.from_data(data), settings, seed)))
    weight = weight_matrix(data, 'sym')
    powers = np.stack([np.linalg.matrix_power(weight, length) for length in range(4)])
    assert np.abs(standard_scores(np.stack(samples), powers)).max() < confidence(42 * powers.size)


def walk(data: Data, num_walks: int = 6, p_halt: float = 0.3, hops: int = 4, sampler: str = 'iid') -> WalkFeatures:
    return sample_walks(Graph.from_data(data), WalkSettings(num_walks, p_halt, hops, sampler=sampler), seed=0)


@pytest.mark.parametrize('name', GRAPH_NAMES)
def test_entries_are_distinct_and_ascend(name: str) -> None:
    walks = walk(GRAPHS[name]())
    keys = list(zip(walks.start.tolist(), walks.visited.tolist(), walks.length.tolist(), strict=True))
    assert keys == sorted(set(keys))


def test_no_hops() -> None:
    walks = walk(small_graph(), hops=0)
    assert walks.nnz == 6
    assert walks.length.tolist() == [0] * 6


@pytest.mark.parametrize('p_halt', [0.0, 0.4])
def test_every_walk_deposits_its_load_at_every_hop_it_makes(p_halt: float) -> None:
    """With W = D^-1 A of an unweighted graph, a hop has the load 1 over the probability that walks are that long."""
    survival, walks = (1 - p_halt) ** np.arange(4), 8
    settings = WalkSettings(walks, p_halt, 3, normalization='rw')
    loads = load_matrices(sample_walks(Graph.from_data(small_graph()), settings, seed=0)).sum(2)
    counts = loads * survival[:, None] * walks
    np.testing.assert_allclose(counts, counts.round(), atol=1e-4)
    assert (np.diff(counts, axis=0) <= 1e-4).all()
    assert (counts <= walks + 1e-4).all()
    if p_halt == 0:
        np.testing.assert_allclose(counts, walks, atol=1e-4)


@pytest.mark.parametrize(('order', 'sampler'), covering([[0, 1, 2, 3], [3, 1, 0, 2], [2, 2, 0]], SAMPLERS))
def test_walks_of_a_graph_are_the_same_in_any_batch(order: list[int], sampler: str) -> None:
    graphs = uneven_graphs()
    together = load_matrices(walk(Batch.from_data_list([graphs[index] for index in order]), sampler=sampler))
    first = 0
    for index in order:
        size = graphs[index].num_nodes
        nodes = slice(first, first + size)
        assert np.array_equal(together[:, nodes, nodes], load_matrices(walk(graphs[index], sampler=sampler)))
        first += size


@pytest.mark.parametrize('transition', ['uniform', 'weight'])
def test_walks_do_not_depend_on_the_order_of_the_edges(transition: str) -> None:
    edges = torch.tensor([[0, 0, 1, 1, 2, 0, 2], [1, 1, 0, 2, 1, 1, 1]])  # parallel ones of other weights too
    weight = torch.tensor([1.0, 3.0, 1.0, -2.0, 1.0, -0.5, 4.0])
    settings = WalkSettings(8, 0.3, 4, transition=transition)
    first, *reordered = [
        sample_walks(Graph.from_tensors(edges[:, order], 3, weight[order]), settings, seed=0)
        for order in (torch.arange(7), torch.arange(7).flip(0), torch.tensor([3, 1, 6, 0, 5, 2, 4]))
    ]
    for walks in reordered:
        assert torch.equal(first.visited, walks.visited)
        torch.testing.assert_close(first.load, walks.load)


def test_number_next_to_one_takes_the_last_edge() -> None:
    below = torch.nextafter(torch.ones(1), torch.zeros(1))
    data = Data(edge_index=torch.tensor([[1, 2, 3], [0, 0, 0]]), num_nodes=4)

    def uniform(step: int, walkers: Tensor) -> Tensor:
        return (below if step else torch.zeros(1)).expand(walkers.numel())

    _, visited, _, _ = visits(Graph.from_data(data), WalkSettings(1, 0.5, 1), uniform)
    assert visited.tolist() == [0, 1, 2, 3, 3]


NUMBA_SETTINGS = [
    {},
    {'sampler': 'antithetic'},
    {'sampler': 'repelling'},
    {'sampler': 'repelling_antithetic'},
    {'sampler': 'repelling_coupled'},
    {'sampler': 'coupled', 'walk_length': 'survival:1,1,0.5,0.1', 'importance': False},
    {'transition': 'weight'},
    {'walk_length': 'poisson:2.0'},
    {'importance': False},
    {'normalization': None},
]


@pytest.mark.parametrize(('p_halt', 'changed'), covering([0.0, 0.3], NUMBA_SETTINGS), ids=str)
@pytest.mark.parametrize('name', NAMES_WITH_NODES)
def test_compiled_walks_are_those_of_the_tensor_version(name: str, p_halt: float, changed: dict) -> None:
    pytest.importorskip('numba', reason='Numba is not installed')
    graph, settings = Graph.from_data(GRAPHS[name]()), WalkSettings(6, p_halt, 13, **changed)
    expected, compiled = (sample_walks(graph, settings, 3, backend) for backend in ('torch', 'numba'))
    for column in ('start', 'visited', 'length', 'load'):
        assert torch.equal(getattr(compiled, column), getattr(expected, column))
        assert getattr(compiled, column).dtype == getattr(expected, column).dtype


@pytest.mark.parametrize('num_walks', [70, 200])
def test_compiled_walks_with_many_visits(num_walks: int) -> None:
    pytest.importorskip('numba', reason='Numba is not installed')
    graph, settings = Graph.from_data(small_graph()), WalkSettings(num_walks, 0.1, 8)
    expected, compiled = (sample_walks(graph, settings, 3, backend) for backend in ('torch', 'numba'))
    assert all(map(torch.equal, compiled.visits(), expected.visits()))


@pytest.fixture
def three_threads() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(threads)


@pytest.mark.parametrize(('sampler', 'counts'), covering(SAMPLERS, [False, True]))
def test_compiled_walks_of_many_threads(
    sampler: str, counts: bool, three_threads: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip('numba', reason='Numba is not installed')
    edges = torch.randint(5000, (2, 40000), generator=torch.Generator().manual_seed(0))
    graph, settings = Graph.from_tensors(edges, 5000), WalkSettings(6, 0.2, 30, sampler=sampler)
    expected = sample_walks(graph, settings, 3, 'torch')
    monkeypatch.setattr('pyg_topomask.machine.walk._ALONE', 0)
    if counts:  # as where more visits are made than is likely
        monkeypatch.setattr('pyg_topomask.machine.walk._likely', lambda *_: 0)
    compiled = sample_walks(graph, settings, 3, 'numba')
    assert all(torch.equal(getattr(compiled, name), getattr(expected, name)) for name in ('start', 'visited', 'length', 'load'))


def test_walks_beyond_what_numbers_hold_are_refused() -> None:
    pytest.importorskip('numba', reason='Numba is not installed')
    settings = WalkSettings(1, 0.5, 2**20)
    object.__setattr__(settings, 'num_walks', 2**40)  # like a graph of 2**20 times the nodes
    with pytest.raises(ValueError, match=f'num_walks: got {2**40} of up to {2**20} hops from 6 nodes'):
        sample_walks(Graph.from_data(small_graph()), settings, 0, 'numba')


def test_chunks_of_start_nodes_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, settings = Graph.from_data(GRAPHS['batch']()), WalkSettings(4, 0.2, 5, sampler='repelling')
    whole = sample_walks(graph, settings, 0, 'torch')
    monkeypatch.setattr('pyg_topomask.walks.walk._BUDGET', 64)
    chunked = sample_walks(graph, settings, 0, 'torch')
    assert all(torch.equal(getattr(chunked, name), getattr(whole, name)) for name in ('start', 'visited', 'length', 'load'))


def test_unknown_backend_is_refused() -> None:
    with pytest.raises(ValueError, match="backend: got 'fast'"):
        sample_walks(Graph.from_data(small_graph()), WalkSettings(2, 0.5, 2), 0, 'fast')


def counted(data: Data, num_walks: int) -> NDArray[np.float64]:
    """How often each node is visited after the first hop, [N, N]."""
    settings = WalkSettings(num_walks, 0.0, 1, sampler='repelling', importance=False)
    return load_matrices(sample_walks(Graph.from_data(data), settings, seed=7))[1] * num_walks


@pytest.mark.parametrize('num_walks', [2, 3, 5, 8, 11])
def test_repelling_walkers_leave_by_different_edges_in_blocks_of_the_degree(num_walks: int) -> None:
    data = GRAPHS['batch']()
    simple = np.unique(as_numpy(data)[0], axis=1)
    edge_index = torch.from_numpy(simple[::-1].copy())
    counts = counted(Data(edge_index=edge_index, num_nodes=data.num_nodes), num_walks)
    for node, degree in enumerate(np.bincount(simple[0], minlength=data.num_nodes)):
        if degree > 0:
            by_neighbor = counts[node][simple[1][simple[0] == node]]
            np.testing.assert_allclose(by_neighbor.sum(), num_walks, rtol=1e-5)
            assert set(by_neighbor.round().astype(int)) <= {num_walks // degree, -(-num_walks // degree)}


@pytest.mark.parametrize(('num_walks', 'degree'), [(2, 3), (3, 3), (3, 7), (4, 5), (2, 9)])
def test_repelling_walkers_choose_every_set_of_edges_alike(num_walks: int, degree: int) -> None:
    """Many stars: sets of chosen leaves, and which of two walkers went where, against the uniform distribution."""
    stars, leaves = 3000, torch.arange(degree)
    first = torch.arange(stars).repeat_interleave(degree) * (degree + 1)
    edges = torch.stack([first + 1 + leaves.repeat(stars), first])
    graph = Graph.from_tensors(edges, stars * (degree + 1))
    uniform = counter_uniform(0, graph.segments.position, num_walks)
    start, visited, length, _ = visits(graph, WalkSettings(num_walks, 0.0, 1, sampler='repelling'), uniform)
    chosen = ((visited - start - 1)[length == 1]).view(stars, num_walks).numpy()
    ordered = [tuple(row) for row in chosen]
    assert all(len(set(row)) == num_walks for row in ordered)
    _, counts = np.unique(chosen, axis=0, return_counts=True)
    kinds = math.perm(degree, num_walks)
    expected = stars / kinds
    statistic = ((counts - expected) ** 2 / expected).sum() + (kinds - len(counts)) * expected
    assert statistic < chi2.isf(1e-5, kinds - 1)


@pytest.mark.parametrize('p_halt', [0.2, 0.5])
def test_antithetic_walkers_halt_at_different_times_and_each_as_often(p_halt: float) -> None:
    nodes, hops = 4000, 6
    settings = WalkSettings(2, p_halt, hops, sampler='antithetic')
    sampler, walkers = SAMPLERS['antithetic'](), torch.arange(2 * nodes)
    lengths = sampler.lengths(counter_uniform(0, torch.arange(nodes), 2), walkers, settings.survival).view(nodes, 2)
    assert (lengths[:, 0] != lengths[:, 1]).logical_or(lengths[:, 0] == hops).all()
    for walker_lengths in lengths.t().numpy():
        for hop in range(1, hops + 1):
            share, expected = (walker_lengths >= hop).mean(), (1 - p_halt) ** hop
            assert abs(share - expected) < confidence(24) * np.sqrt(expected * (1 - expected) / nodes)


@pytest.mark.parametrize('length', [None, 'survival:1,1,0.7,0.7,0.2'])
def test_coupled_walkers_have_opposite_quantiles_and_each_the_same_distribution(length: str | None) -> None:
    nodes, hops = 4000, 4
    settings = WalkSettings(2, 0.4, hops, sampler='coupled', walk_length=length)
    uniform, survival = counter_uniform(0, torch.arange(nodes), 2), settings.survival.numpy()
    lengths = SAMPLERS['coupled']().lengths(uniform, torch.arange(2 * nodes), settings.survival).view(nodes, 2).numpy()
    numbers = uniform(0, torch.arange(0, 2 * nodes, 2)).numpy()
    for walker, quantiles in enumerate((numbers, 1 - numbers)):
        assert np.array_equal(lengths[:, walker], (quantiles[:, None] < survival[1:]).sum(1))
        for hop in range(1, hops + 1):
            share, expected = (lengths[:, walker] >= hop).mean(), survival[hop]
            assert abs(share - expected) <= confidence(16) * np.sqrt(expected * (1 - expected) / nodes)


def test_antithetic_walks_vary_less_than_independent_ones() -> None:
    data = GRAPHS['undirected']()
    variance = {}
    for sampler in ('iid', 'antithetic', 'coupled', 'repelling', 'repelling_antithetic'):
        settings = WalkSettings(6, 0.5, 4, sampler=sampler)
        loads = np.stack([load_matrices(sample_walks(Graph.from_data(data), settings, seed)) for seed in range(600)])
        variance[sampler] = loads.var(0).sum()
    assert variance['antithetic'] < variance['iid']
    assert variance['coupled'] < variance['iid']
    assert variance['repelling'] < variance['iid']
    assert variance['repelling_antithetic'] < variance['antithetic']
