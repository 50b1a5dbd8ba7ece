from collections.abc import Callable

import pytest
import torch
from graphs import no_edges, ring
from torch import Tensor
from torch_geometric.data import Batch, Data, HeteroData
from torch_geometric.loader import DataLoader
from torch_geometric.transforms import AddSelfLoops, Compose, ToUndirected

from pyg_topomask.graphs.graph import Graph
from pyg_topomask.graphs.tree_state import TreeState
from pyg_topomask.masks.tree import TreeMask
from pyg_topomask.transforms.precomputed import AddForest

NAMES = ['forest_index', 'forest_round', 'forest_sizes']


def tree() -> Data:
    edges = torch.tensor([[0, 0, 1, 2, 4], [1, 2, 3, 4, 5]])
    return Data(x=torch.arange(6.0), edge_index=edges, edge_weight=torch.arange(1.0, 6.0))


DATA: dict[str, Callable[[], Data]] = {
    'empty': lambda: Data(edge_index=no_edges(), num_nodes=0),
    'no_edges': lambda: Data(edge_index=no_edges(), num_nodes=3),
    'one_node': lambda: Data(edge_index=no_edges(), num_nodes=1),
    'self_loop': lambda: Data(edge_index=torch.tensor([[0], [0]]), num_nodes=1),
    'forest': lambda: Data(edge_index=torch.tensor([[0, 4], [2, 5]]), num_nodes=7),
    'tree': tree,
}


def bind(data: Data, kind: str = 'exp') -> Tensor:
    return TreeMask(kind=kind)(data).to_dense().detach()


@pytest.mark.parametrize('kind', ['exp', 'distance'])
@pytest.mark.parametrize('name', DATA)
def test_the_stored_forest_is_used_and_gives_the_same_mask(name: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected, stored = bind(DATA[name](), kind), AddForest()(DATA[name]())
    assert {key for key in stored.to_dict() if 'forest' in key} == set(NAMES)
    monkeypatch.setattr(TreeState, 'of', lambda *_: pytest.fail('the stored forest was not used'))
    assert torch.equal(bind(stored, kind), expected)


def test_a_stored_forest_allows_other_edge_weights() -> None:
    stored = AddForest()(tree())
    stored.edge_weight = torch.nn.Parameter(stored.edge_weight + 1.0)
    changed = tree()
    changed.edge_weight = changed.edge_weight + 1.0
    mask = TreeMask()(stored).to_dense()
    assert torch.equal(mask.detach(), bind(changed))
    mask.sum().backward()
    assert stored.edge_weight.grad.all()


def test_nodes_and_edges_are_left_as_they_are(subtests: pytest.Subtests) -> None:
    for name in DATA:
        with subtests.test(name=name):
            before, after = DATA[name](), AddForest()(DATA[name]())
            assert (after.num_nodes, after.num_edges) == (before.num_nodes, before.num_edges)
            if before.num_nodes > 1:
                assert not any(after.is_node_attr(key) or after.is_edge_attr(key) for key in NAMES)


def test_batches_and_loaders(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = [make() for make in DATA.values() if 'edge_weight' not in make()]
    expected = [bind(data) for data in plain]
    stored = [Compose([AddForest()])(data) for data in plain]
    monkeypatch.setattr(TreeState, 'of', lambda *_: pytest.fail('the stored forest was not used'))
    for order in ([0, 1, 2, 3], [3, 0, 2, 1, 3]):
        batch = Batch.from_data_list([stored[index] for index in order])
        torch.testing.assert_close(bind(batch)[0], torch.block_diag(*(expected[index][0] for index in order)))
        for one, index in zip(batch.to_data_list(), order, strict=True):
            assert all(torch.equal(one[name], stored[index][name]) for name in NAMES)
    for batch in DataLoader(stored, batch_size=3):
        assert bind(batch).size(1) == batch.num_nodes


CHANGES: dict[str, Callable[[Data], Data]] = {
    'subgraph': lambda data: data.subgraph(torch.tensor([0, 1, 3])),
    'renamed': lambda data: data.subgraph(torch.tensor([5, 4, 3, 2, 1, 0])),
    'edge_subgraph': lambda data: data.edge_subgraph(torch.arange(5) < 3),
    'self_loops': AddSelfLoops(attr='edge_weight'),
    'undirected': ToUndirected(),
    'sort': lambda data: data.sort(),
    'weights': lambda data: data.update({'edge_weight': data.edge_weight + 1}),
    'nodes': lambda data: data.update({'x': torch.ones(8)}),
}


@pytest.mark.parametrize('change', CHANGES)
def test_a_forest_on_changed_data_is_right_or_refused(change: str) -> None:
    changed = CHANGES[change](AddForest()(tree()))
    fresh = Data(edge_index=changed.edge_index, edge_weight=changed.edge_weight, num_nodes=changed.num_nodes)
    try:
        actual = bind(changed)
    except ValueError as error:
        message = str(error)
    else:
        torch.testing.assert_close(actual, bind(fresh))
        return
    assert 'run AddForest again' in message


@pytest.mark.parametrize('name', NAMES)
def test_an_incomplete_forest_is_refused(name: str) -> None:
    stored = AddForest()(tree())
    del stored[name]
    with pytest.raises(ValueError, match=rf"^data: got a stored forest without \['{name}'\]; .*; run AddForest again"):
        bind(stored)


def test_a_forest_of_an_earlier_version_is_refused() -> None:
    stored = AddForest()(tree())
    stored.forest_sizes = stored.forest_sizes[:, :4]
    with pytest.raises(ValueError, match=r'^data: got a forest stored by an earlier version; .*; run AddForest again'):
        bind(stored)


def test_a_forest_of_another_graph_is_refused() -> None:
    stored = AddForest()(tree())
    stored.edge_index = stored.edge_index[:, 1:]
    stored.edge_weight = stored.edge_weight[1:]
    with pytest.raises(ValueError, match=r'of 6 nodes and 5 edges; accepted: one of this graph of 6 nodes and 4 edges'):
        bind(stored)


def test_learned_lengths_keep_their_gradient() -> None:
    stored = AddForest()(tree())
    stored.edge_weight.requires_grad_()
    TreeMask()(stored).to_dense().sum().backward()
    assert (stored.edge_weight.grad < 0).all()


def test_functional_name_and_input_left_alone() -> None:
    data = tree()
    assert 'forest_index' in Compose([AddForest()])(data)
    assert 'forest_index' not in data
    assert repr(AddForest()) == 'AddForest()'


def test_what_is_no_single_forest_is_refused() -> None:
    with pytest.raises(ValueError, match=r'^edge_index: got a graph with a cycle through the nodes \['):
        AddForest()(Data(edge_index=ring(5), num_nodes=5))
    with pytest.raises(ValueError, match=r'^data: got a batch'):
        AddForest()(Batch.from_data_list([tree(), tree()]))
    with pytest.raises(ValueError, match=r'^data: got HeteroData; .*to_homogeneous'):
        AddForest()(HeteroData())
    assert TreeState.load(Graph.from_data(tree())) is None
