from __future__ import annotations

import pytest
import torch
from grids import covering
from torch_geometric.data import Batch, Data, HeteroData
from torch_geometric.data.hypergraph_data import HyperGraphData
from torch_geometric.transforms import BaseTransform, RandomLinkSplit

from pyg_topomask.masks import HopMask
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
    PrepareMasks,
    RandomSampling,
)

SINGLE = [
    AddForest(),
    AddGraphRandomFeatures(),
    AddGridShape((3,)),
    AddRandomWalkKernel(),
    AddSVDEncoding(rank=1),
    AddSpanningForest(),
    FarthestSampling(2),
    PrepareMasks(HopMask()),
    RandomSampling(2),
]


def path() -> Data:
    return Data(edge_index=torch.tensor([[0, 1], [1, 2]]), pos=torch.randn(3, 2))


@pytest.mark.parametrize(('count', 'transform'), covering([1, 2], SINGLE))
def test_batches_are_refused_whatever_their_size(transform: BaseTransform, count: int) -> None:
    batch = Batch.from_data_list([path()] * count)
    with pytest.raises(ValueError, match=r'^data: got a batch; accepted: single graphs: .* before batching'):
        transform(batch)
    vector = Data(edge_index=batch.edge_index, pos=batch.pos, batch=batch.batch)
    with pytest.raises(ValueError, match=r'^data: got a batch'):
        transform(vector)


def test_batches_of_heterogeneous_data_are_refused() -> None:
    data = HeteroData()
    data['user'].num_nodes = data['item'].num_nodes = 2
    data['user', 'likes', 'item'].edge_index = torch.tensor([[0, 1], [0, 1]])
    assert AddSVDEncoding(rank=1)(data)['item'].svd_encoding.shape == (2, 1)
    with pytest.raises(ValueError, match=r'^data: got a batch'):
        AddSVDEncoding(rank=1)(Batch.from_data_list([data, data]))


@pytest.mark.parametrize(
    'transform',
    [transform for transform in (*SINGLE, AddNormals(), KNNGraph()) if not isinstance(transform, AddSVDEncoding)],
    ids=lambda transform: type(transform).__name__,
)
def test_heterogeneous_data_is_refused(transform: BaseTransform) -> None:
    for kind in (HeteroData, HyperGraphData):
        with pytest.raises(ValueError, match=rf'^data: got {kind.__name__}; accepted: torch_geometric.data.Data'):
            transform(kind())


def test_data_without_edges_is_refused(subtests: pytest.Subtests) -> None:
    for transform in [
        *(AddForest(), AddGraphRandomFeatures(), AddRandomWalkKernel(), AddSVDEncoding(rank=1), AddSpanningForest()),
        PrepareMasks(HopMask()),
    ]:
        with (
            subtests.test(transform=transform),
            pytest.raises(ValueError, match=r'^data: got the attributes x; accepted: data with edge_index or adj_t; KNNGraph'),
        ):
            transform(Data(x=torch.ones(3, 2)))


@pytest.mark.parametrize('transform', [KNNGraph(), AddNormals(), FarthestSampling(2)], ids=lambda made: type(made).__name__)
def test_positions_that_are_no_tensor_are_refused(transform: BaseTransform) -> None:
    for data in (Data(pos=[1, 2, 3], num_nodes=3), Data(num_nodes=3)):
        with pytest.raises(ValueError, match=r'^data: got Data.* without a tensor pos; accepted: data with positions'):
            transform(data)


@pytest.mark.parametrize(
    'transform',
    [transform for transform in SINGLE if not isinstance(transform, (AddGridShape, FarthestSampling, RandomSampling))]
    + [AddGraphRandomFeatures(num_walks=1, max_walk_length=1, independent_ensembles=True)],
    ids=repr,
)
def test_stored_numbers_are_no_attributes_of_edges(transform: BaseTransform) -> None:
    """PyG 2.8.1: RandomLinkSplit indexes the rows of what has as many columns as there are edges, an IndexError."""
    for num_nodes in range(2, 9):
        edge_index = torch.tensor([[i // 2, i] for i in range(1, num_nodes)]).t()
        for edges in (edge_index, torch.cat([edge_index, edge_index.flip(0)], 1)):
            data = transform(Data(edge_index=edges, num_nodes=num_nodes))
            kept = {'edge_index', 'num_nodes', 'svd_encoding'}
            stored = {name: value for name, value in data.to_dict().items() if name not in kept}
            split = RandomLinkSplit(num_val=0.2, num_test=0.2, is_undirected=edges is not edge_index, neg_sampling_ratio=0.0)
            for part in split(data):
                assert all(torch.equal(part[name], value) for name, value in stored.items())
