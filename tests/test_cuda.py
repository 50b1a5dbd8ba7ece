"""What a GPU computes is what the CPU computes: masks, attention, layers, walks, search and transforms, and their gradients.

TOPOMASK_DEVICE=cpu runs these tests without a GPU, which compares the CPU with itself.
"""

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import pytest
import torch
from devices import CPU, DEVICE, assert_alike, batch, cubes, forest, symmetric, to, with_gradients
from fuzz.strategies import CHANNELS, attributed, edges, random
from grids import covering
from rounding import BOUND, relative_error
from torch import Tensor
from torch.nn import Module
from torch_geometric.data import Batch, Data
from torch_geometric.nn import GCNConv
from torch_geometric.transforms import BaseTransform

from pyg_topomask import Graph, feature_maps, masks, nn, transforms
from pyg_topomask.feature_maps.names import FEATURE_MAPS
from pyg_topomask.graphs.segments import Segments
from pyg_topomask.masks import Mask
from pyg_topomask.nn import models
from pyg_topomask.ops import knn_graph, masked_linear_attention, masked_softmax_attention, topk_inner_product
from pyg_topomask.ops.softmax_entries import attend_softmax
from pyg_topomask.testing import assert_batch_invariant, assert_mask_operator
from pyg_topomask.walks import WalkSettings, sample_walks
from pyg_topomask.walks.steps import SAMPLERS
from pyg_topomask.walks.walk import sample_ensembles

pytestmark = [
    pytest.mark.skipif(
        DEVICE.type == 'cuda' and not torch.cuda.is_available(),
        reason='no GPU; TOPOMASK_DEVICE=cpu runs these tests without one',
    ),
    *([pytest.mark.nightly] if DEVICE.type == 'cpu' else []),
]

HEADS = 2


@pytest.fixture(autouse=True)
def _single_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    """Convolutions are in TensorFloat-32 by default, which has ten bits; products of matrices are not."""
    monkeypatch.setattr(torch.backends.cudnn, 'allow_tf32', False)


# Masks and routes -----------------------------------------------------------------------------------------------------


class MaskCase(NamedTuple):
    make: Callable[[int], Mask]  # for so many nodes
    data: Callable[[], Batch] = batch


def case(kind: type[Mask], data: Callable[[], Batch] = batch, /, **settings: Any) -> MaskCase:
    return MaskCase(lambda num_nodes: kind(heads=HEADS, **settings), data)


MASKS: dict[str, MaskCase] = {
    'adjacency': case(masks.AdjacencyMask, normalization='sym'),
    'bigbird': case(masks.BigBirdMask, window=1, ends=1, degree=2),
    'causal': case(masks.CausalMask, order='time'),
    'causal_strict': case(masks.CausalMask, strict=True),
    'dense': MaskCase(lambda num_nodes: masks.DenseMask(HEADS, random(0, HEADS, num_nodes, num_nodes).abs())),
    'expander': case(masks.ExpanderMask, degree=2, input_edges=True),
    'grf': case(masks.GRFMask),
    'grf_asymmetric': case(masks.GRFMask, asymmetric=True, sampler='antithetic'),
    'grf_pairs': case(masks.GRFMask, asymmetric='pairs', independent_ensembles=True, sampler='repelling'),
    'grf_fresh': case(masks.GRFMask, resample='forward', transition='weight', walk_length='poisson:1.5'),
    'hadamard': MaskCase(lambda num_nodes: masks.AdjacencyMask(HEADS) * masks.LowRankMask(HEADS)),
    'heat_laplacian': case(masks.HeatKernelMask, symmetric, kind='laplacian'),
    'heat_normalized_laplacian': case(masks.HeatKernelMask, symmetric, kind='normalized_laplacian'),
    'heat_random_walk': case(masks.HeatKernelMask, kind='random_walk_laplacian'),
    'heat_adjacency': case(masks.HeatKernelMask, symmetric, kind='adjacency'),
    'hop': case(masks.HopMask),
    'hypercube': case(masks.HypercubeMask, cubes, dim=2),
    'learned': case(masks.LearnedFeaturesMask, num_nodes=12, rank=2),
    'low_rank': case(masks.LowRankMask),
    'heads': MaskCase(lambda num_nodes: masks.MultiHeadMask(masks.GRFMask(), masks.CausalMask())),
    'packing': case(masks.PackingMask),
    'padding': case(masks.PaddingMask),
    'power_series': case(masks.PowerSeriesMask, coefficients='heat'),
    'power_series_f': case(masks.PowerSeriesMask, symmetric, parameterization='f', normalization='rw'),
    'rwgnk': case(masks.RWGNKMask, num_walks=4),
    'rwgnk_exact': case(masks.RWGNKMask, num_walks=None),
    'scaled': MaskCase(lambda num_nodes: masks.AdjacencyMask(HEADS) * torch.nn.Parameter(torch.tensor([2.0, 0.5]))),
    'sin_degree': case(masks.SinDegreeMask),
    'stochastic_rpe': case(masks.StochasticRPEMask),
    'sum': MaskCase(lambda num_nodes: 0.5 * masks.PackingMask() + masks.GRFMask(HEADS)),
    'toeplitz': case(masks.ToeplitzMask, shape_dims=1, window=3),
    'toeplitz_distance': case(masks.ToeplitzMask, shape_dims=1, kind='distance', beyond='zero', positive=True),
    'toeplitz_periodic': case(masks.ToeplitzMask, shape_dims=1, periodic=True),
    'transposed': MaskCase(lambda num_nodes: masks.GRFMask(HEADS, asymmetric=True).T),
    'tree': case(masks.TreeMask, forest),
    'tree_fixed': case(masks.TreeMask, forest, a=0.01, learnable=False),
    'tree_rings': case(masks.TreeMask, forest, kind='distance', method='rings'),
    'tree_fft': case(masks.TreeMask, forest, kind='distance', method='fft'),
}


def test_all_masks_are_here() -> None:
    public = [getattr(masks, name) for name in masks.__all__]
    concrete = {kind for kind in public if inspect.isclass(kind) and not inspect.isabstract(kind)}
    assert concrete <= {type(mask_case.make(1)) for mask_case in MASKS.values()}


def bound(mask_case: MaskCase, device: torch.device) -> tuple[Mask, Graph]:
    torch.manual_seed(0)
    data = mask_case.data()
    return to(device, mask_case.make(data.num_nodes)), Graph.from_data(to(device, data))


@pytest.mark.parametrize('name', MASKS)
def test_products_and_entries_of_masks(name: str) -> None:
    def run(device: torch.device) -> list[Tensor]:
        mask, graph = bound(MASKS[name], device)
        x = random(5, graph.num_nodes, HEADS, 3).to(device).requires_grad_()
        leaves = [x, *mask.parameters()]
        torch.manual_seed(1)
        results = [mask(graph).to_dense(), *with_gradients(mask(graph).matmul(x), leaves)]
        results += with_gradients(mask(graph).T.matmul(x), leaves)
        operator = mask(graph)
        if operator.entries is not None:
            entries = operator.entries()
            results += [entries.pattern.row, entries.pattern.col, entries.value]
        if operator.low_rank is not None:
            results += (operator.low_rank.left, operator.low_rank.right)
        return results

    assert_alike(run)


@pytest.mark.parametrize('name', MASKS)
def test_operators_behave_as_their_matrix(name: str) -> None:
    mask_case = MASKS[name]
    data = mask_case.data().apply(lambda value: value.double() if value.is_floating_point() else value)
    alone = name not in ('dense', 'grf_fresh')  # of all nodes, drawn anew
    # Blocks of heat kernels agree with other routes up to the tolerance of the mask.
    tolerance = 1e-8 if name.startswith('heat') else 1e-9
    assert_mask_operator(mask_case.make(data.num_nodes), to(DEVICE, data), tolerance, alone)


@pytest.mark.parametrize('name', MASKS)
def test_routes_of_linear_attention(name: str) -> None:
    def run(device: torch.device) -> list[Tensor]:
        mask, graph = bound(MASKS[name], device)
        q, k, v = (random(seed, graph.num_nodes, HEADS, size).to(device) for seed, size in ((1, 4), (2, 4), (3, 3)))
        leaves = [tensor.requires_grad_() for tensor in (q.abs(), k.abs(), v)]
        operator, results = mask(graph), []
        offered = {'edges': operator.entries is not None, 'low_rank': operator.low_rank is not None}
        for route in ('auto', 'features', 'blocks', *(route for route, available in offered.items() if available)):
            out = masked_linear_attention(*leaves, mask(graph), route)
            results += with_gradients(out, [*leaves, *mask.parameters()])
        return results

    assert_alike(run)


@pytest.mark.parametrize('name', ['adjacency', 'expander', 'grf', 'grf_asymmetric', 'rwgnk'])
def test_softmax_attention(name: str) -> None:
    def run(device: torch.device) -> list[Tensor]:
        mask, graph = bound(MASKS[name], device)
        leaves = [random(seed, graph.num_nodes, HEADS, 4).to(device).requires_grad_() for seed in (1, 2, 3)]
        out = masked_softmax_attention(*leaves, mask(graph))
        return [
            *with_gradients(out, [*leaves, *mask.parameters()]),
            *attend_softmax(*leaves, masks.AdjacencyMask().to(device)(graph).entries())[:2],
        ]

    assert_alike(run)


@pytest.mark.parametrize('name', FEATURE_MAPS)
def test_feature_maps(name: str) -> None:
    """Of scores, relative to the largest of their row: only a GPU divides features by factors that cancel in attention."""
    torch.manual_seed(0)
    features = FEATURE_MAPS[name](CHANNELS)

    def run(device: torch.device) -> list[Tensor]:
        q, k = leaves = [random(seed, 20, HEADS, CHANNELS).to(device).requires_grad_() for seed in (1, 2)]
        graph = torch.arange(20, device=device) // 7
        of_q, of_k = to(device, features)(q, k, Segments(20, graph))
        scores = torch.einsum('ihm,jhm->hij', of_q, of_k).masked_fill(graph.unsqueeze(1) != graph, 0.0)
        largest = scores.abs().amax(-1, keepdim=True)
        return with_gradients(scores / largest.masked_fill(largest == 0, 1.0), leaves)

    assert_alike(run)


# Layers ---------------------------------------------------------------------------------------------------------------


def attend(layer: Module, data: Batch) -> Tensor:
    out: Tensor = layer(data.x, data.edge_index, graph=data)
    return out


def looked_at(layer: Module, data: Batch) -> Tensor:
    out, (pairs, alpha) = layer(data.x, data.edge_index, graph=data, return_attention_weights=True)
    assert pairs.device == alpha.device == out.device
    return out


def convolve(layer: Module, data: Batch) -> Tensor:
    return torch.cat(layer(data.x, data.edge_index, data.x[data.edge_index].sum(0)))


def classify(layer: Module, data: Batch) -> Tensor:
    images = data.x.reshape(2, 1, 8, 8)
    out: Tensor = layer(images.unsqueeze(1).repeat(1, 2, 1, 1, 1) if isinstance(layer, models.ViViT) else images)
    return out


def interactions() -> Batch:
    """A ring of 8 users and 8 items."""
    data = batch(('ring',), (16,))
    data.edge_index = data.edge_index // 2 + 8 * (data.edge_index % 2)
    return data


class LayerCase(NamedTuple):
    make: Callable[[], Module]
    call: Callable[[Module, Batch], Tensor] = attend
    data: Callable[[], Batch] = batch


def layer(kind: Callable[..., Module], /, **settings: Any) -> Callable[[], Module]:
    return lambda: kind(CHANNELS, HEADS, **settings)


def edge_weights() -> nn.EdgeWeights:
    weights = nn.EdgeWeights(CHANNELS, symmetric=True)
    torch.nn.init.normal_(weights.lin_out.weight)  # zero at first: all weights are 1
    return weights


def with_bias(make: Callable[[], Module]) -> LayerCase:
    """With edge features, whose bias is zero at first."""

    def biased() -> Module:
        module = make()
        torch.nn.init.normal_(module.edge_terms.lin_bias.weight)
        return module

    def call(module: Module, data: Batch) -> Tensor:
        out: Tensor = module(data.x, data.edge_index, batch=data.batch, edge_attr=data.x[data.edge_index[0]])
        return out

    return LayerCase(biased, call)


def encode(module: Module, data: Batch) -> Tensor:
    pairs, features = module(data)
    return features * data.x[pairs[0]]


def under_weights(mask: Callable[[int], Mask]) -> LayerCase:
    def make() -> Module:
        attn = nn.MaskedLinearAttention(CHANNELS, HEADS, mask(HEADS))
        return nn.TopoGPSConv(CHANNELS, None, attn=attn, edge_weights=edge_weights())

    def call(module: Module, data: Batch) -> Tensor:
        out: Tensor = module(data.x, data.edge_index, data.batch, edge_attr=data.x[data.edge_index[0]])
        return out

    return LayerCase(make, call)


def interlacer() -> Module:
    model = models.Interlacer(CHANNELS, 4, num_neighbors=3, num_walks=4)
    torch.nn.init.normal_(model.lin_out.weight)  # zero at first: nothing moves
    return model


LAYERS: dict[str, LayerCase] = {
    'linear': LayerCase(layer(nn.MaskedLinearAttention, feature_map='elu')),
    'linear_favor': LayerCase(layer(nn.MaskedLinearAttention, mask=masks.CausalMask(), feature_map='favor')),
    'grf': LayerCase(layer(nn.GRFAttention, feature_map='elu')),
    'asymmetric_grf': LayerCase(layer(nn.AsymmetricGRFAttention, feature_map='elu')),
    'asymmetric_grf_looked_at': LayerCase(layer(nn.AsymmetricGRFAttention, feature_map='elu'), looked_at),
    'grf_softmax': LayerCase(layer(nn.GRFSoftmaxAttention)),
    'grf_softmax_looked_at': LayerCase(layer(nn.GRFSoftmaxAttention, asymmetric=True), looked_at),
    'expander': LayerCase(layer(nn.MaskedSoftmaxAttention, mask=masks.ExpanderMask(degree=2))),
    'softmax_low_rank': LayerCase(layer(nn.MaskedSoftmaxAttention, mask=masks.SinDegreeMask(), attention_dropout=0.2)),
    'softmax_toeplitz': LayerCase(layer(nn.MaskedSoftmaxAttention, mask=masks.ToeplitzMask(HEADS, 1) + masks.PackingMask())),
    'rwgnk': LayerCase(layer(nn.RWGNKAttention, feature_map='elu')),
    'rwgnk_exact': LayerCase(layer(nn.RWGNKAttention, feature_map='elu', num_walks=None)),
    'sin_degree': LayerCase(layer(nn.SinDegreeAttention)),
    'toeplitz': LayerCase(layer(nn.ToeplitzAttention, feature_map='elu')),
    'hop': LayerCase(layer(nn.HopAttention)),
    'kmip': LayerCase(layer(nn.KMIPAttention, k=3)),
    'kmip_looked_at': LayerCase(layer(nn.KMIPAttention, k=3, extra_edges='both', expander_degree=2), looked_at),
    'kmip_cosine': LayerCase(layer(nn.KMIPAttention, k=3, similarity='cosine', k_start=6, diversity=0.5)),
    'kmip_distance': LayerCase(layer(nn.KMIPAttention, k=3, similarity='distance', deterministic=True)),
    'gated_gcn': LayerCase(lambda: nn.GatedGCNConv(CHANNELS), convolve),
    'gps': LayerCase(
        lambda: nn.TopoGPSConv(CHANNELS, GCNConv(CHANNELS, CHANNELS), attn=nn.GRFAttention(CHANNELS, HEADS)),
        lambda module, data: module(data.x, data.edge_index, data.batch),
    ),
    'edge_weights': LayerCase(edge_weights, lambda module, data: module(data.x[data.edge_index[0]], data.edge_index)),
    'edge_terms': with_bias(layer(nn.MaskedSoftmaxAttention, mask=masks.HopMask(), edge_dim=CHANNELS)),
    'edge_terms_of_kmip': with_bias(layer(nn.KMIPAttention, k=3, extra_edges='input', edge_dim=CHANNELS)),
    'mask_encoding': LayerCase(lambda: nn.MaskEncoding(masks.HopMask(HEADS), CHANNELS), encode),
    'learned_adjacency': under_weights(masks.AdjacencyMask),
    'learned_power_series': under_weights(masks.PowerSeriesMask),
    'learned_heat': under_weights(partial(masks.HeatKernelMask, kind='random_walk_laplacian')),
    'learned_walks': under_weights(masks.GRFMask),
    'gkat': LayerCase(lambda: models.GKAT(CHANNELS, 4, 3, (2, 1))),
    'gkat_explicit': LayerCase(lambda: models.GKAT(CHANNELS, 4, 3, (2, 1), num_walks=None, explicit=True)),
    'interlacer': LayerCase(interlacer, lambda module, data: module(data.x, data.pos, data.batch)),
    'mgformer': LayerCase(
        lambda: models.MGFormer(8, 8, CHANNELS, svd_dim=0, heads=HEADS),
        lambda module, data: torch.cat(module(data)),
        interactions,
    ),
    'vit': LayerCase(lambda: models.TopologicalViT(8, 4, 1, 3, CHANNELS, 1, HEADS, 16, attention='linear'), classify),
    'vit_softmax': LayerCase(
        lambda: models.TopologicalViT(
            8, 4, 1, 3, CHANNELS, 1, HEADS, 16, lambda depth: masks.GRFMask(HEADS, positive=True), attention='softmax'
        ),
        classify,
    ),
    'vivit': LayerCase(lambda: models.ViViT(8, 4, 2, 1, 1, 3, CHANNELS, 1, 1, HEADS, 16), classify),
}


def test_all_layers_are_here() -> None:
    public = {getattr(module, name) for module in (nn, models) for name in module.__all__ if name != 'attention'}
    assert {kind for kind in public if not inspect.isabstract(kind)} <= {
        type(layer_case.make()) for layer_case in LAYERS.values()
    }


def made(layer_case: LayerCase, device: torch.device) -> tuple[Module, Batch]:
    torch.manual_seed(0)
    module, data = layer_case.make(), layer_case.data()
    if layer_case.call is classify:
        data.x = random(1, 2 * 8 * 8)
    return to(device, module), to(device, data)


@pytest.mark.parametrize('name', LAYERS)
def test_layers(name: str) -> None:
    def run(device: torch.device) -> list[Tensor]:
        module, data = made(LAYERS[name], device)
        data.x.requires_grad_()
        torch.manual_seed(1)
        return with_gradients(LAYERS[name].call(module, data), [data.x, *module.parameters()])

    assert_alike(run)


@pytest.mark.parametrize('name', ['linear', 'grf', 'grf_softmax', 'kmip', 'heat'])
def test_gradients_in_edge_weights_and_after_a_step(name: str) -> None:
    """An optimizer on the device changes the layer as one on the CPU."""
    cases = {**LAYERS, 'heat': LayerCase(layer(nn.MaskedLinearAttention, mask=masks.HeatKernelMask(HEADS), feature_map='elu'))}
    layer_case = cases[name]._replace(data=symmetric)

    def run(device: torch.device) -> list[Tensor]:
        module, data = made(layer_case, device)
        data.edge_weight.requires_grad_()
        optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
        for _ in range(2):
            optimizer.zero_grad()
            layer_case.call(module, data).square().mean().backward()
            optimizer.step()
        grad = data.edge_weight.grad
        return [*module.parameters(), *([] if grad is None else [grad])]

    assert_alike(run)


@pytest.mark.parametrize(
    ('name', 'dtype'),
    covering(
        ['linear', 'grf', 'asymmetric_grf', 'grf_softmax', 'expander', 'sin_degree', 'kmip'], [torch.bfloat16, torch.float16]
    ),
)
def test_autocast(name: str, dtype: torch.dtype) -> None:
    """Against double precision, in which k-MIP attention would choose other keys: it takes them all."""
    layer_case = LAYERS[name] if name != 'kmip' else LayerCase(layer(nn.KMIPAttention, k=12))
    module, data = made(layer_case, DEVICE)
    reference, exact = made(layer_case, CPU)
    exact.x, data.x = exact.x.double(), data.x.requires_grad_()
    expected = layer_case.call(reference.double(), exact)
    with torch.autocast(DEVICE.type, dtype):
        out = layer_case.call(module, data)
    assert out.dtype == dtype
    assert relative_error(out.cpu(), expected) < BOUND * torch.finfo(dtype).eps
    out.float().square().mean().backward()
    assert all(leaf.grad.isfinite().all() for leaf in (data.x, *module.parameters()) if leaf.grad is not None)


@pytest.mark.filterwarnings('ignore:.*:DeprecationWarning', 'ignore:.*:UserWarning:torch')
def test_compile() -> None:
    module, data = made(LAYERS['grf'], DEVICE)
    graph = Graph.from_data(data)
    expected = module(data.x, data.edge_index, graph=graph)  # prepares the graph
    torch._dynamo.reset()
    out = torch.compile(module, fullgraph=True, backend='aot_eager')(data.x, data.edge_index, graph=graph)
    torch.testing.assert_close(out, expected)


def test_batches_are_their_graphs() -> None:
    graphs = [to(DEVICE, data) for data in batch().to_data_list()]
    for name in ('grf', 'kmip', 'grf_softmax'):
        assert_batch_invariant(to(DEVICE, LAYERS[name].make()), graphs)


# Walks, search and transforms -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ('sampler', 'transition'), [*((name, 'uniform') for name in SAMPLERS), ('iid', 'weight'), ('antithetic', 'weight')]
)
def test_walks(sampler: str, transition: str) -> None:
    settings = WalkSettings(4, 0.3, 4, independent_ensembles=True, sampler=sampler, transition=transition)

    def run(device: torch.device) -> list[Tensor]:
        graph = Graph.from_data(to(device, batch()))
        walks = [*sample_ensembles(graph, settings, seed=3), sample_walks(graph, settings, 5, 'torch')]
        return [tensor for features in walks for tensor in (features.start, features.visited, features.length, features.load)]

    assert_alike(run)


@pytest.mark.parametrize('deterministic', [False, True])
@pytest.mark.parametrize('backend', ['auto', 'dense', 'chunked'])
def test_search(backend: str, deterministic: bool) -> None:
    """In a graph that is large enough to be searched in blocks, and a small one."""

    def run(device: torch.device) -> list[Tensor]:
        q, k = (random(seed, 1500, HEADS, 4).to(device) for seed in (1, 2))
        ptr = torch.tensor([0, 1400, 1400, 1500], device=device)
        index, valid = topk_inner_product(q, k, 5, ptr, backend, deterministic, memory=2**20)
        head = torch.arange(HEADS, device=device).view(1, -1, 1)
        return [valid, torch.einsum('nhd,nhkd->nhk', q, k[index, head])]

    assert_alike(run)


def test_equal_scores_have_equal_winners() -> None:
    def run(device: torch.device) -> list[Tensor]:
        q, k = (random(seed, 60, HEADS, 2).round().to(device) for seed in (1, 2))
        return list(topk_inner_product(q, k, 5, deterministic=True))

    assert_alike(run)


@pytest.mark.parametrize('loop', [False, True])
def test_nearest_neighbors(loop: bool) -> None:
    def run(device: torch.device) -> list[Tensor]:
        data = to(device, batch(sizes=(1200, 7, 1)))
        return [knn_graph(data.pos, 4, data.batch, loop=loop)]

    assert_alike(run)


TRANSFORMS: dict[str, BaseTransform] = {
    'AddForest': transforms.AddForest(),
    'AddGraphRandomFeatures': transforms.AddGraphRandomFeatures(independent_ensembles=True),
    'AddGridShape': transforms.AddGridShape((3, 4)),
    'AddNormals': transforms.AddNormals(4, cat=True),
    'AddRandomWalkKernel': transforms.AddRandomWalkKernel(),
    'AddSVDEncoding': transforms.AddSVDEncoding(3),
    'AddSpanningForest': transforms.AddSpanningForest('random', num_trees=3),
    'FarthestSampling': transforms.FarthestSampling(5),
    'KNNGraph': transforms.KNNGraph(3),
    'PrepareMasks': transforms.PrepareMasks(masks.HopMask()),
    'RandomSampling': transforms.RandomSampling(5),
    'ToGridGraph': transforms.ToGridGraph(),
}


def test_all_transforms_are_here() -> None:
    assert set(TRANSFORMS) == set(transforms.__all__)


def transformed(name: str) -> Data | Tensor:
    """What a transform takes."""
    if name == 'ToGridGraph':
        return random(1, 2, 3, 4)
    data = attributed(edges('tree' if name == 'AddForest' else 'random', 12, 3), 12, 3)
    data.edge_weight = random(7, data.num_edges).abs()
    return data


@pytest.mark.parametrize('name', TRANSFORMS)
def test_transforms(name: str) -> None:
    def run(device: torch.device) -> list[Tensor]:
        given = to(device, transformed(name))
        return [value for value in TRANSFORMS[name](given).to_dict().values() if isinstance(value, Tensor)]

    assert_alike(run)


@pytest.mark.parametrize(
    ('name', 'mask'),
    [
        ('AddGraphRandomFeatures', masks.GRFMask()),
        ('AddForest', masks.TreeMask()),
        ('AddSpanningForest', masks.TreeMask()),
        ('PrepareMasks', masks.HopMask()),
    ],
)
def test_masks_of_what_transforms_stored_on_the_cpu(name: str, mask: Mask) -> None:
    def run(device: torch.device) -> list[Tensor]:
        data = to(device, Batch.from_data_list([TRANSFORMS[name](graph) for graph in forest().to_data_list()]))
        return [to(device, mask)(data).to_dense()]

    assert_alike(run)


# Random numbers -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize('device', [CPU, DEVICE], ids=['cpu', 'device'])
def test_generators_of_any_device(device: torch.device) -> None:
    """Two of the same seed draw the same."""

    def draws(seed: int) -> list[Tensor]:
        def generator() -> torch.Generator:
            return torch.Generator(device).manual_seed(seed)

        results = []
        for name, settings in (('kmip', {'random_fraction': 2.0}), ('grf', {})):
            torch.manual_seed(0)
            kind = {'kmip': nn.KMIPAttention, 'grf': nn.GRFAttention}[name]
            module, data = to(DEVICE, kind(CHANNELS, HEADS, **settings)), to(DEVICE, batch())
            results.append(module(data.x, data.edge_index, graph=data, generator=generator()))
        for drawn in (feature_maps.FavorFeatures(4), feature_maps.SimplexFeatures(4), masks.StochasticRPEMask()):
            on_device = to(DEVICE, drawn)
            on_device.redraw(generator())
            results.append(on_device.projection)
        return results

    for first, again, other_seed in zip(draws(1), draws(1), draws(2), strict=True):
        assert first.device.type == DEVICE.type
        assert torch.equal(first, again)
        assert not torch.equal(first, other_seed)
