"""Transforms of lists of graphs: the numbers of one graph at a time."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch
from graphs import GRAPHS, no_edges, path, random_edges, random_tree, ring, small_digraph, small_graph, undirected, weighted
from grids import covering
from torch import Tensor
from torch_geometric.data import Batch, Data, HeteroData
from torch_geometric.transforms import BaseTransform, ToSparseTensor

from pyg_topomask.transforms import (
    AddForest,
    AddGraphRandomFeatures,
    AddGridShape,
    AddNormals,
    AddRandomWalkKernel,
    AddSpanningForest,
    AddSVDEncoding,
    FarthestSampling,
    KNNGraph,
    RandomSampling,
    ToGridGraph,
    base,
)

SINGLE = sorted(set(GRAPHS) - {'batch', 'trailing_empty_graph', 'no_edge_index'})
TRANSFORMS = [
    AddGraphRandomFeatures(seed=3),
    AddGraphRandomFeatures(6, 0.3, 3, independent_ensembles=True, sampler='repelling_antithetic', normalization='rw'),
    AddGraphRandomFeatures(transition='weight', normalization=None, flow='target_to_source'),
    AddGraphRandomFeatures(1, 0.4, 1),
    AddRandomWalkKernel(seed=1),
    AddSVDEncoding(rank=3),
    AddSVDEncoding(rank=9, normalization='sym'),
    AddSVDEncoding(rank=2, normalization='rw'),
    AddSpanningForest(method='minimum', num_trees=2),
]


def mixed_graphs() -> list[Data]:
    """Graphs of many sizes: directed or not, weighted or not, in any data type, some of them without edges or nodes."""
    sized = [Data(edge_index=random_edges(size, 3 * size, seed=size), num_nodes=size) for size in (3, 9, 17, 23, 40)]
    alike = [Data(edge_index=random_edges(23, 60, seed=seed), num_nodes=23) for seed in range(20)]  # whose sums round
    alike += [Data(edge_index=torch.cat([data.edge_index, data.edge_index.flip(0)], dim=1), num_nodes=23) for data in alike]
    rings = [Data(edge_index=ring(size), x=torch.rand(size, 1)) for size in (8, 9, 16, 23, 24)]
    narrow, half, whole, sparse, learned = small_graph(), small_digraph(), small_graph(), small_digraph(), small_digraph()
    narrow.edge_index = narrow.edge_index.int()
    half.edge_weight = half.edge_weight.half()
    whole.edge_weight = torch.arange(14) % 3
    learned.edge_weight = learned.edge_weight.float().requires_grad_()
    sparse = ToSparseTensor(attr='edge_weight')(sparse)
    walked = AddGraphRandomFeatures(independent_ensembles=True)(small_graph())  # to be replaced
    made = [*sized, *alike, *(GRAPHS[name]() for name in SINGLE), *rings, narrow, half, whole, learned, sparse, walked]
    return [*made, *(weighted(random_edges(size, 30, seed=size), size, seed=size, negative=True) for size in (11, 12, 30))]


def one_by_one(transform: BaseTransform, graphs: list[Any]) -> list[Any]:
    return [transform(data) for data in graphs]


def assert_same(actual: Any, expected: Any) -> None:
    assert actual.keys() == expected.keys()
    for key, value in expected.to_dict().items():
        if isinstance(value, Tensor) and value.layout == torch.strided:
            assert actual[key].dtype == value.dtype
            assert torch.equal(actual[key], value), key


@pytest.mark.parametrize(('transform', 'most'), covering(TRANSFORMS, [10, 2**14]))
def test_a_list_gives_the_numbers_of_one_graph_at_a_time(
    transform: BaseTransform, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(base, '_NODES', most)
    graphs = mixed_graphs()
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')  # of ranks above the number of nodes
        transformed, expected = transform(graphs), one_by_one(transform, graphs)
    assert len(transformed) == len(graphs)
    for actual, data, before in zip(transformed, expected, graphs, strict=True):
        assert_same(actual, data)
        assert actual is not before
    for before, again in zip(graphs, mixed_graphs(), strict=True):
        assert before.keys() == again.keys()  # the graphs given are as they were


@pytest.mark.parametrize('transform', TRANSFORMS[:7], ids=str)
def test_a_graph_that_is_saved_alone_keeps_no_other(transform: BaseTransform) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        transformed = transform([Data(edge_index=ring(size), num_nodes=size) for size in (20, 21, 22)])
    for data in transformed:
        for key in set(data.keys()) - {'edge_index', 'num_nodes'}:
            assert data[key].untyped_storage().nbytes() == data[key].numel() * data[key].element_size()


def test_other_transforms_take_lists() -> None:
    points = [Data(edge_index=random_tree(9, seed), pos=torch.rand(9, 3)) for seed in range(3)]
    for transform in (AddForest(), AddGridShape((3, 3)), AddNormals(), FarthestSampling(4), KNNGraph(2), RandomSampling(4)):
        for actual, expected in zip(transform(tuple(points)), one_by_one(transform, points), strict=True):
            assert_same(actual, expected)
    images = [torch.rand(1, 2, 3), torch.rand(1, 4, 4)]
    for actual, expected in zip(ToGridGraph()(images), one_by_one(ToGridGraph(), images), strict=True):
        assert_same(actual, expected)


@pytest.mark.parametrize('transform', [AddGraphRandomFeatures(), AddSVDEncoding(2)], ids=str)
def test_no_graphs_at_all(transform: BaseTransform) -> None:
    assert transform([]) == []


def test_users_and_items_among_other_graphs() -> None:
    shop = Data(edge_index=torch.tensor([[0, 0, 1], [2, 3, 3]]), num_nodes=4, num_users=2)
    hetero = HeteroData()
    hetero['user'].num_nodes, hetero['item'].num_nodes = 2, 2
    hetero['user', 'buys', 'item'].edge_index = torch.tensor([[0, 0, 1], [0, 1, 1]])
    graphs, transform = [small_graph(), shop, hetero, small_digraph()], AddSVDEncoding(2)
    first, second, third, last = transform(graphs)
    for actual, data in zip((first, second, last), (graphs[0], graphs[1], graphs[3]), strict=True):
        assert_same(actual, transform(data))
    assert torch.equal(torch.cat([third['user'].svd_encoding, third['item'].svd_encoding]), second.svd_encoding)


@pytest.mark.parametrize('transform', [AddGraphRandomFeatures(), AddSVDEncoding(2)], ids=str)
@pytest.mark.parametrize(
    'bad',
    [
        Data(edge_index=torch.tensor([[0, 4], [1, 5]]), num_nodes=4),  # both ends are nodes of the next graph
        Data(edge_index=torch.tensor([[-1], [1]]), num_nodes=4),
        Data(edge_index=torch.rand(2, 3), num_nodes=4),
        Data(edge_index=path(4), edge_weight=torch.ones(2), num_nodes=4),
        Data(edge_index=path(4), edge_weight=torch.tensor([1.0, torch.nan, 2.0]), num_nodes=4),
        Data(edge_index=path(4), edge_weight=[1.0, 2.0, 3.0], num_nodes=4),
        Data(x=torch.ones(4, 1)),
        Batch.from_data_list([Data(edge_index=path(4), num_nodes=4)]),
        'graph',
    ],
    ids=str,
)
def test_errors_are_those_of_the_graph_alone(transform: BaseTransform, bad: Any) -> None:
    weight = torch.ones(14) if isinstance(bad, Data) and isinstance(bad.edge_weight, Tensor) else None
    others = [Data(edge_index=small_graph().edge_index, edge_weight=weight, num_nodes=6) for _ in range(2)]
    with pytest.raises(ValueError) as alone:
        transform(bad)
    with pytest.raises(ValueError) as listed:
        transform([others[0], bad, others[1]])
    assert str(listed.value) == str(alone.value)


def test_directed_graphs_do_not_change_the_encodings_of_others() -> None:
    symmetric = Data(edge_index=undirected([(0, 1), (1, 2), (0, 2), (2, 3)]), num_nodes=5)
    directed, transform = Data(edge_index=path(5), num_nodes=5), AddSVDEncoding(3)
    alone, either = transform(symmetric), transform([directed, symmetric, directed])
    assert torch.equal(either[1].svd_encoding, alone.svd_encoding)
    assert torch.equal(either[0].svd_encoding, either[2].svd_encoding)


def test_encodings_of_undirected_graphs_differ_by_the_signs_of_eigenvalues() -> None:
    data = Data(edge_index=undirected([(0, 1), (1, 2), (2, 3)]), num_nodes=4)  # eigenvalues in pairs of both signs
    left, right = AddSVDEncoding(4)(data).svd_encoding.double().split(4, dim=1)
    torch.testing.assert_close(left.abs(), right.abs())
    matrix = torch.zeros(4, 4, dtype=torch.double)
    matrix[tuple(data.edge_index)] = 1.0
    torch.testing.assert_close(left @ right.t(), matrix, rtol=0, atol=1e-6)


def test_graphs_without_edges_in_a_list() -> None:
    graphs = [Data(edge_index=no_edges(), num_nodes=size) for size in (0, 3, 0)]
    stored = AddGraphRandomFeatures()(graphs)
    assert [data.grf_sizes[0, 0].item() for data in stored] == [0, 3, 0]
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        assert [data.svd_encoding.shape for data in AddSVDEncoding(2)(graphs)] == [(0, 4), (3, 4), (0, 4)]
