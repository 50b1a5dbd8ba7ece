"""Large graphs and many small ones, with the dense matrix out of reach: anything quadratic, or a loop over graphs, shows."""

from collections.abc import Callable

import pytest
import torch
from graphs import ring
from torch import Tensor
from torch_geometric.data import Batch, Data
from torch_geometric.nn import GCNConv

from pyg_topomask import Graph
from pyg_topomask.masks import AdjacencyMask, ExpanderMask, GRFMask, LowRankMask, Mask, PackingMask, SinDegreeMask
from pyg_topomask.nn import GRFAttention, KMIPAttention, MaskedLinearAttention, MaskedSoftmaxAttention, TopoGPSConv
from pyg_topomask.operators import MaskOperator
from pyg_topomask.transforms import AddGraphRandomFeatures

CHANNELS, HEADS, NODES, SIZE = 8, 2, 200_000, 20
WALKS = {'num_walks': 2, 'p_halt': 0.5, 'max_walk_length': 3}


@pytest.fixture(autouse=True)
def _no_dense_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: MaskOperator) -> Tensor:
        raise AssertionError('the dense matrix was formed')

    monkeypatch.setattr(MaskOperator, 'to_dense', refuse)


def large() -> Data:
    return Data(edge_index=ring(NODES), num_nodes=NODES, **factors(NODES))


def many() -> Data:
    data = Data(edge_index=ring(SIZE), num_nodes=SIZE, **factors(SIZE))
    return Batch.from_data_list([data] * 5000)


def factors(size: int) -> dict[str, Tensor]:
    return {'mask_left': torch.rand(size, 2), 'mask_right': torch.rand(size, 2)}


@pytest.fixture(scope='module', params=['large', 'many'])
def graph(request: pytest.FixtureRequest) -> Graph:
    return Graph.from_data({'large': large, 'many': many}[request.param]())


def train(layer: torch.nn.Module, graph: Graph) -> None:
    x = torch.randn(graph.num_nodes, CHANNELS)
    out = layer(x, graph.edge_index, batch=graph.batch, graph=graph)
    out.square().mean().backward()
    assert out.shape == x.shape
    assert all(parameter.grad.isfinite().all() for parameter in layer.parameters())


MASKS = {
    'packing': lambda: PackingMask(),
    'adjacency': lambda: AdjacencyMask(HEADS, normalization='sym'),
    'low_rank': lambda: LowRankMask(HEADS),
    'grf': lambda: GRFMask(HEADS, **WALKS),
    'grf_independent': lambda: GRFMask(HEADS, **WALKS, independent_ensembles=True),
    'sin_degree': lambda: SinDegreeMask(HEADS),
    'sum': lambda: 0.5 * AdjacencyMask(HEADS) + PackingMask(),
    'transposed': lambda: GRFMask(HEADS, **WALKS).T,
    'hadamard': lambda: AdjacencyMask(HEADS) * LowRankMask(HEADS),
}


@pytest.mark.parametrize('mask', MASKS)
def test_masked_linear_attention(mask: str, graph: Graph) -> None:
    own: Mask = MASKS[mask]()
    train(MaskedLinearAttention(CHANNELS, HEADS, own, 'elu'), graph)


def test_expander_attention(graph: Graph) -> None:
    train(MaskedSoftmaxAttention(CHANNELS, HEADS, ExpanderMask(degree=4)), graph)


@pytest.mark.parametrize('data', [lambda: Data(edge_index=ring(20_000), num_nodes=20_000), many])
def test_kmip_attention(data: Callable[[], Data]) -> None:
    """Its search is quadratic in time, not in memory."""
    train(KMIPAttention(CHANNELS, HEADS, k=10), Graph.from_data(data()))


@pytest.mark.parametrize('route', ['features', 'edges'])
def test_grf_attention(route: str, graph: Graph) -> None:
    train(GRFAttention(CHANNELS, HEADS, **WALKS, feature_map='favor', route=route, resample='forward'), graph)


def test_gps_layer(graph: Graph) -> None:
    train(TopoGPSConv(CHANNELS, GCNConv(CHANNELS, CHANNELS), attn=GRFAttention(CHANNELS, HEADS, **WALKS)), graph)


def test_transform() -> None:
    stored = AddGraphRandomFeatures(**WALKS)(large())
    operator = GRFMask(HEADS, **WALKS)(stored)
    assert operator.matmul(torch.ones(NODES, HEADS, 1)).isfinite().all()
