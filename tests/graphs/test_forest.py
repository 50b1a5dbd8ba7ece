import numpy as np
import pytest
import torch
from graphs import no_edges, path, random_tree, ring
from numpy.typing import NDArray
from scipy.sparse.csgraph import shortest_path
from torch import Tensor

from pyg_topomask.graphs.forest import Forest
from pyg_topomask.graphs.segments import Segments


def star(size: int) -> Tensor:
    return torch.stack([torch.zeros(size - 1, dtype=torch.long), torch.arange(1, size)])


def random_forest(size: int, seed: int = 0) -> Tensor:
    """A random tree without a third of its edges, the others in a random direction."""
    edges = random_tree(size, seed)[:, torch.arange(size - 1) % 3 > 0]
    return torch.where(torch.arange(edges.size(1)) % 2 == 0, edges, edges.flip(0))


FORESTS = {
    'empty': (no_edges(), 0),
    'one_node': (no_edges(), 1),
    'no_edges': (no_edges(), 5),
    'two_nodes': (path(2), 2),
    'path': (path(50), 50),
    'shuffled_path': (torch.randperm(50, generator=torch.Generator().manual_seed(0))[path(50)], 50),
    'star': (star(40), 40),
    'tree': (random_tree(60), 60),
    'forest': (random_forest(60), 60),
    'binary': (torch.stack([(torch.arange(1, 63) - 1) // 2, torch.arange(1, 63)]), 63),
}


def hops(edge_index: Tensor, size: int) -> NDArray[np.float64]:
    matrix = np.zeros((size, size))
    matrix[tuple(edge_index.numpy())] = 1
    return shortest_path(matrix, directed=False, unweighted=True) if size > 0 else matrix


def test_depth_tree_and_diameter(subtests: pytest.Subtests) -> None:
    for name in FORESTS:
        with subtests.test(name=name):
            edge_index, size = FORESTS[name]
            forest, distance = Forest.from_edges(edge_index, size), hops(edge_index, size)
            joined = np.isfinite(distance)
            assert forest.root.sum() == len(np.unique(joined, axis=0))
            np.testing.assert_array_equal(forest.depth, distance[np.arange(size), forest.tree])
            np.testing.assert_array_equal(forest.tree[:, None] == forest.tree, joined)
            np.testing.assert_array_equal(distance[np.arange(size), forest.parent], ~forest.root)
            assert forest.diameter == distance[joined].max(initial=0)


def test_hops_within_graphs_of_one_or_several_trees(subtests: pytest.Subtests) -> None:
    for name in FORESTS:
        with subtests.test(name=name):
            edge_index, size = FORESTS[name]
            edges, batch = torch.cat([edge_index, random_forest(9) + size], dim=1), torch.arange(size + 9) // max(size, 1)
            batch[size:] = 2  # and an empty graph
            forest, segments = Forest.from_edges(edges, size + 9), Segments(size + 9, batch.clamp(max=2), 4)
            expected = hops(edges, size + 9)[segments.index[:, None] == segments.index]
            np.testing.assert_array_equal(forest.hops(segments), np.where(np.isfinite(expected), expected, -1))


def test_contraction_takes_away_independent_nodes_with_at_most_one_child(subtests: pytest.Subtests) -> None:
    for name in FORESTS:
        with subtests.test(name=name):
            forest = Forest.from_edges(*FORESTS[name])
            above = {int(node): int(parent) for node, parent in enumerate(forest.parent) if node != parent}
            for now in range(int(forest.round[~forest.root].max(initial=-1)) + 1):
                gone = [node for node in above if forest.round[node] == now]
                assert gone
                assert not {above[node] for node in gone} & set(gone)
                children = {node: [child for child, parent in above.items() if parent == node] for node in gone}
                for node in gone:
                    assert forest.up[node] == above[node]
                    assert children[node] == ([] if forest.down[node] == node else [forest.down[node]])
                for node in gone:
                    for child in children[node]:
                        above[child] = above[node]
                    del above[node]
            assert not above


def test_long_paths_take_few_rounds() -> None:
    forest = Forest.from_edges(path(100_000), 100_000)
    assert len(forest.schedule[-1]) <= 40
    assert forest.depth.max() == 99_999


def test_roots_can_be_chosen() -> None:
    forest = Forest.from_edges(path(5), 5, np.array([2]))
    assert forest.parent.tolist() == [1, 2, 2, 2, 3]


def test_edges_in_both_directions_repeated_edges_and_self_loops_are_no_cycles() -> None:
    edges = path(4)
    loops = torch.tensor([[1, 3], [1, 3]])
    forest = Forest.from_edges(torch.cat([edges, edges.flip(0), edges, loops], dim=1).int(), 4)
    assert forest.parent.tolist() == Forest.from_edges(edges, 4).parent.tolist()


@pytest.mark.parametrize('size', [3, 4, 20])
def test_the_nodes_of_a_cycle_are_named(size: int) -> None:
    # A tree, and a ring that hangs on it.
    edges = torch.cat([path(6), torch.tensor([[5], [8]]), ring(size)[:, :size] + 6], dim=1)
    with pytest.raises(ValueError, match=r'^edge_index: got a graph with a cycle through the nodes \[') as caught:
        Forest.from_edges(edges, 6 + size)
    named = str(caught.value).split('[')[1].split(']')[0]
    cycle = [int(node) for node in named.split(', ')]
    assert sorted(cycle) == list(range(6, 6 + size))
    assert all((a - b) % size in (1, size - 1) for a, b in zip(cycle, cycle[1:] + cycle[:1], strict=True))


def test_of_a_long_cycle_the_first_nodes_are_named() -> None:
    with pytest.raises(ValueError, match=r'nodes \[(\d+, ){20}\.\.\.\] \(1000 nodes\); accepted: forests'):
        Forest.from_edges(ring(1000)[:, :1000], 1000)


def test_lengths_are_those_of_the_shortest_parallel_edge_and_differentiable() -> None:
    edges = torch.tensor([[0, 1, 0, 2, 1], [1, 0, 1, 1, 1]])
    weight = torch.tensor([3.0, 2.0, 4.0, 5.0, 0.5], requires_grad=True)
    forest = Forest.from_edges(edges, 4)
    lengths = forest.lengths(edges, weight)
    assert sorted(lengths.tolist()) == [0.0, 0.0, 2.0, 5.0]
    lengths.sum().backward()
    assert weight.grad.tolist() == [0.0, 1.0, 0.0, 1.0, 0.0]


def test_longest_path() -> None:
    edges, weight = random_forest(40), torch.rand(26, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    matrix = np.zeros((40, 40))
    matrix[tuple(edges.numpy())] = weight
    distance = shortest_path(matrix, directed=False)
    forest = Forest.from_edges(edges, 40)
    actual = forest.longest_path(forest.lengths(edges, weight))
    np.testing.assert_allclose(actual, distance[np.isfinite(distance)].max())


def test_histograms_count_every_pair_once_at_its_distance(subtests: pytest.Subtests) -> None:
    for name in FORESTS:
        with subtests.test(name=name):
            edge_index, size = FORESTS[name]
            distance = hops(edge_index, size)
            histograms = Forest.from_edges(edge_index, size).histograms
            counts = np.zeros((size, size, max(size, 1)))
            first = begin = 0
            for width, last, end in histograms.groups:
                which, place = histograms.slot[begin:end] // width, histograms.slot[begin:end] % width
                for histogram in range(last - first):
                    members = which == histogram
                    for i, d in zip(histograms.member[begin:end][members], place[members], strict=True):
                        for j, e in zip(histograms.member[begin:end][members], place[members], strict=True):
                            counts[i, j, min(d + e, size - 1)] += histograms.sign[first + histogram]
                first, begin = last, end
            expected = np.zeros_like(counts)
            for i, j in np.argwhere(np.isfinite(distance)):
                expected[i, j, int(distance[i, j])] = 1
            np.testing.assert_array_equal(counts, expected)
