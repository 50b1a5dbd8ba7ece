"""The division of nodes into graphs, beside plain Python."""

import pytest
import torch
from graphs import trailing_empty_graphs
from torch import Tensor
from torch_geometric.data import Batch

from pyg_topomask.graphs.graph import Graph
from pyg_topomask.graphs.segments import Segments, groups_of_constants

BATCHES = {
    'one_graph': (4, None, 1),
    'no_nodes': (0, None, 1),
    'no_graphs': (0, torch.tensor([], dtype=torch.long), 0),
    'gaps': (4, torch.tensor([0, 0, 2, 5], dtype=torch.int32), 6),
    'uneven': (26, torch.tensor([0] * 17 + [1] * 3 + [2] * 6), 3),
    'many': (95, torch.arange(19).repeat_interleave(5), 19),
}


def test_segments_are_those_of_plain_python(subtests: pytest.Subtests) -> None:
    for name in BATCHES:
        with subtests.test(name=name):
            num_nodes, batch, num_graphs = BATCHES[name]
            segments = Segments(num_nodes, batch)
            ids = [0] * num_nodes if batch is None else batch.tolist()
            sizes = [ids.count(graph) for graph in range(num_graphs)]
            first = [sum(sizes[:graph]) for graph in range(num_graphs + 1)]
            assert segments.num_graphs == num_graphs
            assert segments.index.dtype == torch.long
            assert segments.index.tolist() == ids
            assert segments.sizes.tolist() == sizes
            assert segments.ptr.tolist() == first
            assert segments.first.tolist() == [first[graph] for graph in ids]
            assert segments.position.tolist() == [node - first[graph] for node, graph in enumerate(ids)]
            assert segments.largest == max(sizes, default=0)
            assert segments.num_pairs == sum(size**2 for size in sizes)
            twice = segments.repeated(2)
            assert twice.index.tolist() == [*ids, *(graph + num_graphs for graph in ids)]
            assert twice.num_graphs == 2 * num_graphs


@pytest.mark.parametrize('most', [None, 2])
@pytest.mark.parametrize('name', BATCHES)
def test_groups_hold_every_node_once_and_pad_at_most_half(name: str, most: int | None) -> None:
    num_nodes, batch, _ = BATCHES[name]
    segments = Segments(num_nodes, batch)
    groups = groups_of_constants(segments.constants(most), num_nodes)
    nodes = [node for group in groups for node in group.target[~group.padding].tolist()]
    assert sorted(nodes) == list(range(num_nodes))
    for group in groups:
        assert most is None or group.source.size(0) <= most
        for source, target in zip(group.source, group.target, strict=True):
            assert len(set(segments.index[source].tolist())) == 1
            filled = int((target < num_nodes).sum())
            assert group.width <= max(2 * filled, 4)
            assert torch.equal(source[:filled], target[:filled])


def test_taking_and_putting_are_inverse(subtests: pytest.Subtests) -> None:
    for name in BATCHES:
        with subtests.test(name=name):
            num_nodes, batch, _ = BATCHES[name]
            x = torch.randn(num_nodes, 3, 2)
            result = torch.full((num_nodes + 1, 3, 2), float('nan'))
            for group in groups_of_constants(Segments(num_nodes, batch).constants(), num_nodes):
                group.put(result, group.take(x))
            assert torch.equal(result[:-1], x)


def test_what_is_traced_is_grouped_alike() -> None:
    num_nodes, batch, _ = BATCHES['uneven']
    constants = Segments(num_nodes, batch).constants()
    for group, alone in zip(*(groups_of_constants(given, num_nodes) for given in (constants, constants[:1])), strict=True):
        assert torch.equal(group.target, alone.target)


@pytest.mark.parametrize(
    ('segments', 'equal'),
    [
        (Segments(3, torch.tensor([0, 0, 1], dtype=torch.int32)), True),
        (Segments(3, torch.tensor([0, 1, 1])), False),
        (Segments(3, torch.tensor([0, 0, 1]), 3), False),
        (Segments(3), False),
    ],
)
def test_equal_segments(segments: Segments, equal: bool) -> None:
    assert Segments(3, torch.tensor([0, 0, 1])).equal(segments) == equal


def test_one_graph_with_and_without_a_batch_vector_is_equal() -> None:
    assert Segments(3).equal(Segments(3, torch.zeros(3, dtype=torch.long)))


def test_trailing_graphs_may_be_empty() -> None:
    segments = Graph.from_data(Batch.from_data_list(trailing_empty_graphs())).segments
    assert segments.num_graphs == 4
    assert segments.position.tolist() == [0, 1, 2, 0, 1, 2, 3]


def test_segments_are_computed_once() -> None:
    def computed(segments: Segments) -> list[Tensor]:
        return [segments.index, segments.ptr, *segments.group_tensors()]

    segments = Segments(3, torch.tensor([0, 0, 1]))
    assert all(first is second for first, second in zip(computed(segments), computed(segments), strict=True))
