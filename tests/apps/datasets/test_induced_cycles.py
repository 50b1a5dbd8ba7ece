"""Trees with one more edge, checked with NetworkX."""

import pytest
import torch
from torch_geometric.data import Data

from pyg_topomask.apps.datasets.motifs import InducedCycles, neighbor_degrees

nx = pytest.importorskip('networkx')


def as_networkx(data: Data) -> 'nx.Graph':
    graph = nx.Graph()
    graph.add_nodes_from(range(data.num_nodes))
    graph.add_edges_from(data.edge_index.t().tolist())
    return graph


@pytest.mark.parametrize('size', [5, 7, 50])
def test_positives_close_the_longest_cycle_that_their_tree_allows_and_negatives_a_shorter_one(size: int) -> None:
    dataset = InducedCycles(num_pairs=40, size=size)
    assert len(dataset) == 80
    for negative, positive in zip(dataset[::2], dataset[1::2], strict=True):
        assert (int(negative.y), int(positive.y)) == (0, 1)
        graphs = as_networkx(negative), as_networkx(positive)
        tree = nx.intersection(*graphs)
        assert nx.is_tree(tree)
        assert max(dict(tree.degree()).values()) <= 3
        diameter = nx.diameter(tree)
        (short,), (long,) = (nx.minimum_cycle_basis(graph) for graph in graphs)
        assert len(long) == diameter + 1
        assert 3 <= len(short) <= diameter
        for data in (negative, positive):
            assert data.num_nodes == size
            assert data.num_edges == 2 * size
            assert torch.equal(data.x, neighbor_degrees(data.edge_index, size))


def test_trees_are_binary_and_random() -> None:
    dataset = InducedCycles(num_pairs=200, size=20)
    diameters = [nx.diameter(nx.intersection(*map(as_networkx, dataset[2 * i : 2 * i + 2]))) for i in range(200)]
    assert len(set(diameters)) > 4


def test_sets_are_a_function_of_their_seed() -> None:
    first, again, other_seed = (InducedCycles(num_pairs=4, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(first._data.edge_index, again._data.edge_index)
    assert not torch.equal(first._data.edge_index, other_seed._data.edge_index)


def test_splits_keep_the_examples_of_a_tree_together() -> None:
    whole, val = InducedCycles(num_pairs=8), InducedCycles(num_pairs=8, split='val')
    indices = whole.split_indices()
    assert [len(index) for index in indices.values()] == [12, 4]
    assert torch.cat(list(indices.values())).sort().values.tolist() == list(range(16))
    assert val._data.y.tolist() == [0, 1] * 2
    assert torch.equal(val[1].edge_index, whole[int(indices['val'][1])].edge_index)


@pytest.mark.parametrize(
    ('name', 'settings'), [('split', {'split': 'test'}), ('num_pairs', {'num_pairs': 0}), ('size', {'size': 4})]
)
def test_bad_arguments_are_named(name: str, settings: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=f'^{name}: got'):
        InducedCycles(**settings)
