"""torch.compile on every layer and model: what eager computes, with the combine step as one operator of the graph."""

import importlib
import inspect
import shutil
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from unittest import mock

import pytest
import torch
from graphs import no_edges, path, ring, undirected
from grids import by_day
from torch import Tensor
from torch._dynamo.testing import CompileCounterWithBackend
from torch.nn import Module
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch_geometric.data import Batch, Data
from torch_geometric.nn import GCNConv

import pyg_topomask.nn
import pyg_topomask.nn.models
from pyg_topomask import Graph
from pyg_topomask.masks import (
    AdjacencyMask,
    BigBirdMask,
    CausalMask,
    ExpanderMask,
    GRFMask,
    HeatKernelMask,
    HopMask,
    PackingMask,
    PowerSeriesMask,
    SinDegreeMask,
    ToeplitzMask,
    TreeMask,
)
from pyg_topomask.nn import (
    AsymmetricGRFAttention,
    EdgeWeights,
    GatedGCNConv,
    GRFAttention,
    GRFSoftmaxAttention,
    HopAttention,
    KMIPAttention,
    MaskedLinearAttention,
    MaskedSoftmaxAttention,
    MaskEncoding,
    RWGNKAttention,
    SinDegreeAttention,
    ToeplitzAttention,
    TopoGPSConv,
)
from pyg_topomask.nn.models import GKAT, Interlacer, MGFormer, TopologicalViT, ViViT
from pyg_topomask.operators import description

CHANNELS, HEADS = 8, 2
CHOICE = importlib.import_module('pyg_topomask.ops.routes.choice')
ROUTE_FILES = ('blocks', 'edges', 'features', 'low_rank')
COMBINE = ('masked_linear_attention.py', 'softmax_attention.py', *(f'routes/{name}.py' for name in ROUTE_FILES))

pytestmark = [
    pytest.mark.filterwarnings('ignore:.*:DeprecationWarning'),
    pytest.mark.filterwarnings('ignore:.*:UserWarning:torch'),
]


def interactions(num_nodes: int) -> Tensor:
    """Of the users 0 to 2, all in the first graph of a batch, where the items 3 and 4 are."""
    return undirected([(0, 3), (1, 4), (2, 3)]) if num_nodes == 5 else no_edges()


def on_graph(layer: Module, x: Tensor, graph: Graph) -> Tensor:
    out: Tensor = layer(x, graph.edge_index, batch=graph.batch, graph=graph)
    return out


def on_edges(layer: Module, x: Tensor, graph: Graph) -> Tensor:
    out: Tensor = layer(x, graph.edge_index, batch=graph.batch)
    return out


def gated(layer: Module, x: Tensor, graph: Graph) -> Tensor:
    nodes, edges = layer(x, graph.edge_index, x[graph.edge_index[0].long()])
    return torch.cat([nodes, edges])


def weigh(layer: Module, x: Tensor, graph: Graph) -> Tensor:
    weights: Tensor = layer(x[graph.edge_index[0].long()], graph.edge_index)
    return weights


def encode(layer: Module, x: Tensor, graph: Graph) -> Tensor:
    pairs, features = layer(graph)
    return features * x[pairs[0]]


def under_weights(layer: Module, x: Tensor, graph: Graph) -> Tensor:
    out: Tensor = layer(x, graph.edge_index, graph=graph, edge_attr=x[graph.edge_index[0].long()])
    return out


def recommend(model: Module, x: Tensor, graph: Graph) -> Tensor:
    return torch.cat(model(graph))


class Case(NamedTuple):
    make: Callable[[], Module]
    call: Callable[[Module, Tensor, Graph], Tensor] = on_graph
    edges: Callable[[int], Tensor] = ring


def linear(*mask: Any, **options: Any) -> Module:
    return MaskedLinearAttention(CHANNELS, HEADS, *mask, **options)


#: One graph, from the projections to the output, on a Graph that is prepared.
WHOLE = {
    'linear': Case(linear),
    'linear_favor': Case(lambda: linear(feature_map='favor')),
    'linear_derf': Case(lambda: linear(feature_map='derf')),
    'adjacency': Case(lambda: linear(AdjacencyMask(HEADS))),
    'power_series': Case(lambda: linear(PowerSeriesMask(HEADS))),
    'blocks': Case(lambda: linear(PowerSeriesMask(HEADS), route='blocks')),
    'bigbird': Case(lambda: MaskedSoftmaxAttention(CHANNELS, HEADS, BigBirdMask(window=1, ends=1, degree=2))),
    'causal': Case(lambda: linear(CausalMask(HEADS))),
    'tree': Case(lambda: linear(TreeMask(HEADS)), edges=path),
    'sum': Case(lambda: linear(0.5 * AdjacencyMask(HEADS) + PackingMask())),
    'hadamard': Case(lambda: linear(AdjacencyMask(HEADS) * SinDegreeMask(HEADS))),
    'transposed': Case(lambda: linear(GRFMask(HEADS, asymmetric=True).T)),
    'grf_edges': Case(lambda: GRFAttention(CHANNELS, HEADS, route='edges')),
    'grf_features': Case(lambda: GRFAttention(CHANNELS, HEADS, route='features')),
    'asymmetric_grf': Case(lambda: AsymmetricGRFAttention(CHANNELS, HEADS)),
    'grf_softmax': Case(lambda: GRFSoftmaxAttention(CHANNELS, HEADS)),
    'expander': Case(lambda: MaskedSoftmaxAttention(CHANNELS, HEADS, ExpanderMask(degree=2))),
    'rwgnk': Case(lambda: RWGNKAttention(CHANNELS, HEADS)),
    'hop': Case(lambda: HopAttention(CHANNELS, HEADS)),
    'sin_degree': Case(lambda: SinDegreeAttention(CHANNELS, HEADS)),
    'kmip': Case(lambda: KMIPAttention(CHANNELS, HEADS, k=3)),
    'gated_gcn': Case(lambda: GatedGCNConv(CHANNELS), gated),
    'edge_weights': Case(lambda: EdgeWeights(CHANNELS), weigh),
    'mask_encoding': Case(lambda: MaskEncoding(HopMask(HEADS), CHANNELS), encode),
    'gps': Case(lambda: TopoGPSConv(CHANNELS, GCNConv(CHANNELS, CHANNELS), attn=GRFAttention(CHANNELS, HEADS))),
    'gkat': Case(lambda: GKAT(CHANNELS, 4, 2, heads=(2, 1))),
}

#: What depends on numbers, as the number of terms of a series, the size of a Fourier transform or walks drawn anew, breaks
#: the graph before the combine step.
IN_PARTS = {
    'heat_kernel': Case(lambda: linear(HeatKernelMask(HEADS))),
    'toeplitz': Case(lambda: ToeplitzAttention(CHANNELS, HEADS)),
    'toeplitz_transposed': Case(lambda: linear(ToeplitzMask(HEADS, 1, window=3, initial=torch.arange(7.0), periodic=True).T)),
    'tree_distances': Case(lambda: linear(TreeMask(HEADS, 'distance', max_distance=5, method='fft')), edges=path),
    'learned_weights': Case(
        lambda: TopoGPSConv(CHANNELS, None, attn=linear(AdjacencyMask(HEADS)), edge_weights=EdgeWeights(CHANNELS)),
        under_weights,
    ),
    'edge_features': Case(
        lambda: TopoGPSConv(CHANNELS, None, attn=KMIPAttention(CHANNELS, HEADS, k=3, edge_dim=CHANNELS)), under_weights
    ),
    'resampled': Case(lambda: GRFAttention(CHANNELS, HEADS, resample='forward')),
    'kmip_sampled': Case(lambda: KMIPAttention(CHANNELS, HEADS, k=3, random_fraction=0.5)),
    'interlacer': Case(lambda: Interlacer(CHANNELS, 4, CHANNELS), lambda model, x, graph: model(x, x, graph.batch)),
    'mgformer': Case(lambda: MGFormer(3, 9, CHANNELS, svd_dim=0, heads=HEADS), recommend, interactions),
    'vit': Case(
        lambda: TopologicalViT(8, 4, 1, 2, CHANNELS, 1, HEADS, 16, attention='linear', dense_limit=1),
        lambda model, x, graph: model(x[:8].view(1, 1, 8, 8)),
    ),
    'vivit': Case(
        lambda: ViViT(8, 4, 2, 1, 1, 2, CHANNELS, 1, 1, HEADS, 16),
        lambda model, x, graph: model(x[:8].view(1, 1, 1, 8, 8).repeat(1, 2, 1, 1, 1)),
    ),
}


#: How many graphs torch 2.13 makes of a layer of these on a prepared Graph, as docs/limits.md says. Others are one.
PARTS = {'heat_kernel': 10, 'kmip_sampled': 11, 'toeplitz': 5}

#: One of each kind. The others differ from one of these in their mask alone, and run at night.
OF_EACH_KIND = ['tree', 'hadamard', 'grf_softmax', 'rwgnk', 'kmip', 'gps']
OF_EACH_KIND_IN_PARTS = ['heat_kernel', 'resampled', 'mgformer']


def batch(case: Case, sizes: Sequence[int] = (5, 7)) -> tuple[Tensor, Graph]:
    data = [Data(edge_index=case.edges(n), num_nodes=n, grid_shape=torch.tensor([[n]])) for n in sizes]
    return torch.randn(sum(sizes), CHANNELS), Graph.from_data(Batch.from_data_list(data))


def outputs(function: Callable[..., Tensor], layer: Module, x: Tensor, graph: Graph) -> list[Tensor]:
    r"""Returns output and gradients."""
    leaf = x.clone().requires_grad_()
    out = function(layer, leaf, graph)
    grads = torch.autograd.grad(out.square().sum(), [leaf, *layer.parameters()], allow_unused=True)
    return [out, *(grad for grad in grads if grad is not None)]


def assert_equal(compiled: Callable[..., Tensor], case: Case, layer: Module, x: Tensor, graph: Graph) -> None:
    actual = outputs(compiled, layer, x, graph)
    with mock.patch.object(CHOICE, '_OUTER', -(2**40)):  # no blocks, which are not chosen in what is compiled
        expected = outputs(case.call, layer, x, graph)
    assert len(actual) == len(expected) > 1
    for compiled_tensor, eager_tensor in zip(actual, expected, strict=True):
        torch.testing.assert_close(compiled_tensor, eager_tensor)


@pytest.fixture(autouse=True)
def _forget() -> None:
    torch._dynamo.reset()


def test_all_layers_and_models_are_here() -> None:
    listed = {type(case.make()) for case in (WHOLE | IN_PARTS).values()}
    for module in (pyg_topomask.nn, pyg_topomask.nn.models):
        public = {getattr(module, name) for name in module.__all__ if name != 'attention'}
        assert {thing for thing in public if not inspect.isabstract(thing)} <= listed


@pytest.mark.parametrize('name', by_day(WHOLE, OF_EACH_KIND))
def test_one_graph_and_equal_to_eager(name: str) -> None:
    case = WHOLE[name]
    layer, (x, graph) = case.make(), batch(case)
    case.call(layer, x, graph)  # prepares the graph; what else it leaves behind must not help what is compiled
    description._parsed.cache_clear()
    compiled = torch.compile(case.call, fullgraph=True, backend='aot_eager')
    assert_equal(compiled, case, layer, x, graph)


@pytest.mark.parametrize(
    'name',
    by_day(['linear', 'grf_edges', 'grf_features', 'grf_softmax', 'tree', 'hadamard', 'gps'], ['hadamard']),
)
def test_batches_of_other_sizes_compile_once_more(name: str) -> None:
    case, counter = WHOLE[name], CompileCounterWithBackend('aot_eager')
    layer = case.make()
    compiled = torch.compile(case.call, fullgraph=True, backend=counter)
    for sizes in ((5, 7), (11, 3, 6), (6, 8)):
        x, graph = batch(case, sizes)
        case.call(layer, x, graph)
        assert_equal(compiled, case, layer, x, graph)
    assert counter.frame_count <= 2


@pytest.mark.parametrize(
    'name',
    by_day(['adjacency', 'grf_features', 'hop', 'heat_kernel', 'kmip', 'resampled'], ['heat_kernel', 'resampled']),
)
def test_a_new_graph_breaks_once(name: str) -> None:
    case, counter = (WHOLE | IN_PARTS)[name], CompileCounterWithBackend('aot_eager')
    layer = case.make().eval()
    compiled = torch.compile(on_edges, backend=counter)
    for sizes in ((5, 7), (11, 3, 6), (6, 8)):
        x, graph = batch(case, sizes)
        assert_equal(compiled, case._replace(call=on_edges), layer, x, graph)
    assert counter.frame_count <= 4  # before and after the break, and once more with dynamic sizes


@pytest.mark.parametrize('name', by_day(IN_PARTS, OF_EACH_KIND_IN_PARTS))
def test_equal_to_eager_in_parts(name: str) -> None:
    case = IN_PARTS[name]
    layer, (x, graph) = case.make().eval(), batch(case)
    if name in ('resampled', 'interlacer'):
        torch.manual_seed(1)
        expected = case.call(layer, x, graph)
        torch.manual_seed(1)
        torch.testing.assert_close(torch.compile(case.call, backend='aot_eager')(layer, x, graph), expected)
    else:
        assert_equal(torch.compile(case.call, backend='aot_eager'), case, layer, x, graph)


@pytest.mark.parametrize(
    'name',
    by_day(
        [
            'adjacency',
            'grf_edges',
            'grf_features',
            'grf_softmax',
            'kmip',
            'rwgnk',
            *PARTS,
            'toeplitz_transposed',
            'tree_distances',
        ],
        ['grf_edges', 'heat_kernel'],
    ),
)
def test_the_combine_step_is_one_operator_in_what_is_compiled(name: str) -> None:
    case = (WHOLE | IN_PARTS)[name]
    layer, (x, graph) = case.make(), batch(case)
    case.call(layer, x, graph)  # on a new graph, it runs eagerly
    explanation = torch._dynamo.explain(case.call)(layer, x, graph)
    operators = [str(node.target) for module in explanation.graphs for node in module.graph.nodes if node.op == 'call_function']
    assert sum(target.startswith('pyg_topomask.attend_') for target in operators) == 1
    assert explanation.graph_count <= PARTS.get(name, 1)
    assert not [reason for reason in explanation.break_reasons if reason.user_stack[-1].filename.endswith(COMBINE)]


class Operators(TorchDispatchMode):
    """Records what the operators of the package return."""

    def __init__(self) -> None:
        super().__init__()
        self.returned: list[Tensor] = []

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        if function.namespace == 'pyg_topomask':
            self.returned += [each for each in tree_leaves(result) if isinstance(each, Tensor)]
        return result


@pytest.mark.parametrize(
    'make',
    [
        lambda: linear(SinDegreeMask(HEADS), route='features'),
        lambda: linear(PowerSeriesMask(HEADS) * SinDegreeMask(HEADS), route='features'),
        lambda: GRFSoftmaxAttention(CHANNELS, HEADS),
        lambda: MaskedSoftmaxAttention(CHANNELS, HEADS, PowerSeriesMask(HEADS)),
    ],
)
def test_operators_return_what_compiled_code_expects(make: Callable[[], Module]) -> None:
    x, graph = batch(Case(make))
    with Operators() as operators:
        outputs(on_graph, make(), x, graph)
    assert len(operators.returned) > 5
    assert all(each.is_contiguous() for each in operators.returned)


@pytest.mark.skipif(shutil.which('g++') is None, reason='the compiler of torch.compile needs g++')
def test_numbers_of_a_graph_are_not_those_of_an_earlier_one() -> None:
    """With the default compiler, which treats numbers that are read off tensors otherwise than the others do.

    Sizes are dynamic from the first graph on: all is compiled once.
    """
    layer = linear(HeatKernelMask(HEADS))
    compiled = torch.compile(on_graph, dynamic=True)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for size in (40, 12, 15):
            ends = torch.randint(size, (2, 3 * size), generator=generator)
            edge_index, x = torch.cat([ends, ends.flip(0)], dim=1), torch.randn(size, CHANNELS, generator=generator)
            first, second = (Graph.from_tensors(edge_index, size) for _ in range(2))
            torch.testing.assert_close(compiled(layer, x, first), on_graph(layer, x, second))
