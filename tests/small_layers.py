"""Layers under each kind of mask, with small inputs in float64."""

from collections.abc import Callable
from typing import Any

import torch
from graphs import path, ring
from torch import Tensor
from torch.nn import Module
from torch_geometric.data import Batch, Data

from pyg_topomask import Graph
from pyg_topomask.masks import (
    AdjacencyMask,
    CausalMask,
    GRFMask,
    HeatKernelMask,
    PowerSeriesMask,
    SinDegreeMask,
    ToeplitzMask,
    TreeMask,
)
from pyg_topomask.nn import (
    GRFAttention,
    GRFSoftmaxAttention,
    KMIPAttention,
    MaskedLinearAttention,
    MaskedSoftmaxAttention,
    RWGNKAttention,
)


def linear(*mask: Any, **options: Any) -> Module:
    return MaskedLinearAttention(4, 2, *mask, **options)


LAYERS: dict[str, Callable[[], Module]] = {
    'linear': linear,
    'favor': lambda: linear(feature_map='favor'),
    'derf': lambda: linear(feature_map='derf'),
    'adjacency': lambda: linear(AdjacencyMask(2)),
    'power_series': lambda: linear(PowerSeriesMask(2)),
    'blocks': lambda: linear(PowerSeriesMask(2) * SinDegreeMask(2), route='blocks'),
    'heat_kernel': lambda: linear(HeatKernelMask(2)),
    'toeplitz': lambda: linear(ToeplitzMask(2, 1)),
    'window': lambda: linear(ToeplitzMask(2, 1, window=1)),
    'tree': lambda: linear(TreeMask(2)),
    'tree_rings': lambda: linear(TreeMask(2, 'distance', max_distance=2, method='rings')),
    'tree_fft': lambda: linear(TreeMask(2, 'distance', max_distance=2, method='fft')),
    'tree_distance': lambda: linear(TreeMask(2, 'distance', max_distance=2)),
    'fixed_tree': lambda: linear(TreeMask(2, a=0.01, learnable=False)),
    'causal': lambda: linear(CausalMask(2)),
    'sin_degree': lambda: linear(SinDegreeMask(2)),
    'transposed': lambda: linear(GRFMask(2, asymmetric=True).T, route='features'),
    'sum': lambda: linear(0.5 * AdjacencyMask(2) + GRFMask(2)),
    'grf': lambda: GRFAttention(4, 2, route='features'),
    'resampled': lambda: GRFAttention(4, 2, resample='forward'),
    'grf_softmax': lambda: GRFSoftmaxAttention(4, 2),
    'softmax': lambda: MaskedSoftmaxAttention(4, 2, AdjacencyMask(2)),
    'tree_softmax': lambda: MaskedSoftmaxAttention(4, 2, TreeMask(2)),
    'low_rank_softmax': lambda: MaskedSoftmaxAttention(4, 2, SinDegreeMask(2)),
    'rwgnk': lambda: RWGNKAttention(4, 2),
    'kmip': lambda: KMIPAttention(4, 2, k=2, diversity=0.1),
}

#: One of each kind of operator. The others differ from one of these in their numbers.
OF_EACH_KIND = ['adjacency', 'blocks', 'heat_kernel', 'toeplitz', 'tree', 'tree_fft', 'causal', 'grf', 'grf_softmax', 'kmip']


def example(name: str, *sizes: int) -> tuple[Module, dict[str, Tensor], Tensor, Graph]:
    torch.manual_seed(0)
    edges = path if name.startswith(('tree', 'fixed_tree', 'toeplitz', 'window')) else ring
    data = [Data(edge_index=edges(n), num_nodes=n, grid_shape=torch.tensor([[n]])) for n in sizes]
    graph = Graph.from_data(Batch.from_data_list(data) if len(data) > 1 else data[0])
    layer = LAYERS[name]().double()
    if name == 'resampled':
        layer.eval()
    parameters = {name: x.detach() for name, x in layer.named_parameters()}
    return layer, parameters, torch.randn(sum(sizes), 4, dtype=torch.float64), graph
