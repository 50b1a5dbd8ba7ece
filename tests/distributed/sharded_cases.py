"""Layers that several processes run on the shards of a graph, and one process on the whole graph."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.nn import GATConv, GCNConv, GINConv, PNAConv, SAGEConv
from torch_geometric.utils import to_undirected

from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks import (
    AdjacencyMask,
    CausalMask,
    ExpanderMask,
    GRFMask,
    HeatKernelMask,
    HopMask,
    LearnedFeaturesMask,
    LowRankMask,
    MultiHeadMask,
    PackingMask,
    PaddingMask,
    PowerSeriesMask,
    RWGNKMask,
    SinDegreeMask,
    StochasticRPEMask,
    ToeplitzMask,
)
from pyg_topomask.nn import (
    AsymmetricGRFAttention,
    EdgeWeights,
    GRFAttention,
    GRFSoftmaxAttention,
    KMIPAttention,
    MaskedLinearAttention,
    MaskedSoftmaxAttention,
    SinDegreeAttention,
    TopoGPSConv,
)

CHANNELS, NODES, EDGE_DIM = 8, 48, 3


def data_of(kind: str) -> Data:
    """A graph with an isolated node, self-loops and parallel edges: directed with weights of both signs, or undirected."""
    generator = torch.Generator().manual_seed(3)
    edge_index = torch.randint(NODES - 1, (2, 130), generator=generator)
    weight: Tensor | None = torch.rand(130, generator=generator, dtype=torch.float64) + 0.3
    if kind == 'undirected':
        edge_index, weight = to_undirected(edge_index, weight, reduce='add')
    elif kind == 'one_sided':  # the nodes of the second process receive nothing
        edge_index[1] %= NODES // 2
    elif kind == 'directed':
        weight = weight * (1 - 2 * (torch.arange(130) % 5 == 0).double())
    features = torch.randn(NODES, 8 + 6, generator=generator, dtype=torch.float64)
    if kind == 'unweighted':
        weight = None
    return Data(
        x=features[:, :CHANNELS],
        edge_index=edge_index,
        edge_weight=weight,
        mask_left=features[:, 8:10].abs(),
        mask_right=features[:, 10:12].abs(),
        valid=torch.arange(NODES) % 7 != 0,
        time=torch.arange(NODES) // 3,
        grid_shape=torch.tensor([[6, 8]]),
        edge_attr=torch.randn(edge_index.size(1), EDGE_DIM, generator=generator, dtype=torch.float64),
        num_nodes=NODES,
    )


def partition_of(name: str | None, processes: int) -> Tensor | None:
    if name is None:
        return None
    return torch.randint(processes, (NODES,), generator=torch.Generator().manual_seed(5))


@dataclass(frozen=True)
class Case:
    """A layer, the kind of the graph, how nodes are divided, and what the shards are made of."""

    make: Callable[[], torch.nn.Module]
    graph: str = 'directed'
    partition: str | None = None
    source: str = 'data'


def linear(mask: Any, feature_map: str = 'elu', **options: Any) -> Callable[[], torch.nn.Module]:
    return lambda: MaskedLinearAttention(CHANNELS, 2, mask=mask(), feature_map=feature_map, **options)


def grf(**options: Any) -> Callable[[], torch.nn.Module]:
    return lambda: GRFAttention(CHANNELS, heads=2, num_walks=4, max_walk_length=3, feature_map='elu', **options)


def walk_mask(**options: Any) -> GRFMask:
    return GRFMask(2, num_walks=4, p_halt=0.2, max_walk_length=2, **options)


def improved_gcn() -> torch.nn.Module:
    return TopoGPSConv(CHANNELS, GCNConv(CHANNELS, CHANNELS, improved=True), attn=linear(PackingMask)())


def without_running_moments() -> torch.nn.Module:
    """Norms in evaluation that still take the moments of their inputs."""
    options = {'norm_kwargs': {'track_running_stats': False}}
    layer = TopoGPSConv(CHANNELS, SAGEConv(CHANNELS, CHANNELS), attn=linear(PackingMask)(), **options)
    return layer.eval()


def mlp() -> torch.nn.Module:
    return torch.nn.Sequential(torch.nn.Linear(CHANNELS, CHANNELS), torch.nn.ReLU())


def learned(mask: Any, **options: Any) -> Callable[[], torch.nn.Module]:
    """A GPS layer whose mask has weights that are learned from features of edges and of both end nodes."""
    return lambda: TopoGPSConv(
        CHANNELS, None, attn=linear(mask)(), norm=None, edge_weights=EdgeWeights(EDGE_DIM, CHANNELS, **options)
    )


def softmax_with_edges(mask: Any) -> Callable[[], torch.nn.Module]:
    return lambda: MaskedSoftmaxAttention(CHANNELS, 2, mask(), edge_dim=EDGE_DIM)


CASES = {
    'no_edges': Case(grf(), 'one_sided'),
    'no_edges_adjacency': Case(linear(lambda: AdjacencyMask(2) + PowerSeriesMask(2, 2, flow='target_to_source')), 'one_sided'),
    'parts': Case(grf(), source='parts'),
    'parts_unweighted': Case(grf(), 'unweighted', source='parts'),
    'file': Case(grf(transition='weight'), source='file'),
    'folder': Case(grf(transition='weight'), partition='random', source='folder'),
    'folder_adjacency': Case(linear(lambda: AdjacencyMask(2, 0.7, 'sym')), source='folder'),
    'packing': Case(linear(PackingMask)),
    'packing_favor': Case(linear(PackingMask, 'favor'), partition='random'),
    'packing_derf': Case(linear(PackingMask, 'derf'), partition='random'),
    'packing_relu': Case(linear(PackingMask, 'relu')),
    'packing_features': Case(linear(PackingMask, route='features')),
    'low_rank': Case(linear(lambda: LowRankMask(2)), partition='random'),
    'low_rank_T': Case(linear(lambda: LowRankMask(2).T, route='features')),
    'padding': Case(linear(lambda: PaddingMask(2))),
    'learned_features': Case(linear(lambda: LearnedFeaturesMask(2, NODES, 3)), partition='random'),
    'stochastic_rpe': Case(linear(lambda: StochasticRPEMask(2)), partition='random'),
    'sin_degree': Case(lambda: SinDegreeAttention(CHANNELS, 2)),
    'sin_degree_both': Case(lambda: SinDegreeAttention(CHANNELS, 2, flow=None), partition='random'),
    'sin_degree_against': Case(lambda: SinDegreeAttention(CHANNELS, 2, flow='target_to_source'), partition='random'),
    'adjacency': Case(linear(lambda: AdjacencyMask(2, 0.7, 'sym'))),
    'adjacency_features': Case(linear(lambda: AdjacencyMask(2, 0.7, 'sym'), route='features'), partition='random'),
    'adjacency_against': Case(linear(lambda: AdjacencyMask(2, flow='target_to_source')), partition='random'),
    'adjacency_T': Case(linear(lambda: AdjacencyMask(2, 0.7, 'rw').T)),
    'expander': Case(linear(lambda: ExpanderMask(2, degree=4)), partition='random'),
    'expander_weights': Case(linear(lambda: ExpanderMask(2, degree=4, input_weights=True)), partition='random'),
    'expander_against': Case(linear(lambda: ExpanderMask(2, 4, input_edges=True, flow='target_to_source')), partition='random'),
    'hop': Case(linear(lambda: HopMask(2, max_hops=3)), partition='random'),
    'hop_against': Case(linear(lambda: HopMask(2, max_hops=3, flow='target_to_source')), partition='random'),
    'hop_path_weights': Case(linear(lambda: HopMask(2, max_hops=3, path_weights='mean')), partition='random'),
    'hop_sums': Case(linear(lambda: HopMask(2, 3, 'geometric'), sums=True), partition='random'),
    'packing_sums': Case(linear(PackingMask, sums=True), partition='random'),
    'power_series': Case(linear(lambda: PowerSeriesMask(2, 3)), partition='random'),
    'power_series_T': Case(linear(lambda: PowerSeriesMask(2, 3, normalization='rw', flow='target_to_source').T)),
    'heat': Case(linear(lambda: HeatKernelMask(2)), 'undirected', 'random'),
    'heat_normalized': Case(linear(lambda: HeatKernelMask(2, 'normalized_laplacian')), 'undirected'),
    'heat_adjacency': Case(linear(lambda: HeatKernelMask(2, 'adjacency', 0.2)), 'undirected', 'random'),
    'heat_random_walk': Case(linear(lambda: HeatKernelMask(2, 'random_walk_laplacian')), partition='random'),
    'heat_random_walk_against': Case(linear(lambda: HeatKernelMask(2, 'random_walk_laplacian', flow='target_to_source'))),
    'heat_directed_adjacency': Case(linear(lambda: HeatKernelMask(2, 'adjacency', 0.2)), partition='random'),
    'grf': Case(grf()),
    'grf_partition': Case(grf(independent_ensembles=True, transition='weight'), partition='random'),
    'grf_antithetic': Case(grf(sampler='repelling_antithetic', asymmetric='pairs'), partition='random'),
    'grf_against': Case(grf(flow='target_to_source'), partition='random'),
    'grf_stitched': Case(grf(stitch=2, independent_ensembles=True), partition='random'),
    'grf_stitched_one_hot_keys': Case(grf(stitch=3, asymmetric=True, resample='forward')),
    'grf_asymmetric': Case(lambda: AsymmetricGRFAttention(CHANNELS, 2, feature_map='elu', num_walks=4), partition='random'),
    'rwgnk': Case(linear(lambda: RWGNKMask(2, 4, p_halt=0.3)), partition='random'),
    'rwgnk_two_ensembles': Case(linear(lambda: RWGNKMask(2, 4, independent_ensembles=True)), partition='random'),
    'grf_features': Case(linear(lambda: walk_mask(asymmetric='pairs'), route='features')),
    'rwgnk_features': Case(linear(lambda: RWGNKMask(2, 4, independent_ensembles=True), route='features'), partition='random'),
    'rwgnk_pairs': Case(linear(lambda: RWGNKMask(2, 4, alpha=0.0, independent_ensembles=True))),
    'rwgnk_exact': Case(linear(lambda: RWGNKMask(2, None, p_halt=0.3)), partition='random'),
    'rwgnk_exact_weighted': Case(
        linear(lambda: RWGNKMask(2, None, transition='weight', flow='target_to_source')), partition='random'
    ),
    'rwgnk_unscaled': Case(linear(lambda: RWGNKMask(2, None, alpha=0.0, transition='weight'))),
    'causal': Case(linear(CausalMask)),
    'causal_time': Case(linear(lambda: CausalMask(2, 'time', strict=True).T)),
    'toeplitz': Case(linear(lambda: ToeplitzMask(2, window=3), 'favor:3'), partition='random'),  # odd numbers of columns
    'sum': Case(linear(lambda: AdjacencyMask(2) + SinDegreeMask(2) * 0.5), partition='random'),
    'sum_sparse': Case(linear(lambda: AdjacencyMask(2) + ExpanderMask(2, 4) * 0.5), partition='random'),
    'hadamard': Case(linear(lambda: walk_mask() * SinDegreeMask(2)), partition='random'),
    'hadamard_sparse': Case(linear(lambda: walk_mask(asymmetric=True) * AdjacencyMask(2)), partition='random'),
    'hadamard_entries': Case(linear(lambda: AdjacencyMask(2) * SinDegreeMask(2)), partition='random'),
    'heads': Case(linear(lambda: MultiHeadMask(AdjacencyMask(1), walk_mask_of_one_head())), partition='random'),
    'softmax': Case(lambda: MaskedSoftmaxAttention(CHANNELS, 2, AdjacencyMask(2)), 'positive', 'random'),
    'softmax_sum': Case(
        lambda: MaskedSoftmaxAttention(CHANNELS, 2, AdjacencyMask(2) + ExpanderMask(2, 4)), 'positive', 'random'
    ),
    'softmax_walks': Case(lambda: GRFSoftmaxAttention(CHANNELS, 2, asymmetric=True), 'positive', 'random'),
    'softmax_meetings': Case(lambda: GRFSoftmaxAttention(CHANNELS, 2), 'positive', 'random'),
    'softmax_edges': Case(softmax_with_edges(lambda: AdjacencyMask(2)), 'positive', 'random'),
    'softmax_edges_hop': Case(softmax_with_edges(lambda: HopMask(2, max_hops=3, positive=True)), partition='random'),
    'softmax_edges_expander': Case(softmax_with_edges(lambda: ExpanderMask(2, 4)), 'one_sided', 'random'),
    'softmax_edges_walks': Case(
        lambda: GRFSoftmaxAttention(CHANNELS, 2, asymmetric=True, edge_dim=EDGE_DIM, resample='forward'), 'positive', 'random'
    ),
    'kmip_edges': Case(lambda: KMIPAttention(CHANNELS, 2, k=9, edge_dim=EDGE_DIM), partition='random'),
    'kmip': Case(lambda: KMIPAttention(CHANNELS, 2, k=5), partition='random'),
    'kmip_cosine': Case(lambda: KMIPAttention(CHANNELS, 2, k=30, similarity='cosine')),
    'gps_gcn': Case(lambda: TopoGPSConv(CHANNELS, GCNConv(CHANNELS, CHANNELS), attn=grf()()), 'positive', 'random'),
    'gps_gcn_improved': Case(improved_gcn, 'positive', 'random'),
    'gps_gcn_improved_unweighted': Case(improved_gcn, 'unweighted'),
    'gps_gat': Case(lambda: TopoGPSConv(CHANNELS, GATConv(CHANNELS, 4, 2), attn=grf()()), partition='random'),
    'gps_gin': Case(lambda: TopoGPSConv(CHANNELS, GINConv(mlp()), attn=grf()()), partition='random'),
    'gps_sage': Case(without_running_moments),
    'weights': Case(learned(lambda: AdjacencyMask(2, 0.7, 'sym')), partition='random'),
    'weights_of_heads': Case(learned(lambda: AdjacencyMask(2, normalization='rw').T, heads=2)),
    'weights_series': Case(learned(lambda: PowerSeriesMask(2, 3)), partition='random'),
    'weights_heat': Case(learned(lambda: HeatKernelMask(2, 'random_walk_laplacian')), partition='random'),
    'weights_expander': Case(learned(lambda: ExpanderMask(2, degree=4, input_weights=True)), 'unweighted', 'random'),
    'weights_rwgnk': Case(learned(lambda: RWGNKMask(2, None, alpha=0.0, transition='weight'))),
    'weights_sum': Case(learned(lambda: AdjacencyMask(2) + PowerSeriesMask(2, 2)), 'unweighted'),
    'gps_pna': Case(
        lambda: TopoGPSConv(
            CHANNELS,
            PNAConv(CHANNELS, CHANNELS, ['mean', 'max'], ['identity', 'amplification'], torch.tensor([1, 2, 3])),
            attn=grf()(),
            norm='layer_norm',
        ),
        partition='random',
    ),
}
#: Cases that are also run in float32.
SHORT = ('packing', 'adjacency', 'power_series', 'grf', 'causal', 'kmip', 'softmax', 'gps_gcn')
#: Cases whose bytes are compared with formulas.
WITH_BYTES = ('packing', 'adjacency', 'power_series', 'grf', 'grf_features', 'causal', 'kmip')
#: One case of each kind of operator, which one process runs as the only shard by day.
OF_EACH_KIND = ('no_edges', 'packing', 'adjacency', 'power_series', 'grf', 'grf_features', 'causal', 'toeplitz')
OF_EACH_KIND += ('hadamard', 'softmax', 'kmip', 'gps_pna', 'weights')
#: Cases that four processes run too.
OF_FOUR = ('adjacency', 'causal', 'grf_partition', 'kmip')


def walk_mask_of_one_head() -> GRFMask:
    return GRFMask(1, num_walks=4, max_walk_length=2)


def make_layer(case: Case, dtype: torch.dtype) -> torch.nn.Module:
    torch.manual_seed(0)
    layer = case.make().to(dtype)
    for parameter in layer.parameters():  # away from special numbers, such as zeros and ones
        with torch.no_grad():
            parameter.add_(0.05 * torch.rand_like(parameter))
    return layer


def run_layer(layer: torch.nn.Module, x: Tensor, graph: Graph) -> Tensor:
    if isinstance(layer, TopoGPSConv):
        features = {} if layer.edge_weights is None else {'edge_attr': graph.attribute('edge_attr')}
        out: Tensor = layer(x, graph.edge_index, graph=graph, **features)
        return out
    features = {} if getattr(layer, 'edge_terms', None) is None else {'edge_attr': graph.attribute('edge_attr')}
    result: Tensor = layer(x, graph=graph, **features)
    return result


def weights_of_loss(nodes: Tensor, dtype: torch.dtype) -> Tensor:
    """Numbers that make the loss another function of every output, with gradients that are not small."""
    return 50 * torch.sin(torch.arange(CHANNELS).double() + 3.0 * nodes.double().unsqueeze(1)).to(dtype)
