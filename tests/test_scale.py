"""Large graphs and many small ones, with the dense matrix out of reach: anything quadratic, or a loop over graphs, shows."""

import pytest
import torch
from graphs import ring, undirected
from torch import Tensor
from torch_geometric.data import Batch, Data
from torch_geometric.graphgym.config import cfg, set_cfg
from torch_geometric.nn import GCNConv
from yacs.config import CfgNode

from pyg_topomask import Graph
from pyg_topomask.graphgym.names.attentions import ATTENTIONS
from pyg_topomask.masks import AdjacencyMask, GRFMask, HeatKernelMask, LowRankMask, Mask, PackingMask, RWGNKMask
from pyg_topomask.nn import GRFAttention, MaskedLinearAttention, TopoGPSConv
from pyg_topomask.operators.base import MaskOperator
from pyg_topomask.transforms import AddGraphRandomFeatures

CHANNELS, HEADS, NODES, SIZE = 8, 2, 100_000, 20
WALKS = {'num_walks': 2, 'p_halt': 0.5, 'max_walk_length': 3}

#: Options of attentions whose defaults are for other data, or walk further than needed here.
OPTIONS = {
    'GRF': WALKS,
    'AsymmetricGRF': WALKS,
    'GRFSoftmax': WALKS,
    'RWGNK': WALKS,
    'Causal': {'order': 'time'},
}

#: Their search is quadratic in time, not in memory.
QUADRATIC_TIME = {'KMIP', 'SparseAttention'}

#: Two leaves of a star have its center in common, which makes an entry of every pair.
QUADRATIC_ON_STARS = {*QUADRATIC_TIME, 'GRFSoftmax', 'Hop'}


@pytest.fixture(autouse=True)
def _no_dense_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MaskOperator, 'to_dense', lambda self: pytest.fail('formed the matrix'))


@pytest.fixture(autouse=True)
def _composed_mask() -> None:
    """What the attention Masked composes."""
    set_cfg(cfg)
    cfg.topomask.mask = CfgNode({'sum': ['Adjacency', {'hadamard': ['PowerSeries', 'LowRank']}]})


def with_attributes(edge_index: Tensor, size: int) -> Data:
    """A graph that every attention takes, if it is a tree."""
    factors = {'mask_left': torch.rand(size, 2), 'mask_right': torch.rand(size, 2), 'time': torch.rand(size)}
    return Data(edge_index=edge_index, num_nodes=size, grid_shape=torch.tensor([[size // SIZE, SIZE]]), **factors)


def path(size: int) -> Data:
    nodes = torch.arange(size - 1)
    forwards = torch.stack([nodes, nodes + 1])
    return with_attributes(torch.cat([forwards, forwards.flip(0)], dim=1), size)


def star(size: int) -> Data:
    return with_attributes(undirected([(0, leaf) for leaf in range(1, size)]), size)


def many(graphs: int = 5000) -> Data:
    return Batch.from_data_list([path(SIZE)] * graphs)


@pytest.fixture(scope='module')
def few_and_many() -> tuple[Data, Data]:
    return many(20), many(600)


@pytest.fixture(scope='module', params=['large', 'many'])
def graph(request: pytest.FixtureRequest) -> Graph:
    return Graph.from_data(path(NODES) if request.param == 'large' else many())


def train(layer: torch.nn.Module, graph: Graph) -> None:
    x = torch.randn(graph.num_nodes, CHANNELS)
    out = layer(x, graph.edge_index, batch=graph.batch, graph=graph)
    out.square().mean().backward()
    assert out.shape == x.shape
    for name, parameter in layer.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        # b of a tree is a factor of all entries, which the denominator divides out: its gradient is rounding, or 0.
        assert parameter.grad.any() or name == 'mask.b', name


def attention(name: str) -> torch.nn.Module:
    return ATTENTIONS[name](CHANNELS, heads=HEADS, **OPTIONS.get(name, {}))


# Every attention ------------------------------------------------------------------------------------------------------


def operations(layer: torch.nn.Module, data: Data) -> int:
    """The operations that a training step calls, those inside others and of the backward pass included."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        train(layer, Graph.from_data(data))
    return len(profile.events())


def assert_no_loop_over_graphs(layer: torch.nn.Module, few: Data, many: Data) -> None:
    """A block of large tensors holds fewer features, so that up to all of the 8 features are worked on one by one."""
    operations(layer, few)  # the first call of a process sets up what later ones have
    assert operations(layer, many) < 10 * operations(layer, few)


@pytest.mark.parametrize('name', ATTENTIONS)
def test_no_attention_loops_over_graphs(name: str, few_and_many: tuple[Data, Data]) -> None:
    assert_no_loop_over_graphs(attention(name), *few_and_many)


class GraphByGraph(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lin = torch.nn.Linear(CHANNELS, CHANNELS)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor, graph: Graph) -> Tensor:
        return torch.cat([block.cumsum(0) for block in self.lin(x).split(SIZE)])


def test_a_loop_over_graphs_shows() -> None:
    with pytest.raises(AssertionError, match='operations'):
        assert_no_loop_over_graphs(GraphByGraph(), many(20), many(600))


@pytest.mark.parametrize('name', ATTENTIONS)
def test_large_graph(name: str) -> None:
    train(attention(name), Graph.from_data(path(NODES // 10 if name in QUADRATIC_TIME else NODES)))


@pytest.mark.parametrize('name', sorted({*ATTENTIONS} - QUADRATIC_ON_STARS))
def test_star(name: str) -> None:
    """Leaves are two hops apart, through one node of degree N - 1. Heat kernels need more terms the larger the degree."""
    train(attention(name), Graph.from_data(star(2_000 if name == 'HeatKernel' else 20_000)))


# Compositions, routes and the layer -----------------------------------------------------------------------------------

MASKS = {
    'grf_independent': lambda: GRFMask(HEADS, **WALKS, independent_ensembles=True),
    'sum': lambda: 0.5 * AdjacencyMask(HEADS) + PackingMask(),
    'transposed': lambda: GRFMask(HEADS, **WALKS).T,
    'hadamard': lambda: AdjacencyMask(HEADS) * LowRankMask(HEADS),
    'random_walk': lambda: HeatKernelMask(HEADS, 'random_walk_laplacian', 0.3, tolerance=1e-3),
    'exact_rwgnk': lambda: RWGNKMask(HEADS, None, max_walk_length=2),
}


@pytest.mark.parametrize('mask', MASKS)
def test_masked_linear_attention(mask: str, graph: Graph) -> None:
    mask_module: Mask = MASKS[mask]()
    train(MaskedLinearAttention(CHANNELS, HEADS, mask_module, 'elu'), graph)


@pytest.mark.parametrize('route', ['features', 'edges'])
def test_grf_attention(route: str, graph: Graph) -> None:
    train(GRFAttention(CHANNELS, HEADS, **WALKS, feature_map='favor', route=route, resample='forward'), graph)


@pytest.mark.parametrize('name', ['Expander', 'GRFSoftmax', 'AsymmetricGRF'])
def test_attention_weights(name: str, graph: Graph) -> None:
    layer, x = attention(name), torch.randn(graph.num_nodes, CHANNELS)
    out, _ = layer(x, graph.edge_index, graph=graph, return_attention_weights=True)
    out.square().mean().backward()
    assert all(parameter.grad.isfinite().all() for parameter in layer.parameters())


def test_gps_layer(graph: Graph) -> None:
    train(TopoGPSConv(CHANNELS, GCNConv(CHANNELS, CHANNELS), attn=GRFAttention(CHANNELS, HEADS, **WALKS)), graph)


def test_transform() -> None:
    stored = AddGraphRandomFeatures(**WALKS)(Data(edge_index=ring(NODES), num_nodes=NODES))
    operator = GRFMask(HEADS, **WALKS)(stored)
    assert operator.matmul(torch.ones(NODES, HEADS, 1)).isfinite().all()
