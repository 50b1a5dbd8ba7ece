from collections.abc import Callable

import pytest
import torch
from graphs import GRAPHS, SINGLE_GRAPHS, no_edges, ring, small_digraph, small_graph, trailing_empty_graphs, uneven_graphs
from torch import Tensor
from torch_geometric.data import Batch, Data
from torch_geometric.loader import DataLoader
from torch_geometric.transforms import AddSelfLoops, Compose, ToUndirected
from torch_geometric.typing import WITH_PYG_LIB, WITH_TORCH_SPARSE

from pyg_topomask import Graph
from pyg_topomask.masks import GRFMask
from pyg_topomask.transforms import AddGraphRandomFeatures
from pyg_topomask.walks import WalkSettings
from pyg_topomask.walks.stored import load_walks

NAMES = ['grf_index', 'grf_length', 'grf_load', 'grf_sizes']
KEY_NAMES = ['grf_key_index', 'grf_key_length', 'grf_key_load', 'grf_key_sizes']


def bind(data: Data, **settings: object) -> Tensor:
    return GRFMask(**settings)(data).to_dense()


@pytest.mark.parametrize('independent', [False, True])
@pytest.mark.parametrize('name', SINGLE_GRAPHS)
def test_stored_walks_are_those_of_the_mask_with_the_same_seed(name: str, independent: bool) -> None:
    settings = {'num_walks': 6, 'p_halt': 0.3, 'max_walk_length': 3, 'independent_ensembles': independent, 'seed': 4}
    fresh, stored = GRAPHS[name](), AddGraphRandomFeatures(**settings)(GRAPHS[name]())
    assert load_walks(Graph.from_data(stored), WalkSettings(6, 0.3, 3)) is not None
    assert torch.equal(bind(stored, **settings), bind(fresh, **settings))
    assert {key for key in stored.to_dict() if 'grf' in key} == {*NAMES, *KEY_NAMES * independent}


@pytest.mark.parametrize('name', SINGLE_GRAPHS)
def test_number_of_nodes_and_edges_is_left_as_it_is(name: str) -> None:
    before, after = GRAPHS[name](), AddGraphRandomFeatures()(GRAPHS[name]())
    assert (after.num_nodes, after.num_edges) == (before.num_nodes, before.num_edges)


@pytest.mark.parametrize('edges', [ring(5), torch.tensor([[0, 1], [1, 2]])])
def test_number_of_nodes_that_pyg_infers_from_the_features_is_left_as_it_is(edges: Tensor) -> None:
    data = AddGraphRandomFeatures()(Data(x=torch.ones(7, 2), edge_index=edges))
    assert data.num_nodes == 7
    assert Batch.from_data_list([data, data]).num_nodes == 14


def test_transform_is_deterministic_under_its_seed() -> None:
    def loads(seed: int) -> list[float]:
        return AddGraphRandomFeatures(seed=seed)(small_digraph()).grf_load.tolist()

    first = loads(1)
    torch.rand(4)
    assert loads(1) == first
    assert loads(2) != first


def test_functional_name_and_compose() -> None:
    data = Compose([ToUndirected(), AddGraphRandomFeatures(num_walks=2)])(Data(edge_index=ring(4), num_nodes=4))
    assert data.grf_sizes[0, 0] == 4


# Batches --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize('make', [uneven_graphs, trailing_empty_graphs])
@pytest.mark.parametrize('independent', [False, True])
def test_batches(make: Callable[[], list[Data]], independent: bool) -> None:
    settings = {'num_walks': 6, 'independent_ensembles': independent}
    stored = [AddGraphRandomFeatures(**settings)(data) for data in make()]
    for order in (range(4), reversed(range(4)), [2, 2, 0]):
        order = list(order)
        batch = Batch.from_data_list([stored[index] for index in order])
        expected = torch.block_diag(*(bind(stored[index], **settings)[0] for index in order))
        torch.testing.assert_close(bind(batch, **settings)[0], expected, rtol=0, atol=1e-6)
        torch.testing.assert_close(
            bind(Batch.from_data_list([make()[index] for index in order]), **settings)[0], expected, rtol=0, atol=1e-6
        )


def test_batch_round_trip() -> None:
    stored = [AddGraphRandomFeatures(independent_ensembles=True)(data) for data in uneven_graphs()]
    for before, after in zip(stored, Batch.from_data_list(stored).to_data_list(), strict=True):
        assert all(torch.equal(before[name], after[name]) for name in NAMES + KEY_NAMES)
        assert torch.equal(bind(before), bind(after))


def test_loader() -> None:
    stored = [AddGraphRandomFeatures()(data) for data in uneven_graphs()]
    for batch in DataLoader(stored, batch_size=3):
        assert torch.equal(bind(batch)[0], torch.block_diag(*(bind(data)[0] for data in batch.to_data_list())))


# Data that changes after walks were stored -------------------------------------------------------------------------------


def num_visits(data: Data) -> int:
    """The visits that walks made; more may be stored."""
    return int(data.grf_sizes[0, 4])


def padded(target: str) -> Data:
    """Walks with exactly as many visits as the graph has nodes or edges."""
    if target == 'nodes':
        data = Data(x=torch.arange(6.0), edge_index=ring(6), edge_weight=torch.rand(12), num_nodes=6)
        stored = AddGraphRandomFeatures(max_walk_length=0)(data)
    else:
        edges = torch.cat([ring(6), ring(6)], 1)
        data = Data(x=torch.arange(6.0), edge_index=edges[:, :18], num_nodes=6)
        stored = next(
            candidate
            for candidate in (AddGraphRandomFeatures(1, 0.4, 3, seed=seed)(data) for seed in range(500))
            if num_visits(candidate) == 18
        )
    assert num_visits(stored) == {'nodes': stored.num_nodes, 'edges': stored.num_edges}[target]
    return stored


def undirected_padded() -> Data:
    """An undirected graph whose walks have exactly as many visits as it has edges."""
    data = Data(x=torch.arange(6.0), edge_index=ring(6), num_nodes=6)
    return next(
        candidate
        for candidate in (AddGraphRandomFeatures(1, 0.4, 3, seed=seed)(data) for seed in range(500))
        if num_visits(candidate) == 12
    )


def shuffled_edges(data: Data) -> Data:
    data = data.clone()
    order = torch.arange(data.num_edges - 1, -1, -1)
    for name, value in data.to_dict().items():
        if data.is_edge_attr(name):
            data[name] = value[:, order] if name == 'edge_index' else value.index_select(data.__cat_dim__(name, value), order)
    return data


CHANGES: dict[str, Callable[[Data], Data]] = {
    'subgraph': lambda data: data.subgraph(torch.tensor([0, 1, 2, 3])),
    'subgraph_mask': lambda data: data.subgraph(torch.tensor([True, True, False, True, True, False])),
    'subgraph_all': lambda data: data.subgraph(torch.arange(6)),
    'edge_subgraph': lambda data: data.edge_subgraph(torch.arange(data.num_edges) < 5),
    'self_loops': AddSelfLoops(),
    'undirected': ToUndirected(),
    'sort': lambda data: data.sort(),
    'coalesce': lambda data: data.coalesce(),
    'shuffled_edges': shuffled_edges,
    'renamed': lambda data: data.subgraph(torch.tensor([3, 1, 4, 0, 5, 2])),
    'rotated': lambda data: data.subgraph(torch.tensor([1, 2, 3, 4, 5, 0])),
}


def usual() -> Data:
    """Walks with more entries than there are nodes and edges."""
    return AddGraphRandomFeatures()(Data(x=torch.arange(6.0), edge_index=ring(6), num_nodes=6))


SOURCES: dict[str, Callable[[], Data]] = {
    'usual': usual,
    'as_many_as_nodes': lambda: padded('nodes'),
    'as_many_as_edges': lambda: padded('edges'),
    'as_many_as_edges_undirected': undirected_padded,
}


@pytest.mark.parametrize('source', SOURCES)
def test_pyg_takes_no_stored_tensor_for_a_node_or_edge_attribute(source: str) -> None:
    stored = SOURCES[source]()
    assert not any(stored.is_node_attr(name) or stored.is_edge_attr(name) for name in NAMES)


#: The order of edges is none of the graph's; a ring rotated or made simple is itself, but for weights and parallel edges.
UNCHANGED = [(change, source) for change in ('subgraph_all', 'sort', 'shuffled_edges') for source in SOURCES]
UNCHANGED += [('rotated', source) for source in SOURCES if source != 'as_many_as_nodes']
UNCHANGED += [(change, source) for change in ('undirected', 'coalesce') for source in ('usual', 'as_many_as_edges_undirected')]
CHANGED = [(change, source) for change in CHANGES for source in SOURCES if (change, source) not in UNCHANGED]


def bind_stored(data: Data) -> Tensor:
    """The mask of all hops that are stored."""
    return bind(data, max_walk_length=int(data.grf_sizes[0, 5]))


def test_walks_on_the_same_graph_are_the_same(subtests: pytest.Subtests) -> None:
    for change, source in UNCHANGED:
        with subtests.test(change=change, source=source):
            stored = SOURCES[source]()
            changed, expected = CHANGES[change](stored.clone()), bind_stored(stored)
            assert torch.equal(adjacency(changed), adjacency(stored))
            torch.testing.assert_close(bind_stored(changed), expected)
            assert torch.equal(expected[0], torch.eye(6)) == (source == 'as_many_as_nodes')  # whose walks make no hop


def test_walks_on_another_graph_are_refused(subtests: pytest.Subtests) -> None:
    for change, source in CHANGED:
        with subtests.test(change=change, source=source):
            changed = CHANGES[change](SOURCES[source]())
            with pytest.raises(ValueError, match='AddGraphRandomFeatures'):
                bind_stored(changed)


def adjacency(data: Data) -> Tensor:
    matrix = torch.zeros(data.num_nodes, data.num_nodes)
    row, col = data.edge_index
    return matrix.index_put((row, col), torch.ones(data.num_edges), accumulate=False)


def test_one_node_taken_out_of_its_graph() -> None:
    stored = AddGraphRandomFeatures()(Data(edge_index=no_edges(), num_nodes=1))
    assert bind(stored.subgraph(torch.tensor([0]))).tolist() == [[[1.0]]]
    with pytest.raises(ValueError, match='AddGraphRandomFeatures'):
        bind(stored.subgraph(torch.tensor([], dtype=torch.long)))


@pytest.mark.parametrize('name', NAMES[1:])
def test_incomplete_walks_are_refused(name: str) -> None:
    stored = AddGraphRandomFeatures()(small_graph())
    del stored[name]
    with pytest.raises(ValueError, match='AddGraphRandomFeatures'):
        bind(stored)


def test_walks_of_another_number_of_nodes_are_refused() -> None:
    stored = AddGraphRandomFeatures()(small_graph())
    stored.num_nodes = 7
    with pytest.raises(ValueError, match=r'^data: got stored walks of 6 nodes.*graph of 7 nodes.*AddGraphRandomFeatures'):
        bind(stored)


def test_walks_of_the_right_total_in_the_wrong_graphs_are_refused() -> None:
    graphs = [AddGraphRandomFeatures()(Data(edge_index=no_edges(), num_nodes=size)) for size in (3, 5)]
    batch = Batch.from_data_list(graphs)
    batch.batch = torch.tensor([0, 0, 0, 0, 0, 1, 1, 1])
    with pytest.raises(ValueError, match='AddGraphRandomFeatures'):
        GRFMask()(batch)


@pytest.mark.filterwarnings("ignore:Using 'NeighborSampler' without a 'pyg-lib'")
def test_neighbour_sampling_is_refused() -> None:
    """NeighborLoader needs pyg-lib or torch-sparse; without them its slicing is that of data.subgraph."""
    stored = AddGraphRandomFeatures()(Data(x=torch.arange(40.0), edge_index=ring(40)))
    if WITH_PYG_LIB or WITH_TORCH_SPARSE:
        from torch_geometric.loader import NeighborLoader

        sampled = next(iter(NeighborLoader(stored, [2, 2], batch_size=4)))
    else:
        sampled = stored.subgraph(torch.tensor([3, 4, 5, 6, 20]))
    with pytest.raises(ValueError, match='AddGraphRandomFeatures'):
        bind(sampled)


# Masks that ask for something else than what is stored --------------------------------------------------------------------


def test_longer_walks_than_stored_are_refused() -> None:
    stored = AddGraphRandomFeatures(max_walk_length=2)(small_graph())
    with pytest.raises(ValueError, match=r'^max_walk_length: got 3, but the stored walks end after 2.*AddGraphRandomFeatures'):
        bind(stored, max_walk_length=3)


def test_shorter_walks_are_the_first_hops_of_those_stored() -> None:
    stored = AddGraphRandomFeatures(max_walk_length=4, num_walks=3)(small_graph())
    expected = bind(small_graph(), max_walk_length=4, num_walks=3, modulation=torch.tensor([1.0, 0.5, 0.25, 0.0, 0.0]))
    torch.testing.assert_close(bind(stored, max_walk_length=2, num_walks=3), expected)


def test_a_batch_has_the_hops_of_its_graph_with_the_fewest() -> None:
    graphs = [AddGraphRandomFeatures(max_walk_length=hops)(small_graph()) for hops in (4, 2)]
    expected = torch.block_diag(*(bind(data, max_walk_length=2)[0] for data in graphs))
    torch.testing.assert_close(bind(Batch.from_data_list(graphs), max_walk_length=2)[0], expected)
    with pytest.raises(ValueError, match=r'^max_walk_length: got 4, but the stored walks end after 2'):
        bind(Batch.from_data_list(graphs), max_walk_length=4)


def test_a_second_ensemble_that_is_not_stored_is_refused() -> None:
    stored = AddGraphRandomFeatures()(small_graph())
    with pytest.raises(ValueError, match=r'^independent_ensembles: got True.*AddGraphRandomFeatures'):
        bind(stored, independent_ensembles=True)


def test_a_second_ensemble_that_is_not_wanted_is_left() -> None:
    stored = AddGraphRandomFeatures(independent_ensembles=True)(small_graph())
    assert torch.equal(bind(stored), bind(small_graph()))


def test_representation_tells_the_settings() -> None:
    text = repr(AddGraphRandomFeatures(num_walks=7, seed=3))
    assert 'num_walks=7' in text
    assert 'seed=3' in text


def test_walks_stored_again_replace_the_earlier_ones() -> None:
    data = AddGraphRandomFeatures(num_walks=4, max_walk_length=1, independent_ensembles=True)(small_graph())
    again = AddGraphRandomFeatures(num_walks=4, max_walk_length=4, seed=3)(data)
    assert not any(key in again for key in KEY_NAMES)
    assert torch.equal(bind(again, max_walk_length=4), bind(small_graph(), num_walks=4, max_walk_length=4, seed=3))
    normalized = AddGraphRandomFeatures(num_walks=4, normalization='rw')(again)
    assert bind(normalized, normalization='rw').shape == (1, 6, 6)
