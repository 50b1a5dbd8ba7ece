"""After the first call on a graph, a layer reads no number from the device: a GPU is never waited for."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from unittest import mock

import pytest
import torch
from graphs import ring, undirected
from grids import covering
from torch import Tensor
from torch.nn import Module
from torch_geometric.data import Batch, Data

from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks import (
    AdjacencyMask,
    BigBirdMask,
    CausalMask,
    ExpanderMask,
    GRFMask,
    HopMask,
    MultiHeadMask,
    PackingMask,
    PaddingMask,
    PowerSeriesMask,
    RWGNKMask,
    SinDegreeMask,
    ToeplitzMask,
)
from pyg_topomask.nn import AsymmetricGRFAttention, GRFAttention, MaskedLinearAttention, RWGNKAttention, TopoGPSConv
from pyg_topomask.nn.models import MGFormer

READS = ('item', 'tolist', '__int__', '__bool__', '__float__', '__index__')


@contextmanager
def without_host_reads() -> Iterator[None]:
    """Makes every read of a number from a tensor raise. On the CPU alone, attention looks whether numbers are
    positive and in range."""

    def refuse(self: Tensor, *arguments: object) -> None:
        raise AssertionError('a number was read from a tensor')

    with ExitStack() as stack:
        for name in READS:
            stack.enter_context(mock.patch.object(Tensor, name, refuse))
        for module in ('edges', 'low_rank'):
            path = f'pyg_topomask.ops.routes.{module}.known_positive'
            stack.enter_context(mock.patch(path, return_value=False))
        stack.enter_context(mock.patch('pyg_topomask.ops.normalize.readable', return_value=False))
        yield


# Not here, because they read by design: k-MIP attention and attention with softmax, which refuse NaN and negative entries;
# HeatKernelMask, whose polynomial gets longer with its learned time; TreeMask, whose plan lies on the CPU.
MASKS = {
    'packing': lambda: PackingMask(2),
    'padding': lambda: PaddingMask(2),
    'adjacency': lambda: AdjacencyMask(2),
    'expander': lambda: ExpanderMask(2),
    'grf': lambda: GRFMask(2),
    'grf_pairs': lambda: GRFMask(2, asymmetric='pairs'),
    'grf_unnormalized': lambda: GRFMask(2, normalization=None),
    'power_series': lambda: PowerSeriesMask(2),
    'power_series_unnormalized': lambda: PowerSeriesMask(2, normalization=None),
    'hop': lambda: HopMask(2),
    'rwgnk': lambda: RWGNKMask(2),
    'bigbird': lambda: BigBirdMask(2),
    'causal': lambda: CausalMask(2),
    'sin_degree': lambda: SinDegreeMask(2),
    'toeplitz': lambda: ToeplitzMask(2, shape_dims=1),
    'sum': lambda: GRFMask(2) + PackingMask(2),
    'hadamard': lambda: GRFMask(2) * SinDegreeMask(2),
    'sparse_product': lambda: GRFMask(2) * AdjacencyMask(2),
    'side_by_side': lambda: MultiHeadMask(GRFMask(1), CausalMask(1)),
}
LAYERS = {
    **{name: lambda make=make: MaskedLinearAttention(8, 2, make()) for name, make in MASKS.items()},
    'features': lambda: MaskedLinearAttention(8, 2, GRFMask(2), route='features'),
    'blocks': lambda: MaskedLinearAttention(8, 2, PowerSeriesMask(2), route='blocks'),
    'low_rank': lambda: MaskedLinearAttention(8, 2, SinDegreeMask(2), route='low_rank'),
    'favor': lambda: MaskedLinearAttention(8, 2, AdjacencyMask(2), feature_map='favor'),
    'derf': lambda: MaskedLinearAttention(8, 2, AdjacencyMask(2), feature_map='derf'),
    'grf_layer': lambda: GRFAttention(8, 2),
    'rwgnk_layer': lambda: RWGNKAttention(8, 2),
    'asymmetric': lambda: AsymmetricGRFAttention(8, 2),
    'gps': lambda: TopoGPSConv(8, None, attn=GRFAttention(8, 2)),
}


@pytest.mark.filterwarnings('ignore:The spectral radius')
@pytest.mark.parametrize(('name', 'sizes'), covering(LAYERS, [(5, 9, 20, 7), (30,)]))
def test_a_prepared_graph_is_not_read_again(name: str, sizes: tuple[int, ...]) -> None:
    graphs = [Data(edge_index=ring(size), num_nodes=size, valid=torch.ones(size, dtype=torch.bool)) for size in sizes]
    graph = Graph.from_data(Batch.from_data_list(graphs))
    first, second = LAYERS[name](), LAYERS[name]()
    x = torch.randn(graph.num_nodes, 8, requires_grad=True)
    first(x, graph.edge_index, graph=graph).sum().backward()
    second(x, graph.edge_index, graph=graph)  # checks what its own parameters have to do with the graph
    with without_host_reads():
        second(x, graph.edge_index, graph=graph).sum().backward()
    assert x.grad.isfinite().all()


def test_interactions_are_checked_once() -> None:
    graph = Graph.from_data(Data(edge_index=undirected([(0, 2), (0, 3), (1, 4)]), num_nodes=5, num_users=torch.tensor([2])))
    model = MGFormer(2, 3, 4, svd_dim=0)
    model(graph)
    with without_host_reads():
        users, _ = model(graph)
    assert users.isfinite().all()


def test_a_read_is_told() -> None:
    class Reading(Module):
        def forward(self, x: Tensor, graph: Graph) -> Tensor:
            return x * int(graph.edge_index[0, 0])

    graph = Graph(ring(3), 3)
    with without_host_reads(), pytest.raises(AssertionError, match='read from a tensor'):
        Reading()(torch.ones(3, 1), graph)
