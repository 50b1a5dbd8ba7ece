import copy
from collections.abc import Callable

import numpy as np
import pytest
import torch
from graphs import GRAPHS, ring, small_digraph, small_graph, trailing_empty_graphs, uneven_graphs
from oracles import (
    as_numpy,
    asymmetric_attention,
    edge_weights,
    explicit_walks,
    masked_attention,
    softmax_attention,
    weight_matrix,
)
from torch import Tensor
from torch_geometric.data import Batch, Data
from torch_geometric.explain import AttentionExplainer, Explainer
from torch_geometric.nn import GATConv, GCNConv, Sequential

from pyg_topomask import Graph
from pyg_topomask.masks import AdjacencyMask, GRFMask, Mask, PackingMask, PowerSeriesMask
from pyg_topomask.masks.grf import GRFState
from pyg_topomask.nn import AsymmetricGRFAttention, GRFSoftmaxAttention, MaskedSoftmaxAttention, TopoGPSConv
from pyg_topomask.nn.explicit_attention import ExplicitAttention
from pyg_topomask.operators import MaskOperator
from pyg_topomask.testing import assert_batch_invariant, assert_permutation_equivariant
from pyg_topomask.walks import WalkFeatures, WalkSettings
from pyg_topomask.walks.walk import walk

CHANNELS, HEADS = 8, 2


def softmax(mask: Mask, **settings: object) -> MaskedSoftmaxAttention:
    return MaskedSoftmaxAttention(CHANNELS, HEADS, mask, **settings)


LAYERS: dict[str, Callable[..., ExplicitAttention]] = {
    'softmax': lambda **settings: softmax(AdjacencyMask(HEADS, normalization='sym'), **settings),
    'softmax_shared': lambda **settings: softmax(AdjacencyMask(), **settings),
    'softmax_no_loop': lambda **settings: softmax(AdjacencyMask(HEADS, None), **settings),
    'softmax_transposed': lambda **settings: softmax(AdjacencyMask(HEADS, None).T, **settings),
    'softmax_hadamard': lambda **settings: softmax(GRFMask(HEADS, positive=True) * PackingMask(), **settings),
    'grf_softmax': lambda **settings: GRFSoftmaxAttention(CHANNELS, HEADS, **settings),
    'grf_softmax_asymmetric': lambda **settings: GRFSoftmaxAttention(CHANNELS, HEADS, asymmetric=True, **settings),
    'asymmetric': lambda **settings: AsymmetricGRFAttention(CHANNELS, HEADS, **{'feature_map': 'elu'} | settings),
    'asymmetric_relu': lambda **settings: AsymmetricGRFAttention(CHANNELS, HEADS, **settings),
    'asymmetric_favor': lambda **settings: AsymmetricGRFAttention(CHANNELS, HEADS, feature_map='favor', **settings),
}
LINEAR = ['asymmetric', 'asymmetric_relu', 'asymmetric_favor']


def features(data: Data, channels: int = CHANNELS) -> Tensor:
    return torch.randn(data.num_nodes or 0, channels, generator=torch.Generator().manual_seed(3))


def graph_named(name: str) -> Data:
    """Masks of softmax attention are positive where the edge weights are."""
    data = GRAPHS[name]()
    if 'edge_weight' in data:
        data.edge_weight = data.edge_weight.abs().float()
    return data


def positive_digraph() -> Data:
    data = small_digraph()
    data.edge_weight = data.edge_weight.abs()
    return data


def projected(layer: ExplicitAttention, x: Tensor) -> tuple[Tensor, ...]:
    lins = (layer.lin_q, layer.lin_k, layer.lin_v)
    return tuple(lin(x).view(-1, layer.heads, layer.out_channels // layer.heads).detach() for lin in lins)


def expected_coefficients(layer: ExplicitAttention, x: Tensor, data: Data) -> tuple[np.ndarray, np.ndarray]:
    """Output before the last projection, and coefficients [H, N, N], from the equations and the dense mask."""
    q, k, v = projected(layer, x)
    matrix = layer.mask(data).to_dense().detach().double().numpy()
    if isinstance(layer, MaskedSoftmaxAttention):
        return softmax_attention(q.numpy(), k.numpy(), v.numpy(), matrix)
    q, k = (tensor.numpy() for tensor in layer.feature_map(q, k, data.get('batch'), Graph.from_data(data).num_graphs))
    share = np.einsum('nhm,khm->hnk', q, k) * matrix
    total = share.sum(-1, keepdims=True)
    coefficients = np.divide(share, total, out=np.zeros_like(share), where=total != 0)
    return masked_attention(q, k, v.numpy(), matrix), coefficients


def dense_coefficients(pairs: Tensor, alpha: Tensor, num_nodes: int) -> np.ndarray:
    """Coefficients of (source, target) pairs as [H, target, source]."""
    matrix = np.zeros((alpha.size(1), num_nodes, num_nodes))
    assert len(set(zip(*pairs.tolist(), strict=True))) == pairs.size(1)
    matrix[:, pairs[1].numpy(), pairs[0].numpy()] = alpha.detach().numpy().T
    return matrix


# The equations --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize('looked_at', [False, True])
@pytest.mark.parametrize('graph', ['undirected', 'directed', 'parallel_edges', 'batch', 'no_edges'])
@pytest.mark.parametrize('name', LAYERS)
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
    found = dense_coefficients(pairs, alpha, data.num_nodes)
    np.testing.assert_allclose(found, coefficients, rtol=1e-9, atol=1e-9)


def test_softmax_over_the_neighbours() -> None:
    """The mask, too, from its equation."""
    data, layer = positive_digraph(), LAYERS['softmax']().double()
    x = features(data).double()
    q, k, v = (tensor.numpy() for tensor in projected(layer, x))
    inner, _ = softmax_attention(q, k, v, (weight_matrix(data, 'sym') + np.eye(6))[None])
    expected = layer.lin_out(torch.from_numpy(inner).flatten(1))
    torch.testing.assert_close(layer(x, data.edge_index, data.edge_weight), expected, rtol=1e-6, atol=1e-6)


ALGORITHM_GRAPHS = ['undirected', 'directed', 'weighted', 'negative_weights', 'parallel_edges', 'batch', 'no_edges']


@pytest.mark.parametrize('looked_at', [False, True])
@pytest.mark.parametrize('normalization', ['sym', None])
@pytest.mark.parametrize('graph', ALGORITHM_GRAPHS)
def test_algorithm_2(graph: str, normalization: str | None, looked_at: bool) -> None:
    """Every node on its own, from the walks that a table of random numbers gives to both."""
    data, walks_per_node, hops = GRAPHS[graph](), 3, 3
    edges, weight, num_nodes, _ = as_numpy(data)
    table = torch.rand(hops + 1, num_nodes * walks_per_node, dtype=torch.float64)
    survival = 0.6 ** np.arange(hops + 1)
    taken = explicit_walks(edges, num_nodes, walks_per_node, survival, lambda step, walker: float(table[step, walker]))

    layer = AsymmetricGRFAttention(CHANNELS, HEADS, walks_per_node, 0.4, hops, feature_map='elu', normalization=normalization)
    layer = layer.double()
    with torch.no_grad():
        layer.mask.modulation.copy_(torch.rand(HEADS, hops + 1) + 0.1)
    own = Graph.from_data(data)
    settings = WalkSettings(walks_per_node, 0.4, hops, normalization=normalization)
    visits = walk(own, settings, lambda step, walkers: table[step].index_select(0, walkers.long()))
    state = WalkFeatures.from_visits(*visits, num_nodes, hops)
    layer.mask.prepare = lambda graph, generator=None: GRFState(state, state)

    x = features(data).double()
    q, k, v = projected(layer, x)
    q, k = layer.feature_map(q, k)
    factors, f = edge_weights(edges, weight, num_nodes, normalization), layer.mask.modulation.detach().numpy()
    heads = [
        asymmetric_attention(q[:, h].numpy(), k[:, h].numpy(), v[:, h].numpy(), edges, factors, taken, survival, f[h])
        for h in range(HEADS)
    ]
    expected = layer.lin_out(torch.from_numpy(np.concatenate(heads, axis=1)))
    out = layer(x, own.edge_index, graph=own, return_attention_weights=looked_at)
    torch.testing.assert_close(out[0] if looked_at else out, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize('graph', GRAPHS)
@pytest.mark.parametrize('name', LAYERS)
def test_every_graph_gives_finite_outputs_and_gradients_on_both_paths(name: str, graph: str) -> None:
    data, layer = graph_named(graph), LAYERS[name]()
    own, x = Graph.from_data(data), features(data).requires_grad_()
    out = layer(x, own.edge_index, own.edge_weight, own.batch)
    shown, (pairs, alpha) = layer(x, own.edge_index, own.edge_weight, own.batch, return_attention_weights=True)
    assert out.shape == (own.num_nodes, CHANNELS)
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


@pytest.mark.parametrize('graph', ['directed', 'batch', 'disconnected', 'parallel_edges'])
@pytest.mark.parametrize('name', LAYERS)
def test_coefficients_sum_to_one_and_reproduce_the_output(name: str, graph: str) -> None:
    data, layer = graph_named(graph), LAYERS[name]().double()
    x, arguments = features(data).double(), (data.edge_index, data.get('edge_weight'), data.get('batch'))
    out, (pairs, alpha) = layer(x, *arguments, return_attention_weights=True)
    v = projected(layer, x)[2]
    total = torch.zeros(data.num_nodes, HEADS, dtype=torch.float64).index_add(0, pairs[1], alpha)
    seen = torch.zeros(data.num_nodes, HEADS).index_add(0, pairs[1], (alpha != 0).float()) > 0
    torch.testing.assert_close(total, seen.double())
    assert seen.any()
    if name not in LINEAR:  # whose rows may weigh nothing
        assert torch.equal(seen, torch.isin(torch.arange(data.num_nodes), pairs[1]).unsqueeze(1).expand(-1, HEADS))
    inner = torch.zeros_like(v).index_add(0, pairs[1], alpha.unsqueeze(-1) * v[pairs[0]])
    torch.testing.assert_close(layer.lin_out(inner.flatten(1)), out)


@pytest.mark.parametrize('name', LINEAR)
def test_rows_without_weight_give_zero_coefficients_on_both_paths(name: str) -> None:
    data, layer = small_graph(), LAYERS[name](feature_map='relu').double() if name == 'asymmetric' else LAYERS[name]().double()
    with torch.no_grad():
        layer.mask.modulation.zero_()
    x = features(data).double().requires_grad_()
    out, (_, alpha) = layer(x, data.edge_index, return_attention_weights=True)
    assert not alpha.any()
    torch.testing.assert_close(out, layer.lin_out.bias.expand_as(out))
    torch.testing.assert_close(layer(x, data.edge_index), out)
    out.sum().backward()
    assert not x.grad.any()


# Explanations ---------------------------------------------------------------------------------------------------------


def explain(
    model: torch.nn.Module, x: Tensor, data: Data, reduce: str = 'max', level: str = 'graph', **settings: object
) -> Tensor:
    explainer = Explainer(
        model,
        AttentionExplainer(reduce),
        explanation_type='model',
        edge_mask_type='object',
        model_config={'mode': 'regression', 'task_level': level, 'return_type': 'raw'},
    )
    weight = {'edge_weight': data.edge_weight} if 'edge_weight' in data else {}
    return explainer(x, data.edge_index, **weight, **settings).edge_mask


def with_duplicates() -> Data:
    """A digraph of which some edges are listed two or three times, out of order."""
    data = positive_digraph()
    again = torch.tensor([0, 4, 4, 7])
    order = torch.randperm(13, generator=torch.Generator().manual_seed(1))
    data.edge_index = torch.cat([data.edge_index, data.edge_index[:, again]], dim=1)[:, order]
    data.edge_weight = torch.cat([data.edge_weight, data.edge_weight[again] + 0.5])[order].float()
    return data


EXPLAINED = {
    'undirected': small_graph,
    'directed': lambda: Data(edge_index=small_digraph().edge_index, num_nodes=6),
    'duplicates': with_duplicates,
    'self_loops': lambda: Data(edge_index=torch.tensor([[1, 0, 0, 2], [1, 1, 0, 1]]), num_nodes=3),
}


@pytest.mark.parametrize('reduce', ['max', 'mean'])
@pytest.mark.parametrize('graph', EXPLAINED)
@pytest.mark.parametrize('name', LAYERS)
def test_explanations_are_the_coefficients_of_the_edges(name: str, graph: str, reduce: str) -> None:
    """The edge (i, j) stands for the attention of i to j; among equal edges the first one does."""
    data, layer = EXPLAINED[graph](), LAYERS[name]()
    x = features(data)
    _, coefficients = expected_coefficients(layer, x, data)
    expected, before = [], set()
    for i, j in data.edge_index.t().tolist():
        own = coefficients[:, i, j] if (i, j) not in before else np.zeros(HEADS)
        expected.append(own.max() if reduce == 'max' else own.mean())
        before.add((i, j))
    assert np.any(expected)
    np.testing.assert_allclose(explain(layer, x, data, reduce).numpy(), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize('name', ['softmax', 'asymmetric'])
def test_explanations_of_a_node_keep_the_edges_that_it_attends_along(name: str) -> None:
    """Out-edges: its output does not depend on what attends to it."""
    data, layer = positive_digraph(), LAYERS[name]()
    data.edge_weight = data.edge_weight.float()
    x = features(data)
    everywhere, of_node = explain(layer, x, data), explain(layer, x, data, level='node', index=3)
    own = data.edge_index[0] == 3
    assert everywhere[own].any()
    reached = torch.isin(data.edge_index, torch.cat([torch.tensor([3]), data.edge_index[1, own]])).all(0)
    assert not reached.all()
    torch.testing.assert_close(of_node, everywhere * reached)


def test_explanation_of_several_layers_beside_other_attention() -> None:
    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = torch.nn.ModuleList([LAYERS['grf_softmax'](), LAYERS['asymmetric'](), GATConv(CHANNELS, CHANNELS)])

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            for layer in self.layers:
                x = layer(x, edge_index)
            return x

    data, model = small_graph(), Model()
    edge_mask = explain(model, features(data), data)
    assert edge_mask.shape == (14,)
    x, edges = features(data), data.edge_index
    highest = torch.zeros(14)
    for layer in model.layers:
        x, (pairs, alpha) = layer(x, edges, return_attention_weights=True)
        source, target = pairs if isinstance(layer, GATConv) else pairs.flip(0)
        matrix = torch.zeros(6, 6).index_put((source, target), alpha.amax(1))
        highest = torch.maximum(highest, matrix[edges[0], edges[1]])
    torch.testing.assert_close(edge_mask, highest.detach())


@pytest.mark.parametrize('name', LAYERS)
def test_explaining_leaves_the_layer_as_it_was(name: str) -> None:
    data, layer = small_graph(), LAYERS[name]().eval()
    x = features(data)
    before = layer(x, data.edge_index)
    explain(layer, x, data)
    assert torch.equal(layer(x, data.edge_index), before)


def test_coefficients_are_made_only_where_they_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> Tensor:
        raise AssertionError('the coefficients were formed')

    for name in LAYERS:
        layer, data = LAYERS[name](), small_graph()
        monkeypatch.setattr(layer, 'coefficients', refuse)
        layer(features(data), data.edge_index)
        with pytest.raises(AssertionError, match='coefficients were formed'):
            layer(features(data), data.edge_index, return_attention_weights=True)


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


@pytest.mark.parametrize('looked_at', [False, True])
@pytest.mark.parametrize('name', LAYERS)
def test_batch_invariance(name: str, looked_at: bool) -> None:
    layer = LAYERS[name]().double()

    def call(*arguments: object, **named: object) -> Tensor:
        out = layer(*arguments, **named, return_attention_weights=looked_at)
        return out[0] if looked_at else out

    assert_batch_invariant(call, with_features(uneven_graphs()), tolerance=1e-6)
    assert_batch_invariant(call, with_features(trailing_empty_graphs()), tolerance=1e-6)


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
            _, own = layer(data.x, data.edge_index, graph=data, return_attention_weights=True)
            blocks.append(torch.from_numpy(dense_coefficients(*own, data.num_nodes)))
        for head in range(HEADS):
            torch.testing.assert_close(whole[head], torch.block_diag(*(block[head] for block in blocks)), rtol=1e-5, atol=1e-6)


# Arguments of the forward pass ----------------------------------------------------------------------------------------


@pytest.mark.parametrize('name', LAYERS)
def test_graph_replaces_the_other_arguments(name: str) -> None:
    data, layer = graph_named('batch'), LAYERS[name]()
    x, nothing = features(data), torch.empty(2, 0, dtype=torch.long)
    expected = layer(x, data.edge_index, data.edge_weight, data.batch)
    torch.testing.assert_close(layer(x, nothing, graph=Graph.from_data(data)), expected)
    torch.testing.assert_close(layer(x, nothing, graph=data), expected)


@pytest.mark.parametrize('name', ['grf_softmax', 'grf_softmax_asymmetric', 'asymmetric'])
def test_generators_and_resampling_draw_the_walks(name: str) -> None:
    data, layer = small_graph(), LAYERS[name](num_walks=2)
    x = features(data)
    first, again, other = (
        layer(x, data.edge_index, generator=torch.Generator().manual_seed(seed)) for seed in (1, 1, 2)
    )
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    fresh = LAYERS[name](num_walks=2, resample='forward')
    assert not torch.equal(fresh(x, data.edge_index), fresh(x, data.edge_index))
    fresh.eval()
    assert torch.equal(fresh(x, data.edge_index), fresh(x, data.edge_index))


def test_layers_given_one_graph_share_the_very_same_walks() -> None:
    graph, states = Graph.from_data(small_graph()), []

    class Spy(GRFMask):
        def bind(self, graph: Graph, state: object) -> MaskOperator:
            states.append(state)
            return super().bind(graph, state)

    for resample in ('never', 'forward'):
        states.clear()
        for asymmetric in (False, True):
            own = softmax(Spy(HEADS, resample=resample, positive=True, asymmetric=asymmetric))
            own(features(small_graph()), graph.edge_index, graph=graph)
        assert states[0] is states[1]


# Modules --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize('name', LAYERS)
def test_deepcopy_and_state_dict(name: str) -> None:
    data, layer = small_graph(), LAYERS[name]()
    x = features(data)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.add_(0.1)
    expected = layer(x, data.edge_index)
    copied = copy.deepcopy(layer)
    other = LAYERS[name]()
    assert not torch.equal(other(x, data.edge_index), expected)
    other.load_state_dict(layer.state_dict())
    with torch.no_grad():
        layer.lin_q.weight.zero_()
    assert torch.equal(copied(x, data.edge_index), expected)
    assert torch.equal(other(x, data.edge_index), expected)


@pytest.mark.parametrize('name', LAYERS)
def test_reset_changes_the_weights_and_restores_the_mask(name: str) -> None:
    layer = LAYERS[name]()
    before = copy.deepcopy(layer.state_dict())
    with torch.no_grad():
        for parameter in layer.mask.parameters():
            parameter.fill_(0.125)
    layer.reset_parameters()
    after = layer.state_dict()
    for key in before:
        if key.startswith('mask'):
            assert torch.equal(before[key], after[key]), key
        elif key.endswith(('weight', 'projection')):
            assert not torch.equal(before[key], after[key]), key


@pytest.mark.parametrize(
    'make',
    [
        lambda: MaskedSoftmaxAttention(-1, HEADS, AdjacencyMask(), out_channels=4),
        lambda: GRFSoftmaxAttention(-1, HEADS, out_channels=4),
        lambda: AsymmetricGRFAttention(-1, HEADS, out_channels=4),
    ],
)
def test_channels_are_inferred_at_the_first_call(make: Callable[[], ExplicitAttention]) -> None:
    layer, data = make(), small_graph()
    copied = copy.deepcopy(layer)
    x = features(data, 5)
    assert layer(x, data.edge_index).shape == (6, 4)
    assert layer.lin_q.weight.shape == (4, 5)
    copied.load_state_dict(layer.state_dict())
    assert torch.equal(copied(x, data.edge_index), layer(x, data.edge_index))
    assert copied(x, data.edge_index, return_attention_weights=True)[0].shape == (6, 4)


@pytest.mark.parametrize('name', LAYERS)
def test_inside_a_gps_layer_and_sequential(name: str) -> None:
    data, attn = graph_named('batch'), LAYERS[name]()
    x = features(data)
    layer = TopoGPSConv(CHANNELS, GCNConv(CHANNELS, CHANNELS), attn=attn, norm=None)
    out = layer(x, data.edge_index, data.batch, edge_weight=data.edge_weight)
    h = layer.conv(x, data.edge_index, edge_weight=data.edge_weight) + x
    h = h + attn(x, data.edge_index, data.edge_weight, data.batch) + x
    torch.testing.assert_close(out, h + layer.mlp(h))
    out.sum().backward()
    assert all(parameter.grad is not None for parameter in attn.parameters())
    model = Sequential('x, edge_index, edge_weight, batch', [(attn, 'x, edge_index, edge_weight, batch -> x'), torch.nn.ReLU()])
    expected = attn(x, data.edge_index, data.edge_weight, data.batch).relu()
    torch.testing.assert_close(model(x, data.edge_index, data.edge_weight, data.batch), expected)


def test_inside_a_gps_layer_coefficients_can_be_explained() -> None:
    data, attn = small_graph(), LAYERS['asymmetric']()
    layer, x = TopoGPSConv(CHANNELS, None, attn=attn, norm=None), features(data)
    torch.testing.assert_close(explain(layer, x, data), explain(attn, x, data))


def test_parameters_of_a_given_mask_are_kept() -> None:
    mask = GRFMask(HEADS, positive=True)
    with torch.no_grad():
        mask.modulation.fill_(0.25)
    softmax(mask)
    assert (mask.modulation == 0.25).all()


def test_softmax_under_walks_is_the_layer_with_their_mask() -> None:
    data = graph_named('weighted')
    settings = {'num_walks': 6, 'p_halt': 0.2, 'max_walk_length': 3, 'modulation': 'heat', 'sampler': 'antithetic', 'seed': 4}
    settings |= {'normalization': 'rw', 'walk_length': 'poisson:1.5', 'asymmetric': True}
    layer = GRFSoftmaxAttention(CHANNELS, HEADS, **settings)
    other = softmax(GRFMask(HEADS, positive=True, **settings))
    other.load_state_dict(layer.state_dict())
    arguments = (features(data), data.edge_index, data.edge_weight)
    assert torch.equal(layer(*arguments), other(*arguments))
    assert layer.mask.walk_settings == other.mask.walk_settings


def test_settings_of_the_asymmetric_layer_reach_its_mask() -> None:
    settings = {'num_walks': 6, 'p_halt': 0.2, 'max_walk_length': 3, 'modulation': 'heat', 'sampler': 'antithetic', 'seed': 4}
    settings |= {'normalization': 'rw', 'walk_length': 'poisson:1.5'}
    layer, data = AsymmetricGRFAttention(CHANNELS, HEADS, **settings), graph_named('weighted')
    expected = GRFMask(HEADS, asymmetric=True, **settings)
    assert torch.equal(layer.mask(data).to_dense(), expected(data).to_dense())
    by_weight = AsymmetricGRFAttention(CHANNELS, HEADS, transition='weight', resample='forward').mask
    assert by_weight.walk_settings.transition == 'weight'
    assert by_weight.resample == 'forward'


def test_representation_names_mask_and_channels() -> None:
    text = repr(LAYERS['softmax'](out_channels=6))
    assert text.startswith('MaskedSoftmaxAttention(8, 6, heads=2, mask=AdjacencyMask(')


# Dropout --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize('looked_at', [False, True])
@pytest.mark.parametrize('name', LAYERS)
def test_dropout_of_the_output_in_training_only(name: str, looked_at: bool) -> None:
    data, layer = small_graph(), LAYERS[name](dropout=0.5)
    x = features(data)

    def run() -> Tensor:
        out = layer(x, data.edge_index, return_attention_weights=looked_at)
        return out[0] if looked_at else out

    dropped = run()
    assert (dropped == 0).any()
    layer.eval()
    whole = run()
    assert not (whole == 0).any()
    torch.testing.assert_close(dropped[dropped != 0], 2 * whole[dropped != 0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize('name', ['softmax', 'grf_softmax'])
def test_dropout_of_the_coefficients_in_training_only(name: str) -> None:
    data, layer = small_graph(), LAYERS[name](attention_dropout=0.5)
    x = features(data)
    torch.manual_seed(1)
    dropped = layer(x, data.edge_index)
    torch.manual_seed(1)
    shown, (_, alpha) = layer(x, data.edge_index, return_attention_weights=True)
    torch.testing.assert_close(shown, dropped)
    layer.eval()
    whole, (_, kept) = layer(x, data.edge_index, return_attention_weights=True)
    torch.testing.assert_close(layer(x, data.edge_index), whole)
    assert not torch.allclose(whole, shown)
    assert (alpha == 0).any()
    assert not (kept == 0).any()
    torch.testing.assert_close(alpha[alpha != 0], 2 * kept[alpha != 0])


# Data types -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize('looked_at', [False, True])
@pytest.mark.parametrize('dtype', [torch.bfloat16, torch.float16])
@pytest.mark.parametrize('name', LAYERS)
def test_autocast_and_half_precision(name: str, dtype: torch.dtype, looked_at: bool) -> None:
    data, layer = small_graph(), LAYERS[name]()
    x = features(data)
    expected = layer(x, data.edge_index).detach()
    half = copy.deepcopy(layer).to(dtype)
    for run, given, autocast in ((layer, x, True), (half, x.to(dtype), False)):
        with torch.autocast('cpu', dtype, enabled=autocast):
            out = run(given, data.edge_index, return_attention_weights=looked_at)
        if looked_at:
            out, (_, alpha) = out
            assert alpha.dtype == torch.float32
        assert out.dtype == dtype
        torch.testing.assert_close(out.float(), expected, rtol=0.1, atol=0.1)
        out.float().sum().backward()
        assert all(parameter.grad.isfinite().all() for parameter in run.parameters())


# Errors ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ('name', 'arguments'),
    [
        ('heads', {'heads': 3}),
        ('heads', {'heads': 0}),
        ('heads', {'out_channels': 7}),
        ('heads', {'channels': 0}),
        ('out_channels', {'channels': -1}),
        ('mask', {'mask': GRFMask(4)}),
        ('dropout', {'dropout': 1.5}),
        ('dropout', {'dropout': -0.1}),
        ('attention_dropout', {'attention_dropout': 1.5}),
        ('attention_dropout', {'attention_dropout': -0.1}),
    ],
)
def test_bad_arguments_are_named(name: str, arguments: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=f'^{name}: got'):
        MaskedSoftmaxAttention(**{'channels': CHANNELS, 'heads': HEADS, 'mask': AdjacencyMask()} | arguments)


@pytest.mark.parametrize('layer', [GRFSoftmaxAttention, AsymmetricGRFAttention])
@pytest.mark.parametrize(
    ('name', 'arguments'),
    [
        ('heads', {'heads': 3}),
        ('num_walks', {'num_walks': 0}),
        ('p_halt', {'p_halt': 1.0}),
        ('modulation', {'modulation': torch.ones(3)}),
        ('normalization', {'normalization': 'unknown'}),
        ('dropout', {'dropout': 1.5}),
    ],
)
def test_bad_arguments_of_walks_are_named(layer: type[ExplicitAttention], name: str, arguments: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=f'^{name}: got'):
        layer(CHANNELS, **{'heads': HEADS} | arguments)


def test_bad_feature_maps_and_modulations_are_named() -> None:
    with pytest.raises(ValueError, match=r'^feature_map: got'):
        AsymmetricGRFAttention(CHANNELS, HEADS, feature_map='unknown')
    with pytest.raises(ValueError, match=r'^modulation: got .*positive'):
        GRFSoftmaxAttention(CHANNELS, HEADS, max_walk_length=1, modulation=torch.tensor([1.0, -1.0]))


@pytest.mark.parametrize(
    ('name', 'inputs'),
    [
        ('x', {'x': torch.ones(5, CHANNELS), 'graph': Graph.from_data(small_graph())}),
        ('x', {'x': torch.ones(6, 2, CHANNELS)}),
        ('edge_index', {'edge_index': torch.tensor([[0], [9]])}),
        ('edge_weight', {'edge_weight': torch.full((14,), float('nan'))}),
        ('batch', {'batch': torch.tensor([0, 0, 0, 1, 0, 1])}),
    ],
)
@pytest.mark.parametrize('layer', LAYERS)
def test_bad_inputs_are_named(layer: str, name: str, inputs: dict[str, object]) -> None:
    valid = {'x': torch.ones(6, CHANNELS), 'edge_index': small_graph().edge_index}
    with pytest.raises(ValueError, match=f'^{name}: got'):
        LAYERS[layer]()(**valid | inputs)


@pytest.mark.parametrize('looked_at', [False, True])
def test_masks_that_do_not_fit_are_refused(looked_at: bool) -> None:
    data = small_graph()
    x, settings = features(data), {'return_attention_weights': looked_at}
    for mask in (PackingMask(), PowerSeriesMask(HEADS)):
        with pytest.raises(ValueError, match=r'(?s)^mask: got .*no sparse entries'):
            softmax(mask)(x, data.edge_index, **settings)
    with pytest.raises(ValueError, match=r'^mask: got the entry -'):
        softmax(AdjacencyMask(HEADS, -1.0))(x, data.edge_index, **settings)
    with pytest.raises(ValueError, match=r'^mask: got the entry -'):
        LAYERS['grf_softmax']()(x, data.edge_index, torch.full((14,), -1.0), **settings)


# Size -----------------------------------------------------------------------------------------------------------------


@pytest.fixture
def _no_dense_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: MaskOperator) -> Tensor:
        raise AssertionError('the dense matrix was formed')

    monkeypatch.setattr(MaskOperator, 'to_dense', refuse)


@pytest.fixture(scope='module', params=['large', 'many'])
def big(request: pytest.FixtureRequest) -> Graph:
    if request.param == 'large':
        return Graph.from_data(Data(edge_index=ring(200_000), num_nodes=200_000))
    return Graph.from_data(Batch.from_data_list([Data(edge_index=ring(20), num_nodes=20)] * 5000))


WALKS = {'num_walks': 2, 'max_walk_length': 2}


@pytest.mark.parametrize('looked_at', [False, True])
@pytest.mark.parametrize(
    ('name', 'settings'),
    [('softmax', {}), ('grf_softmax', WALKS), ('grf_softmax_asymmetric', WALKS), ('asymmetric', WALKS)],
    ids=lambda value: value if isinstance(value, str) else '',
)
@pytest.mark.usefixtures('_no_dense_matrix')
def test_large_graphs_and_many_small_ones(name: str, settings: dict, looked_at: bool, big: Graph) -> None:
    layer, x = LAYERS[name](**settings), torch.randn(big.num_nodes, CHANNELS)
    out = layer(x, big.edge_index, graph=big, return_attention_weights=looked_at)
    out = out[0] if looked_at else out
    out.square().mean().backward()
    assert out.shape == x.shape
    assert all(parameter.grad.isfinite().all() for parameter in layer.parameters())
    assert layer.lin_q.weight.grad.any()
