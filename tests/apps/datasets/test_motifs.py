"""Graphs with planted motifs, checked with NetworkX."""

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data

from pyg_topomask.apps.datasets.motifs import MOTIFS, MotifGraphs, neighbor_degrees

nx = pytest.importorskip('networkx')

REFERENCE = {
    'caveman': lambda: nx.compose_all(map(nx.cycle_graph, ([0, 1, 2], [3, 4, 5], [6, 7, 8], [2, 5, 8]))),
    'circle': lambda: nx.cycle_graph(10),
    'grid': lambda: nx.grid_2d_graph(3, 3),
    'ladder': lambda: nx.ladder_graph(5),
    'circular_ladder': lambda: nx.circular_ladder_graph(5),
}


def as_networkx(edge_index: Tensor, num_nodes: int) -> 'nx.Graph':
    graph = nx.Graph()
    graph.add_nodes_from(range(num_nodes))
    graph.add_edges_from(edge_index.t().tolist())
    return graph


def small_part(data: Data, size: int) -> 'nx.Graph':
    return as_networkx(data.edge_index, data.num_nodes).subgraph(range(size, data.num_nodes))


@pytest.mark.parametrize('motif', MOTIFS)
def test_motifs_are_those_of_the_figure(motif: str) -> None:
    edges = torch.tensor(MOTIFS[motif]).t()
    assert nx.is_isomorphic(as_networkx(edges, int(edges.max()) + 1), REFERENCE[motif]())
    assert len({frozenset(edge) for edge in MOTIFS[motif]}) == len(MOTIFS[motif])


@pytest.mark.parametrize('motif', MOTIFS)
def test_positives_hold_the_motif_and_negatives_one_of_its_degree_that_does_not(motif: str) -> None:
    dataset, size, reference = MotifGraphs(motif=motif, num_pairs=40, size=30), 30, REFERENCE[motif]()
    assert len(dataset) == 80
    assert dataset._data.y.tolist() == [0, 1] * 40
    for data in dataset:
        small = small_part(data, size)
        assert (len(small), small.size()) == (len(reference), reference.size())
        # With as many nodes and edges, holding the motif is being it.
        assert nx.is_isomorphic(small, reference) == bool(data.y)
        large = as_networkx(data.edge_index, data.num_nodes).subgraph(range(size))
        assert large.size() == round(size * reference.size() / len(reference))
        assert data.is_undirected()
        assert not data.has_self_loops()
    negative, positive = dataset[0], dataset[1]
    first, second = (data.edge_index[:, (data.edge_index < size).all(0)] for data in (negative, positive))
    assert torch.equal(first, second)


def test_small_graphs_of_negatives_differ_and_are_joined_with_the_probability_given() -> None:
    dataset = MotifGraphs(motif='grid', num_pairs=60, size=40, connect=0.1)
    seen = {tuple(sorted(dict(small_part(data, 40).degree()).values())) for data in dataset if not data.y}
    assert len(seen) > 5
    across = [int((data.edge_index[0] < 40).eq(data.edge_index[1] >= 40).sum()) // 2 for data in dataset]
    pairs = 120 * 40 * 9
    assert abs(sum(across) / pairs - 0.1) < 4 * (0.1 * 0.9 / pairs) ** 0.5
    apart = MotifGraphs(num_pairs=2, size=20, connect=0.0)[1]
    assert not nx.is_connected(as_networkx(apart.edge_index, apart.num_nodes))


def test_features_are_the_largest_degrees_of_the_neighbors() -> None:
    data = MotifGraphs(motif='caveman', num_pairs=2, size=30, connect=0.3)[1]
    graph = as_networkx(data.edge_index, data.num_nodes)
    expected = [
        (sorted((graph.degree[neighbor] for neighbor in graph[node]), reverse=True) + [0] * 5)[:5] for node in sorted(graph)
    ]
    assert data.x.tolist() == expected
    assert max(map(len, graph.adj.values())) > 5
    assert neighbor_degrees(torch.empty(2, 0, dtype=torch.long), 3).tolist() == [[0.0] * 5] * 3


def test_sets_are_a_function_of_their_seed() -> None:
    first, again, other_seed = (MotifGraphs(motif='ladder', num_pairs=4, size=20, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(first._data.edge_index, again._data.edge_index)
    assert not torch.equal(first[0].edge_index, other_seed[0].edge_index)
    state = torch.get_rng_state()
    MotifGraphs(num_pairs=2, size=20)
    assert torch.equal(state, torch.get_rng_state())


def test_splits_keep_pairs_together() -> None:
    whole = MotifGraphs(num_pairs=16, size=20)
    datasets = {split: MotifGraphs(num_pairs=16, size=20, split=split) for split in ('train', 'val')}
    assert {name: len(dataset) for name, dataset in datasets.items()} == {'train': 24, 'val': 8}
    indices = whole.split_indices()
    assert torch.cat(list(indices.values())).sort().values.tolist() == list(range(32))
    for name, index in indices.items():
        assert index.view(-1, 2)[:, 1].equal(index.view(-1, 2)[:, 0] + 1)
        assert index.view(-1, 2)[:, 0].remainder(2).eq(0).all()
        assert torch.equal(datasets[name][3].edge_index, whole[int(index[3])].edge_index)


def test_transforms() -> None:
    calls: list[int] = []

    def count(data: Data) -> Data:
        calls.append(1)
        return data

    MotifGraphs(num_pairs=4, size=20, split='val', pre_transform=count)
    assert len(calls) == 2
    MotifGraphs(num_pairs=4, size=20, transform=count)[0]
    assert len(calls) == 3


@pytest.mark.parametrize(
    ('name', 'settings'),
    [('motif', {'motif': 'wheel'}), ('split', {'split': 'test'}), ('num_pairs', {'num_pairs': 1})]
    + [('size', {'size': 8}), ('connect', {'connect': 1.5})],
)
def test_bad_arguments_are_named(name: str, settings: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=f'^{name}: got'):
        MotifGraphs(**settings)
