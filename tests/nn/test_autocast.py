"""Short types in every layer: what rounding the projections costs, and nothing that grows with the graph."""

import copy
import inspect
from collections.abc import Callable

import pytest
import torch
from graphs import ring, star
from grids import covering
from rounding import BOUND, relative_error
from torch import Tensor
from torch.nn import Module
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv

import pyg_topomask.nn
from pyg_topomask import Graph
from pyg_topomask.masks import AdjacencyMask, ExpanderMask, GRFMask, PowerSeriesMask, TreeMask
from pyg_topomask.nn import (
    AsymmetricGRFAttention,
    GatedGCNConv,
    GRFAttention,
    GRFSoftmaxAttention,
    HopAttention,
    KMIPAttention,
    MaskedLinearAttention,
    MaskedSoftmaxAttention,
    RWGNKAttention,
    SinDegreeAttention,
    ToeplitzAttention,
    TopoGPSConv,
)
from pyg_topomask.transforms import AddForest

CHANNELS, HEADS, SMALL, LARGE = 16, 2, 100, 20_000
#: Nodes of a large graph in which k-MIP attention finds them all for each, which takes seconds.
FULL = 1_000
TYPES = [torch.bfloat16, torch.float16]

# Positive features: where ReLU leaves a query next to nothing, rounding decides about the output, in any type.
LAYERS: dict[str, Callable[[], Module]] = {
    'linear': lambda: MaskedLinearAttention(CHANNELS, HEADS, feature_map='elu'),
    'grf_edges': lambda: GRFAttention(CHANNELS, HEADS, route='edges', feature_map='elu'),
    'grf_features': lambda: GRFAttention(CHANNELS, HEADS, route='features', feature_map='elu'),
    'asymmetric_grf': lambda: AsymmetricGRFAttention(CHANNELS, HEADS, feature_map='elu'),
    'grf_softmax': lambda: GRFSoftmaxAttention(CHANNELS, HEADS),
    'expander': lambda: MaskedSoftmaxAttention(CHANNELS, HEADS, ExpanderMask(degree=4)),
    'rwgnk': lambda: RWGNKAttention(CHANNELS, HEADS, feature_map='elu'),
    'hop': lambda: HopAttention(CHANNELS, HEADS, feature_map='elu'),
    'sin_degree': lambda: SinDegreeAttention(CHANNELS, HEADS),
    'toeplitz': lambda: ToeplitzAttention(CHANNELS, HEADS, feature_map='elu'),
    'kmip': lambda: KMIPAttention(CHANNELS, HEADS, k=FULL),
    'gps': lambda: TopoGPSConv(
        CHANNELS, GCNConv(CHANNELS, CHANNELS), attn=GRFAttention(CHANNELS, HEADS, feature_map='elu'), norm='layer_norm'
    ),
    'gated_gcn': lambda: GatedGCNConv(CHANNELS),
}
#: Those that sum along the edges alone, of which the hub of a star has as many as there are nodes.
ALONG_EDGES: dict[str, Callable[[], Module]] = {
    'adjacency_edges': lambda: MaskedLinearAttention(CHANNELS, HEADS, AdjacencyMask(), feature_map='elu', route='edges'),
    'adjacency_features': lambda: MaskedLinearAttention(CHANNELS, HEADS, AdjacencyMask(), feature_map='elu', route='features'),
    'adjacency_softmax': lambda: MaskedSoftmaxAttention(CHANNELS, HEADS, AdjacencyMask()),
    'gated_gcn': LAYERS['gated_gcn'],
}


def two_halves(num_nodes: int) -> Tensor:
    """A sum of 20,000 terms in the short type would stand still at 256 (bfloat16) or 2,048 (float16) of them, and miss the
    second half of the nodes, which has another mean.
    """
    return torch.randn(num_nodes, CHANNELS) + torch.tensor([1.0, -1.0]).repeat_interleave(num_nodes // 2).unsqueeze(1)


def run(layer: Module, x: Tensor, edges: Tensor | None = None) -> Tensor:
    edges = ring(x.size(0)) if edges is None else edges
    if isinstance(layer, GatedGCNConv):
        nodes: Tensor = layer(x, edges, x[edges[0]])[0]
        return nodes
    out: Tensor = layer(x, edges, graph=Graph.from_tensors(edges, x.size(0)))
    return out


def error(layer: Module, x: Tensor, dtype: torch.dtype, edges: Tensor | None = None) -> float:
    r"""Returns the error of autocast."""
    with torch.no_grad():
        expected = run(copy.deepcopy(layer).double(), x.double(), edges)
        with torch.autocast('cpu', dtype):
            return relative_error(run(layer, x, edges), expected)


def test_all_layers_are_here() -> None:
    others = {'attention', 'EdgeWeights', 'MaskEncoding'}
    public = {getattr(pyg_topomask.nn, name) for name in pyg_topomask.nn.__all__ if name not in others}
    assert {layer for layer in public if not inspect.isabstract(layer)} <= {type(make()) for make in LAYERS.values()}


@pytest.mark.parametrize(('name', 'dtype'), covering(LAYERS, TYPES))
def test_error_is_that_of_rounding_a_few_times(name: str, dtype: torch.dtype) -> None:
    """Each rounding is by eps / 2 of what is rounded, and changes the largest output by about as much at most: a weighted mean
    moves with its values, and with its weights no more than the values differ. The bound is the sum of them all.
    """
    assert error(LAYERS[name](), torch.randn(SMALL, CHANNELS), dtype) < BOUND * torch.finfo(dtype).eps


@pytest.mark.parametrize(('name', 'dtype'), covering(LAYERS, TYPES))
def test_error_does_not_grow_with_the_graph(name: str, dtype: torch.dtype) -> None:
    x = two_halves(FULL if name == 'kmip' else LARGE)
    assert error(LAYERS[name](), x, dtype) < BOUND * torch.finfo(dtype).eps


@pytest.mark.parametrize(('name', 'dtype'), covering(ALONG_EDGES, TYPES))
def test_error_does_not_grow_with_the_degree(name: str, dtype: torch.dtype) -> None:
    assert error(ALONG_EDGES[name](), two_halves(LARGE), dtype, star(LARGE - 1)) < BOUND * torch.finfo(dtype).eps


@pytest.mark.parametrize(('name', 'dtype'), covering(LAYERS, TYPES))
def test_gradients_are_finite_under_autocast(name: str, dtype: torch.dtype) -> None:
    layer, x = LAYERS[name](), torch.randn(SMALL, CHANNELS, requires_grad=True)
    with torch.autocast('cpu', dtype):
        out = run(layer, x)
    out.float().square().mean().backward()
    used = [tensor for tensor in (x, *layer.parameters()) if tensor.grad is not None]
    assert len(used) > 2
    assert all(tensor.grad.isfinite().all() for tensor in used)


@pytest.mark.parametrize(('name', 'dtype'), covering(LAYERS, TYPES))
def test_a_backward_pass_within_autocast_is_one_outside(name: str, dtype: torch.dtype) -> None:
    """In a batch of small graphs, where most masks have blocks."""
    layer, edges = LAYERS[name](), torch.cat([ring(9), ring(40) + 9], dim=1)
    x = torch.randn(49, CHANNELS)
    grads = []
    for within in (False, True):
        given = x.clone().requires_grad_()
        with torch.autocast('cpu', dtype):
            if isinstance(layer, GatedGCNConv):
                out = layer(given, edges, x[edges[0]])[0]
            else:
                out = layer(given, edges, graph=Graph(edges, 49, batch=torch.arange(49).ge(9).long()))
            total = out.float().square().mean()
            if within:
                total.backward()
        if not within:
            total.backward()
        grads.append(given.grad)
    assert relative_error(grads[1], grads[0]) < BOUND * torch.finfo(dtype).eps


@pytest.mark.parametrize('dtype', TYPES)
@pytest.mark.parametrize('kind', ['exp', 'distance'])
def test_a_backward_pass_of_trees_within_autocast(kind: str, dtype: torch.dtype) -> None:
    data = AddForest()(Data(edge_index=star(SMALL - 1), num_nodes=SMALL))
    layer = MaskedLinearAttention(CHANNELS, HEADS, TreeMask(HEADS, kind=kind), route='features')
    x = torch.randn(SMALL, CHANNELS, requires_grad=True)
    with torch.autocast('cpu', dtype):
        total = layer(x, graph=data).float().square().mean()
        (within,) = torch.autograd.grad(total, x, retain_graph=True)
    (outside,) = torch.autograd.grad(total, x)
    assert relative_error(within, outside) < BOUND * torch.finfo(dtype).eps


@pytest.mark.parametrize('name', LAYERS)
def test_large_inputs_do_not_overflow_in_float16(name: str) -> None:
    """Products of queries and keys of size 1e3, 8 channels, are about 1e7; the largest number of float16 is 65,504."""
    layer, x = LAYERS[name](), 1e3 * torch.randn(SMALL, CHANNELS)
    with torch.autocast('cpu', torch.float16):
        out = run(layer, x)
    assert out.isfinite().all()
    out.float().mean().backward()
    assert all(parameter.grad.isfinite().all() for parameter in layer.parameters() if parameter.grad is not None)


@pytest.mark.parametrize(('name', 'dtype'), covering(LAYERS, TYPES))
def test_layers_of_a_short_type(name: str, dtype: torch.dtype) -> None:
    layer, x = LAYERS[name](), torch.randn(SMALL, CHANNELS)
    expected = run(copy.deepcopy(layer).double(), x.double())
    short = layer.to(dtype)
    out = run(short, x.to(dtype))
    assert out.dtype == dtype
    assert relative_error(out, expected) < BOUND * torch.finfo(dtype).eps
    out.float().square().mean().backward()
    assert all(parameter.grad.isfinite().all() for parameter in short.parameters() if parameter.grad is not None)


def test_negative_modulations_warn_once_and_name_the_argument() -> None:
    torch.manual_seed(0)
    masks = [
        ('modulation', GRFMask(2, modulation=torch.tensor([1.0, -0.9]), max_walk_length=1)),
        ('coefficients', 2.0 * PowerSeriesMask(2, 1, torch.tensor([1.0, -0.9])).T),
    ]
    for name, mask in masks:
        layer, x = MaskedLinearAttention(8, 2, mask), torch.randn(6, 8)
        layer(x, ring(6))  # not without autocast
        with torch.autocast('cpu', dtype=torch.bfloat16):
            with pytest.warns(UserWarning, match=rf'^{name}: got negative numbers under autocast.*bfloat16.*positive=True'):
                layer(x, ring(6))
            layer(x, ring(6))  # warnings are errors
