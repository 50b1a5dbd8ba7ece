import copy

import numpy as np
import pytest
import torch
from explicit_layers import (
    CHANNELS,
    HEADS,
    LAYERS,
    LINEAR,
    dense_coefficients,
    expected_coefficients,
    expected_output,
    features,
    graph_named,
    positive_digraph,
    projected,
)
from graphs import GRAPH_NAMES, GRAPHS, small_graph, uneven_graphs
from grids import covering
from oracles import (
    as_numpy,
    asymmetric_attention,
    edge_weights,
    explicit_walks,
)
from rounding import BOUND, relative_error
from torch_geometric.data import Batch, Data

from pyg_topomask import Graph
from pyg_topomask.nn import AsymmetricGRFAttention
from pyg_topomask.testing import assert_permutation_equivariant
from pyg_topomask.walks import WalkSettings
from pyg_topomask.walks.features import WalkFeatures
from pyg_topomask.walks.pairs import PairedWalks
from pyg_topomask.walks.steps import Transitions
from pyg_topomask.walks.walk import walk

# The equations --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ('name', 'graph', 'looked_at'),
    covering(LAYERS, ['undirected', 'directed', 'parallel_edges', 'batch', 'no_edges'], [False, True]),
)
def test_output_and_coefficients_are_those_of_the_equations(name: str, graph: str, looked_at: bool) -> None:
    data, layer = graph_named(graph), LAYERS[name]().double()
    x = features(data).double()
    inner, coefficients = expected_coefficients(layer, x, data)
    expected = layer.lin_out(torch.from_numpy(inner).flatten(1))
    arguments = (x, data.edge_index, data.get('edge_weight'), data.get('batch'))
    if not looked_at:
        torch.testing.assert_close(layer(*arguments), expected, rtol=1e-9, atol=1e-9)
        return
    out, (pairs, alpha) = layer(*arguments, return_attention_weights=True)
    torch.testing.assert_close(out, expected, rtol=1e-9, atol=1e-9)
    actual = dense_coefficients(pairs, alpha, data.num_nodes)
    np.testing.assert_allclose(actual, coefficients, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ('name', 'graph'), covering(LAYERS, ['undirected', 'weighted', 'negative_weights', 'parallel_edges', 'batch', 'no_edges'])
)
def test_output_is_that_of_the_equations_of_mask_and_feature_map_too(name: str, graph: str) -> None:
    """Up to the single precision of edge weights and walks."""
    data, layer = graph_named(graph), LAYERS[name]().double()
    x = features(data).double()
    out = layer(x, data.edge_index, data.get('edge_weight'), data.get('batch'))
    torch.testing.assert_close(out, expected_output(name, layer, x, data), rtol=1e-5, atol=1e-6)


ALGORITHM_GRAPHS = ['undirected', 'directed', 'weighted', 'negative_weights', 'parallel_edges', 'batch', 'no_edges']


@pytest.mark.filterwarnings('ignore:The spectral radius')
@pytest.mark.parametrize(
    ('graph', 'normalization', 'looked_at'), covering(ALGORITHM_GRAPHS, ['sym', None], [False, True], strength=2)
)
def test_algorithm_2(graph: str, normalization: str | None, looked_at: bool) -> None:
    """Every node on its own, from the walks that a table of random numbers gives to both."""
    data, walks_per_node, hops = GRAPHS[graph](), 3, 3
    edges, weight, num_nodes, _ = as_numpy(data)
    table = torch.rand(hops + 1, num_nodes * walks_per_node, dtype=torch.float64)
    survival = 0.6 ** np.arange(hops + 1)
    taken = explicit_walks(edges, num_nodes, walks_per_node, survival, lambda step, walker: float(table[step, walker]), weight)

    layer = AsymmetricGRFAttention(
        CHANNELS,
        HEADS,
        num_walks=walks_per_node,
        p_halt=0.4,
        max_walk_length=hops,
        feature_map='elu',
        normalization=normalization,
    )
    layer = layer.double()
    with torch.no_grad():
        layer.mask.modulation.copy_(torch.randn(HEADS, hops + 1))
    built_graph = Graph.from_data(data)
    settings = WalkSettings(walks_per_node, 0.4, hops, normalization=normalization)
    transitions = Transitions.of(built_graph, normalization)
    uniform = lambda step, walkers: table[step].index_select(0, walkers.long())  # noqa: E731
    visits = walk(transitions, settings, uniform, range(num_nodes))
    state = WalkFeatures.from_visits(*visits, num_nodes, hops)
    layer.mask.prepare = lambda graph, generator=None: PairedWalks(state, state)

    x = features(data).double()
    q, k, v = projected(layer, x)
    q, k = layer.feature_map(q, k)
    factors, f = edge_weights(edges, weight, num_nodes, normalization), layer.mask.f.detach().numpy()
    heads = [
        asymmetric_attention(q[:, h].numpy(), k[:, h].numpy(), v[:, h].numpy(), edges, factors, taken, survival, f[h])
        for h in range(HEADS)
    ]
    expected = layer.lin_out(torch.from_numpy(np.concatenate(heads, axis=1)))
    out = layer(x, built_graph.edge_index, graph=built_graph, return_attention_weights=looked_at)
    torch.testing.assert_close(out[0] if looked_at else out, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(('name', 'graph'), covering(LAYERS, GRAPH_NAMES))
def test_every_graph_gives_finite_outputs_and_gradients_on_both_paths(name: str, graph: str) -> None:
    data, layer = graph_named(graph), LAYERS[name]()
    built_graph, x = Graph.from_data(data), features(data).requires_grad_()
    out = layer(x, built_graph.edge_index, built_graph.edge_weight, built_graph.batch)
    shown, (pairs, alpha) = layer(
        x, built_graph.edge_index, built_graph.edge_weight, built_graph.batch, return_attention_weights=True
    )
    assert out.shape == (built_graph.num_nodes, CHANNELS)
    assert alpha.shape == (pairs.size(1), HEADS)
    assert pairs.dtype == torch.long
    torch.testing.assert_close(shown, out, rtol=1e-4, atol=1e-5)
    for result in (out, shown):
        assert result.isfinite().all()
        layer.zero_grad()
        (gradient,) = torch.autograd.grad(result.square().sum(), x)
        assert gradient.isfinite().all()


@pytest.mark.parametrize('name', LAYERS)
def test_gradients_reach_every_parameter_alike_on_both_paths(name: str) -> None:
    data, layer = graph_named('weighted'), LAYERS[name]()
    parameters = dict(layer.named_parameters())
    gradients = []
    for shown in (None, True):
        out = layer(features(data), data.edge_index, data.edge_weight, return_attention_weights=shown)
        out = out[0] if shown else out
        gradients.append(torch.autograd.grad(out.square().sum(), list(parameters.values())))
    for parameter, first, second in zip(parameters, *gradients, strict=True):
        assert first.any(), parameter
        torch.testing.assert_close(first, second, rtol=1e-3, atol=1e-4, msg=parameter)


@pytest.mark.parametrize('name', LINEAR)
def test_rows_without_weight_give_zero_coefficients_on_both_paths(name: str) -> None:
    settings = {'feature_map': 'relu'} if name == 'asymmetric' else {}
    data, layer = small_graph(), LAYERS[name](positive=False, **settings).double()
    with torch.no_grad():
        layer.mask.modulation.zero_()
    x = features(data).double().requires_grad_()
    out, (_, alpha) = layer(x, data.edge_index, return_attention_weights=True)
    assert not alpha.any()
    torch.testing.assert_close(out, layer.lin_out.bias.expand_as(out))
    torch.testing.assert_close(layer(x, data.edge_index), out)
    out.sum().backward()
    assert not x.grad.any()


# Symmetries -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize('name', ['softmax', 'softmax_shared', 'softmax_no_loop', 'softmax_transposed'])
def test_permutation_equivariance(name: str) -> None:
    data, layer = positive_digraph(), LAYERS[name]().double()
    assert_permutation_equivariant(layer, features(data).double(), data.edge_index, data.edge_weight, 1e-8)


@pytest.mark.parametrize('name', ['grf_softmax', 'grf_softmax_asymmetric', 'asymmetric', 'asymmetric_favor'])
def test_permutation_equivariance_where_there_is_but_one_walk(name: str) -> None:
    nodes = torch.arange(7)
    edge_index = torch.stack([nodes, (nodes + 2) % 7])
    layer = LAYERS[name](p_halt=0.0).double()
    assert_permutation_equivariant(layer, torch.randn(7, CHANNELS).double(), edge_index, torch.rand(7).double() + 0.1, 1e-6)


def with_features(graphs: list[Data]) -> list[Data]:
    for seed, data in enumerate(graphs):
        data.x = torch.randn(data.num_nodes, CHANNELS, generator=torch.Generator().manual_seed(seed)).double()
    return graphs


def test_coefficients_of_a_batch_are_those_of_its_graphs() -> None:
    graphs = with_features(uneven_graphs())
    batch = Batch.from_data_list(graphs)
    for name in LAYERS:
        layer = LAYERS[name]().double()
        _, (pairs, alpha) = layer(batch.x, batch.edge_index, graph=batch, return_attention_weights=True)
        assert torch.equal(batch.batch[pairs[0]], batch.batch[pairs[1]])
        whole = torch.from_numpy(dense_coefficients(pairs, alpha, 40))
        blocks = []
        for data in graphs:
            _, attention_weights = layer(data.x, data.edge_index, graph=data, return_attention_weights=True)
            blocks.append(torch.from_numpy(dense_coefficients(*attention_weights, data.num_nodes)))
        for head in range(HEADS):
            torch.testing.assert_close(whole[head], torch.block_diag(*(block[head] for block in blocks)), rtol=1e-5, atol=1e-6)


# Arguments of the forward pass ----------------------------------------------------------------------------------------


@pytest.mark.parametrize('name', ['grf_softmax', 'grf_softmax_asymmetric', 'asymmetric'])
def test_generators_and_resampling_draw_the_walks(name: str) -> None:
    data, layer = small_graph(), LAYERS[name](num_walks=2)
    x = features(data)
    first, again, other_seed = (layer(x, data.edge_index, generator=torch.Generator().manual_seed(seed)) for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other_seed)
    fresh = LAYERS[name](num_walks=2, resample='forward')
    assert not torch.equal(fresh(x, data.edge_index), fresh(x, data.edge_index))
    fresh.eval()
    assert torch.equal(fresh(x, data.edge_index), fresh(x, data.edge_index))


# Data types -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(('name', 'dtype', 'looked_at'), covering(LAYERS, [torch.bfloat16, torch.float16], [False, True]))
def test_autocast_and_half_precision(name: str, dtype: torch.dtype, looked_at: bool) -> None:
    data, layer = small_graph(), LAYERS[name]()
    x = features(data)
    expected = copy.deepcopy(layer).double()(x.double(), data.edge_index)
    half = copy.deepcopy(layer).to(dtype)
    for run, given, autocast in ((layer, x, True), (half, x.to(dtype), False)):
        with torch.autocast('cpu', dtype, enabled=autocast):
            out = run(given, data.edge_index, return_attention_weights=looked_at)
        if looked_at:
            out, (_, alpha) = out
            assert alpha.dtype == torch.float32
        assert out.dtype == dtype
        assert relative_error(out, expected) < BOUND * torch.finfo(dtype).eps
        out.float().sum().backward()
        assert all(parameter.grad.isfinite().all() for parameter in run.parameters())
