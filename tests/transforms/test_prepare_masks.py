"""What masks prepare, stored on data: the same results, and what no longer fits is noticed."""

import warnings
from collections.abc import Callable

import pytest
import torch
from graphs import GRAPHS, SINGLE_GRAPHS, small_digraph, small_graph, trailing_empty_graphs, uneven_graphs
from grids import covering
from torch import Tensor
from torch_geometric.data import Batch, Data
from torch_geometric.loader import DataLoader
from torch_geometric.transforms import AddSelfLoops

from pyg_topomask import Graph
from pyg_topomask.graphs import stored as stored_blocks
from pyg_topomask.masks import GRFMask, HopMask, Mask
from pyg_topomask.nn import GRFAttention, HopAttention
from pyg_topomask.transforms import PrepareMasks
from pyg_topomask.utils.files import digest_of_transform

MASKS: dict[str, Callable[[], Mask]] = {
    'hop': lambda: HopMask(2, 3),
    'hop, all distances': lambda: HopMask(2, 32),
    'hop, no distances': lambda: HopMask(2, 0),
    'hop, two bytes': lambda: HopMask(2, 255),
    'hop, other flow': lambda: HopMask(2, 2, flow='target_to_source'),
    'of two masks': lambda: HopMask(2, 1) + HopMask(2, 2).T,
}


def stored_attributes(data: Data) -> list[str]:
    return [name for name in data.to_dict() if name.endswith(('_pairs', '_sizes'))]


def attend(mask: Mask, data: Data, route: str = 'auto') -> list[Tensor]:
    """The output of attention, and the gradients of its input and of the mask."""
    torch.manual_seed(0)
    layer = HopAttention(8, 2, route=route)
    layer.mask = mask
    x = torch.randn(data.num_nodes or 0, 8, requires_grad=True)
    out = layer(x, graph=data)
    return [out.detach(), *torch.autograd.grad(out.square().sum(), [x, *mask.parameters()])]


def assert_same(actual: list[Tensor], expected: list[Tensor]) -> None:
    assert all(map(torch.equal, actual, expected))


# Results -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ('graph', 'name', 'route'), covering(SINGLE_GRAPHS, MASKS, ['auto', 'edges', 'blocks', 'features'], strength=2)
)
def test_results_are_those_without_stored_numbers(graph: str, name: str, route: str) -> None:
    mask = MASKS[name]()
    data = GRAPHS[graph]()
    stored = PrepareMasks(mask)(data)
    assert_same(attend(mask, stored, route), attend(mask, data, route))
    assert torch.equal(mask(stored).to_dense(), mask(data).to_dense())
    assert (stored.num_nodes, stored.num_edges) == (data.num_nodes, data.num_edges)


@pytest.mark.parametrize(('make', 'name'), covering([uneven_graphs, trailing_empty_graphs], MASKS))
def test_batches(make: Callable[[], list[Data]], name: str) -> None:
    mask, graphs = MASKS[name](), make()
    stored = [PrepareMasks(mask)(data) for data in graphs]
    for order in ([0, 1, 2, 3], [3, 2, 1, 0], [2, 2, 0]):
        batch, fresh = (Batch.from_data_list([each[index] for index in order]) for each in (stored, graphs))
        for route in ('auto', 'edges', 'blocks'):
            assert_same(attend(mask, batch, route), attend(mask, fresh, route))
        expected = torch.block_diag(*(mask(stored[index]).to_dense()[0] for index in order))
        assert torch.equal(mask(batch).to_dense()[0], expected)


def test_stored_distances_are_those_that_are_used() -> None:
    mask = HopMask(max_hops=2, f=torch.tensor([4.0, 2.0, 1.0]))
    data = PrepareMasks(mask)(Data(edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), num_nodes=3))
    pairs, _ = mask.stored_blocks.names
    assert data[pairs].dtype == torch.uint8
    assert data[pairs].tolist() == [1, 2, 3, 2, 1, 2, 3, 2, 1]
    data[pairs] = torch.tensor([1, 0, 0, 2, 1, 2, 3, 2, 1], dtype=torch.uint8)
    assert mask(data).to_dense()[0].tolist() == [[4, 0, 0], [2, 4, 2], [1, 2, 4]]


def test_many_graphs_at_once() -> None:
    transform, graphs = PrepareMasks(HopMask(max_hops=3)), trailing_empty_graphs()
    attributes = transform.attributes(Graph.from_data(Batch.from_data_list(graphs)))
    for data, several in zip(graphs, attributes, strict=True):
        alone = transform(data)
        assert sorted(stored_attributes(alone)) == sorted(several)
        assert all(torch.equal(alone[name], value) for name, value in several.items())


def test_batch_round_trip_and_loader() -> None:
    mask = HopMask(max_hops=3)
    stored = [PrepareMasks(mask)(data) for data in uneven_graphs()]
    for before, after in zip(stored, Batch.from_data_list(stored).to_data_list(), strict=True):
        assert all(torch.equal(before[name], after[name]) for name in stored_attributes(before))
    for batch in DataLoader(stored, batch_size=3):
        assert torch.equal(
            mask(batch).to_dense()[0], torch.block_diag(*(mask(data).to_dense()[0] for data in batch.to_data_list()))
        )


@pytest.mark.parametrize('data', [Data(edge_index=torch.tensor([[0], [0]]), num_nodes=1), Data(num_nodes=1), Data(num_nodes=0)])
def test_stored_numbers_are_not_as_many_as_nodes_or_edges(data: Data) -> None:
    data.edge_index = torch.empty(2, 0, dtype=torch.long) if data.edge_index is None else data.edge_index
    stored = PrepareMasks(HopMask())(data)
    pairs, _ = HopMask().stored_blocks.names
    assert data.num_nodes == 0 or len(stored[pairs]) not in (data.num_nodes, data.num_edges)
    batch = Batch.from_data_list([stored, PrepareMasks(HopMask())(small_graph()), stored])
    fresh = Batch.from_data_list([data, small_graph(), data])
    assert torch.equal(HopMask()(batch).to_dense(), HopMask()(fresh).to_dense())


def test_a_complete_graph_with_as_many_edges_as_pairs() -> None:
    data = Data(edge_index=torch.ones(4, 4).nonzero().t(), num_nodes=4)
    batch = Batch.from_data_list([PrepareMasks(HopMask())(data)] * 2)
    assert batch.num_edges == 32
    assert torch.equal(HopMask()(batch).to_dense()[0], torch.block_diag(*[HopMask()(data).to_dense()[0]] * 2))


def test_weights_may_change_where_they_do_not_count() -> None:
    data = PrepareMasks(HopMask())(small_graph())
    data.edge_weight = torch.rand(data.num_edges)
    assert torch.equal(HopMask()(data).to_dense(), HopMask()(small_graph()).to_dense())


def test_compiled_layers_use_stored_numbers() -> None:
    layer, stored = HopAttention(8, 2), [PrepareMasks(HopMask())(data) for data in uneven_graphs()]
    graph, fresh = (Graph.from_data(Batch.from_data_list(graphs)) for graphs in (stored, uneven_graphs()))
    x = torch.randn(graph.num_nodes, 8)
    layer(x, graph=graph)  # prepares the graph
    compiled = torch.compile(layer, fullgraph=True, backend='aot_eager')
    torch.testing.assert_close(compiled(x, graph=graph), layer(x, graph=fresh))


# Settings ------------------------------------------------------------------------------------------------------------


def test_masks_in_layers_and_models() -> None:
    model = torch.nn.Sequential(HopAttention(8, 2, max_hops=2), GRFAttention(8), HopAttention(8, 4, max_hops=2))
    transform = PrepareMasks(model, HopMask(max_hops=1))
    assert [mask.max_hops for mask in transform.masks] == [2, 1]
    data = transform(small_graph())
    assert len(stored_attributes(data)) == 4
    for mask in (HopMask(max_hops=2), HopMask(max_hops=1)):
        assert torch.equal(mask(data).to_dense(), mask(small_graph()).to_dense())


def test_the_mask_may_learn_afterwards() -> None:
    mask = HopMask()
    data, digest = PrepareMasks(mask)(small_graph()), digest_of_transform(PrepareMasks(mask))
    with torch.no_grad():
        mask.raw_f.add_(1.0)
    assert torch.equal(mask(data).to_dense(), mask(small_graph()).to_dense())
    assert digest_of_transform(PrepareMasks(mask)) == digest  # so that stored data stay valid


@pytest.mark.parametrize('most', [0, 8, 9, 35, 36])
def test_large_graphs_are_prepared_in_every_batch(most: int) -> None:
    mask, graphs = HopMask(), [small_graph(), Data(edge_index=torch.tensor([[0, 1], [1, 2]]), num_nodes=3)]
    transform = PrepareMasks(mask, max_bytes=most)
    stored = [transform(data) for data in graphs]
    pairs, _ = mask.stored_blocks.names
    assert [len(data[pairs]) for data in stored] == [36 * (most >= 36), 9 * (most >= 9)]
    for order in ([0, 1], [0], [1]):
        batch, fresh = (Batch.from_data_list([each[index] for index in order]) for each in (stored, graphs))
        assert torch.equal(mask(batch).to_dense(), mask(fresh).to_dense())
    together = transform.attributes(Graph.from_data(Batch.from_data_list(graphs)))
    assert [len(each[pairs]) for each in together] == [len(data[pairs]) for data in stored]


def test_masks_with_nothing_to_store_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^masks: got \['GRFMask'\], .*; accepted: HopMask"):
        PrepareMasks(GRFMask())
    with pytest.raises(ValueError, match=r"^masks: got \['str'\]; accepted: masks, attention layers and models"):
        PrepareMasks('Hop')


def test_other_numbers_of_bytes_are_refused(subtests: pytest.Subtests) -> None:
    for most in [-1, 2.5, True, '2']:
        with subtests.test(most=most), pytest.raises(ValueError, match=rf'^max_bytes: got {most!r}'):
            PrepareMasks(HopMask(), max_bytes=most)


# Data that no longer fits ---------------------------------------------------------------------------------------------


def assert_prepared_anew(mask: Mask, data: Data, fresh: Data, which: str) -> None:
    with pytest.warns(UserWarning, match=rf'^data: got stored hop pairs {which}.*run PrepareMasks again'):
        actual = mask(data).to_dense()
    assert torch.equal(actual, mask(fresh).to_dense())


@pytest.mark.parametrize('mask', [HopMask(max_hops=1), HopMask(max_hops=3), HopMask(flow='target_to_source')])
def test_other_settings(mask: Mask) -> None:
    data = PrepareMasks(HopMask())(small_digraph())
    assert_prepared_anew(mask, data, small_digraph(), 'of other settings, or of another version')


def test_another_version(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(stored_blocks, '_VERSION', 0)
        data = PrepareMasks(HopMask())(small_graph())
    assert_prepared_anew(HopMask(), data, small_graph(), 'of other settings, or of another version')


def test_changed_edges() -> None:
    data = AddSelfLoops()(PrepareMasks(HopMask())(small_graph()))
    assert_prepared_anew(HopMask(), data, AddSelfLoops()(small_graph()), 'of other graphs')
    data = PrepareMasks(HopMask())(small_digraph())
    data.edge_index = data.edge_index.flip(0)
    fresh = small_digraph()
    fresh.edge_index = fresh.edge_index.flip(0)
    assert_prepared_anew(HopMask(), data, fresh, 'of other graphs')


def test_subgraphs() -> None:
    keep = torch.tensor([0, 1, 2, 3])
    data, fresh = PrepareMasks(HopMask())(small_graph()).subgraph(keep), small_graph().subgraph(keep)
    assert_prepared_anew(HopMask(), data, fresh, 'of other graphs')


def test_numbers_that_are_cut_short_or_missing() -> None:
    pairs, sizes = HopMask().stored_blocks.names
    for change in (lambda data: data.update({pairs: data[pairs][:-1]}), lambda data: data.update({pairs: data[pairs][:0]})):
        data = PrepareMasks(HopMask())(small_graph())
        change(data)
        assert_prepared_anew(HopMask(), data, small_graph(), 'of other graphs')
    for name in (pairs, sizes):
        data = PrepareMasks(HopMask())(small_graph())
        del data[name]
        assert_prepared_anew(HopMask(), data, small_graph(), 'that are incomplete')
    data = PrepareMasks(HopMask())(small_graph())
    data[sizes] = data[sizes][:, :4]
    assert_prepared_anew(HopMask(), data, small_graph(), 'that are incomplete')


def test_stored_numbers_are_replaced() -> None:
    data = PrepareMasks(HopMask())(small_graph())
    data.edge_index = data.edge_index[:, :-2]
    fresh = data.edge_index.clone()
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        data = PrepareMasks(HopMask())(data)
        actual = HopMask()(data).to_dense()
    assert torch.equal(actual, HopMask()(Data(edge_index=fresh, num_nodes=data.num_nodes)).to_dense())


def test_a_batch_of_graphs_with_and_without_stored_numbers() -> None:
    with pytest.raises(KeyError, match='hop_'):
        Batch.from_data_list([PrepareMasks(HopMask())(small_graph()), small_graph()])
    batch = Batch.from_data_list([small_graph(), PrepareMasks(HopMask())(small_graph())])
    assert torch.equal(HopMask()(batch).to_dense()[0], torch.block_diag(*[HopMask()(small_graph()).to_dense()[0]] * 2))


def test_a_batch_keeps_up_with_replaced_numbers() -> None:
    mask, batch = HopMask(), Batch.from_data_list([PrepareMasks(HopMask())(small_graph())])
    before, (pairs, _) = mask(Graph.shared(batch)).to_dense(), mask.stored_blocks.names
    batch[pairs] = torch.zeros_like(batch[pairs])
    assert not mask(Graph.shared(batch)).to_dense().any()
    assert before.any()


def test_graphs_above_the_cap_are_not_prepared_beside_small_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    prepared = []
    prepare = HopMask.prepare
    monkeypatch.setattr(
        HopMask, 'prepare', lambda mask, graph, *rest: prepared.append(graph.num_nodes) or prepare(mask, graph, *rest)
    )
    small, large = (Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=size) for size in (3, 40))
    PrepareMasks(HopMask(), max_bytes=100)([small, large, small])
    assert prepared == [6]
