from __future__ import annotations

import pytest
import torch
from grids import covering
from torch_geometric.data import Batch, Data, HeteroData
from torch_geometric.transforms import BaseTransform

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
    [
        *(AddForest(), AddGraphRandomFeatures(), AddRandomWalkKernel(), AddSVDEncoding(rank=1), AddSpanningForest()),
        PrepareMasks(HopMask()),
    ],
    ids=lambda transform: type(transform).__name__,
)
def test_data_without_edges_is_refused(transform: BaseTransform) -> None:
    with pytest.raises(ValueError, match=r'^data: got the attributes x; accepted: data with edge_index or adj_t; KNNGraph'):
        transform(Data(x=torch.ones(3, 2)))


@pytest.mark.parametrize('transform', [KNNGraph(), AddNormals(), FarthestSampling(2)], ids=lambda made: type(made).__name__)
def test_positions_that_are_no_tensor_are_refused(transform: BaseTransform) -> None:
    for data in (Data(pos=[1, 2, 3], num_nodes=3), Data(num_nodes=3)):
        with pytest.raises(ValueError, match=r'^data: got Data.* without a tensor pos; accepted: data with positions'):
            transform(data)
