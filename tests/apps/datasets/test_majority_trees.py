"""Trees and majorities, checked with NetworkX."""

import networkx as nx
import pytest
from torch_geometric.utils import to_networkx

from pyg_topomask.apps.datasets import MajorityTrees


@pytest.mark.parametrize('radius', [0, 1, 3])
def test_labels_are_the_majorities_within_the_radius(radius: int) -> None:
    for data in MajorityTrees(num_graphs=5, size=30, radius=radius):
        graph = to_networkx(data, to_undirected=True)
        assert nx.is_tree(graph)
        red = data.x.argmax(1).tolist()
        for node in graph:
            near = nx.single_source_shortest_path_length(graph, node, cutoff=radius)
            assert int(data.y[node]) == (sum(1 if red[other] else -1 for other in near) > 0)


def test_with_keys_only_nodes_with_the_key_asked_for_count() -> None:
    for data in MajorityTrees(num_graphs=5, size=40, radius=3, num_keys=4):
        graph = to_networkx(data, to_undirected=True)
        assert data.x.shape == (40, 10)
        assert (data.x[:, 2:6].sum(1) == 1).all()
        assert (data.x[:, 6:].sum(1) == 1).all()
        red, key, asked = (columns.argmax(1).tolist() for columns in data.x.split([2, 4, 4], dim=1))
        for node in graph:
            near = nx.single_source_shortest_path_length(graph, node, cutoff=3)
            lead = sum(1 if red[other] else -1 for other in near if key[other] == asked[node])
            assert int(data.y[node]) == (lead > 0)


def test_splits_and_seeds() -> None:
    whole = MajorityTrees(num_graphs=11, size=10, seed=3)
    assert {name: len(index) for name, index in whole.split_indices().items()} == {'train': 5, 'val': 2, 'test': 4}
    assert MajorityTrees(num_graphs=11, size=10, seed=3, split='val')[0].y.tolist() == whole[5].y.tolist()
    assert MajorityTrees(num_graphs=11, size=10, seed=-1)[0].edge_index.tolist() != whole[0].edge_index.tolist()
    assert MajorityTrees(num_graphs=11, size=10, seed=4)[0].edge_index.tolist() != whole[0].edge_index.tolist()


def test_arguments_outside_their_range_are_refused(subtests: pytest.Subtests) -> None:
    for arguments in [{'split': 'all'}, {'num_graphs': 4}, {'size': 2}, {'radius': -1}, {'num_keys': 0}, {'seed': 'x'}]:
        with subtests.test(arguments=arguments):
            (name,) = arguments
            with pytest.raises(ValueError, match=name):
                MajorityTrees(**arguments)
