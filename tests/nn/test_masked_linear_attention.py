import copy

import pytest
import torch
from explicit_layers import features
from graphs import GRAPHS, small_digraph, small_graph, uneven_graphs, with_features
from grids import covering
from oracles import masked_attention
from torch_geometric.data import Data
from torch_geometric.nn import GraphNorm, Sequential
from torch_geometric.utils import to_torch_csr_tensor

from pyg_topomask import Graph
from pyg_topomask.feature_maps import FavorFeatures
from pyg_topomask.feature_maps.names import FEATURE_MAPS
from pyg_topomask.masks import AdjacencyMask, GRFMask, LowRankMask, Mask, PackingMask
from pyg_topomask.nn import MaskedLinearAttention
from pyg_topomask.testing import assert_batch_invariant, assert_permutation_equivariant

CHANNELS, HEADS = 8, 2


def masks() -> dict[str, Mask | None]:
    return {
        'none': None,
        'packing': PackingMask(),
        'adjacency': AdjacencyMask(HEADS, normalization='sym'),
        'adjacency_shared': AdjacencyMask(),
        'transposed': AdjacencyMask(HEADS).T,
        'grf': GRFMask(HEADS, num_walks=8),
        'grf_independent': GRFMask(HEADS, num_walks=8, independent_ensembles=True),
        'sum': GRFMask(HEADS) + 0.1 * PackingMask(),
        'hadamard': AdjacencyMask(HEADS) * PackingMask(),
        'scaled': GRFMask(HEADS) * torch.nn.Parameter(torch.ones(HEADS)),
    }


def layer(mask: str = 'grf', **settings: object) -> MaskedLinearAttention:
    return MaskedLinearAttention(CHANNELS, HEADS, masks()[mask], **{'feature_map': 'elu'} | settings)


@pytest.mark.parametrize(('mask', 'feature_map'), covering(masks(), ['relu', 'elu', 'square']))
def test_output_is_masked_attention_between_projections(mask: str, feature_map: str) -> None:
    attention, data = layer(mask, feature_map=feature_map).double(), small_digraph()
    x = features(data).double()
    q, k, v = (lin(x).view(-1, HEADS, CHANNELS // HEADS) for lin in (attention.lin_q, attention.lin_k, attention.lin_v))
    q, k = attention.feature_map(q, k)
    matrix = attention.mask(data).to_dense()
    inner = masked_attention(*(tensor.detach().numpy() for tensor in (q, k, v, matrix)))
    expected = attention.lin_out(torch.from_numpy(inner).flatten(1))
    torch.testing.assert_close(attention(x, data.edge_index, data.edge_weight), expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize(('mask', 'feature_map'), covering(['none', 'adjacency', 'grf', 'sum'], FEATURE_MAPS))
def test_batch_invariance(mask: str, feature_map: str) -> None:
    attention = layer(mask, feature_map=feature_map).double()
    graphs = with_features(uneven_graphs())
    for data in graphs:
        data.x, data.edge_weight = data.x.double(), data.edge_weight.double()
    assert_batch_invariant(attention, graphs, tolerance=1e-8)


@pytest.mark.parametrize('feature_map', ['favor', 'derf'])
def test_batch_invariance_of_random_features_next_to_graphs_of_other_scales(feature_map: str) -> None:
    graphs = with_features(uneven_graphs())
    for scale, data in zip((1.0, 40.0, 0.01, 10.0), graphs, strict=True):
        data.x *= scale
    assert_batch_invariant(layer('none', feature_map=feature_map), graphs, tolerance=1e-4)


@pytest.mark.parametrize(('mask', 'feature_map'), covering(['none', 'packing', 'adjacency', 'transposed'], FEATURE_MAPS))
def test_permutation_equivariance(mask: str, feature_map: str) -> None:
    data, attention = small_digraph(), layer(mask, feature_map=feature_map).double()
    assert_permutation_equivariant(attention, features(data).double(), data.edge_index, data.edge_weight, 1e-8)


def test_permutation_equivariance_of_low_rank_masks() -> None:
    data = small_graph()
    factors = torch.rand(6, 2)
    x, order = features(data), torch.randperm(6)
    original = Data(mask_left=factors, mask_right=factors, num_nodes=6)
    renamed = Data(mask_left=factors[order], mask_right=factors[order], num_nodes=6)
    attention = MaskedLinearAttention(CHANNELS, HEADS, LowRankMask(), 'elu')
    expected = attention(x, graph=original)[order]
    torch.testing.assert_close(attention(x[order], graph=renamed), expected)


@pytest.mark.parametrize('mask', masks())
def test_gradients_reach_every_parameter(mask: str) -> None:
    data, attention = small_digraph(), layer(mask)
    attention(features(data), data.edge_index, data.edge_weight.float()).square().sum().backward()
    for name, parameter in attention.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.any(), name


@pytest.mark.parametrize('route', ['features', 'edges', 'auto'])
def test_routes_agree(route: str) -> None:
    data, attention = small_digraph(), layer('grf')
    expected = attention(features(data), data.edge_index)
    attention.route = route
    torch.testing.assert_close(attention(features(data), data.edge_index), expected, rtol=1e-4, atol=1e-5)


def test_graph_replaces_the_other_arguments() -> None:
    data = GRAPHS['batch']()
    data.edge_weight = data.edge_weight.float()
    attention, x = layer('grf'), features(data)
    graph = Graph.from_data(data)
    expected = attention(x, data.edge_index, data.edge_weight, data.batch)
    torch.testing.assert_close(attention(x, graph=graph), expected)


def test_batch_has_to_be_that_of_the_graph() -> None:
    data, attention = GRAPHS['batch'](), layer('grf')
    x, one = features(data), Graph.from_tensors(data.edge_index, data.num_nodes)
    expected = attention(x, data.edge_index, batch=data.batch)
    graph = Graph.from_tensors(data.edge_index, data.num_nodes, batch=data.batch)
    torch.testing.assert_close(attention(x, data.edge_index, batch=data.batch.clone(), graph=graph), expected)
    attention(x, data.edge_index, batch=torch.zeros_like(data.batch), graph=one)
    with pytest.raises(ValueError, match='batch: got another assignment of nodes to graphs'):
        attention(x, data.edge_index, batch=data.batch, graph=one)


def test_layers_given_one_graph_share_the_very_same_state() -> None:
    graph, states = Graph.from_data(small_graph()), []

    class Spy(GRFMask):
        def bind(self, graph: Graph, state: object) -> object:
            states.append(state)
            return super().bind(graph, state)

    for resample in ('never', 'forward'):
        states.clear()
        for _ in range(2):
            attention = MaskedLinearAttention(CHANNELS, HEADS, Spy(HEADS, resample=resample))
            attention(features(small_graph()), small_graph().edge_index, graph=graph)
        assert states[0] is states[1]


def test_channels_are_inferred_at_the_first_call() -> None:
    attention = MaskedLinearAttention(-1, HEADS, GRFMask(HEADS), out_channels=4)
    copied = copy.deepcopy(attention)
    assert attention(features(small_graph(), 5), small_graph().edge_index).shape == (6, 4)
    assert attention.lin_q.weight.shape == (4, 5)
    copied.load_state_dict(attention.state_dict())
    x = features(small_graph(), 5)
    assert torch.equal(copied(x, small_graph().edge_index), attention(x, small_graph().edge_index))


def test_states_prepared_under_autocast_are_in_single_precision() -> None:
    graph, attention = Graph.from_data(small_graph()), layer('grf', route='edges')
    x = features(small_graph())
    with torch.autocast('cpu', torch.bfloat16):
        attention(x, graph.edge_index, graph=graph)
    assert torch.equal(attention(x, graph.edge_index, graph=graph), attention(x, graph.edge_index))


def test_a_reset_sets_every_number_of_the_layer() -> None:
    layer = MaskedLinearAttention(8, 2, GRFMask(2), feature_map='favor', sums=True)
    numbers = {name: tensor for name, tensor in layer.state_dict().items() if tensor.is_floating_point()}
    assert {name.partition('.')[0] for name in numbers} == {
        'mask',
        'feature_map',
        *(f'lin_{part}' for part in ('q', 'k', 'v', 'sum', 'out')),
    }
    for tensor in numbers.values():
        tensor.fill_(7.0)
    layer.reset_parameters()
    assert not [name for name, tensor in numbers.items() if bool((tensor == 7.0).any())]


def test_dropout_in_training_only() -> None:
    data, attention = small_graph(), layer('packing', dropout=0.5)
    x = features(data)
    assert (attention(x, data.edge_index) == 0).any()
    attention.eval()
    assert not (attention(x, data.edge_index) == 0).any()


def test_without_bias() -> None:
    names = [name for name, _ in layer('none', bias=False).named_parameters()]
    assert names == ['lin_q.weight', 'lin_k.weight', 'lin_v.weight', 'lin_out.weight']


def test_parameters_of_a_given_mask_and_feature_map_are_kept() -> None:
    mask, feature_map = GRFMask(HEADS), FavorFeatures(CHANNELS // HEADS)
    with torch.no_grad():
        mask.modulation.fill_(0.25)
    projection = feature_map.projection.clone()
    MaskedLinearAttention(CHANNELS, HEADS, mask, feature_map)
    assert (mask.modulation == 0.25).all()
    assert torch.equal(feature_map.projection, projection)


def test_inside_sequential() -> None:
    model = Sequential(
        'x, edge_index, edge_weight, batch',
        [
            (layer('grf'), 'x, edge_index, edge_weight, batch -> x'),
            (GraphNorm(CHANNELS), 'x, batch -> x'),
            torch.nn.ReLU(),
            (layer('none'), 'x, edge_index -> x'),
        ],
    )
    data = GRAPHS['batch']()
    out = model(features(data), data.edge_index, data.edge_weight.float(), data.batch)
    assert out.shape == (40, CHANNELS)
    out.sum().backward()


@pytest.mark.parametrize(
    ('name', 'inputs'),
    [
        ('x', {'x': torch.ones(5, CHANNELS), 'graph': Graph.from_data(small_graph())}),
        ('x', {'x': None}),
        ('edge_index', {'edge_index': None}),
        ('edge_index', {'batch': torch.tensor([0, 0, 0, 1, 1, 1])}),
    ],
)
def test_inputs_that_do_not_fit_each_other_are_named(name: str, inputs: dict[str, object]) -> None:
    valid = {'x': torch.ones(6, CHANNELS), 'edge_index': small_graph().edge_index}
    with pytest.raises(ValueError, match=f'^{name}: got'):
        layer('grf')(**valid | inputs)


def test_representation_tells_the_settings() -> None:
    text = repr(layer('grf'))
    assert text.startswith('MaskedLinearAttention(8, 8, heads=2, mask=GRFMask(')
    assert 'EluFeatures(4)' in text


def test_what_contradicts_the_graph_is_refused() -> None:
    attention, data = layer('adjacency'), small_graph()
    x, edges, weight = features(data), data.edge_index, torch.rand(data.num_edges)
    graph, weighted = Graph(edges, 6), Graph(edges, 6, weight)
    expected = attention(x, edges)
    for edge_index in (None, edges, edges.clone(), edges.int()):
        assert torch.equal(attention(x, edge_index, graph=graph), expected)
    assert torch.equal(attention(x, graph=graph), expected)
    assert torch.equal(attention(x, edges, torch.ones(len(weight)), graph=graph), expected)
    assert torch.equal(attention(x, edges, weight.clone(), graph=weighted), attention(x, edges, weight))
    for edge_index in (edges[:, :4], edges.flip(1), edges.tolist()):
        with pytest.raises(ValueError, match=r'^edge_index: got other edges than those of graph, which has 14; accepted'):
            attention(x, edge_index, graph=graph)
    for given_graph in (graph, data, weighted):
        with pytest.raises(ValueError, match=r'^edge_weight: got other weights than those of graph; accepted'):
            attention(x, edges, 2 * weight, graph=given_graph)
    with pytest.raises(ValueError, match=r'^edge_weight: got a learned tensor that is not that of graph; accepted'):
        attention(x, edges, torch.ones(len(weight), requires_grad=True), graph=graph)


def test_sparse_edges_that_contradict_the_graph_are_refused() -> None:
    attention, data = layer('adjacency'), small_digraph()
    x, edges = features(data), data.edge_index
    graph = Graph(edges, 6)
    for shown in (edges, edges.flip(1)):
        adj_t = to_torch_csr_tensor(shown.flip(0), size=(6, 6))
        assert torch.equal(attention(x, adj_t, graph=graph), attention(x, edges))
    for other in (edges[:, 1:], edges.flip(0)):
        with pytest.raises(ValueError, match=r'^edge_index: got other edges or weights than those of graph'):
            attention(x, to_torch_csr_tensor(other.flip(0), size=(6, 6)), graph=graph)
    weight = torch.rand(edges.size(1))
    weighted = [to_torch_csr_tensor(edges.flip(0), factor * weight, size=(6, 6)) for factor in (1, 2)]
    for others in ((weighted[0], graph), (weighted[1], Graph(edges, 6, weight))):
        with pytest.raises(ValueError, match=r'^edge_index: got other edges or weights than those of graph'):
            attention(x, others[0], graph=others[1])
    assert torch.equal(attention(x, weighted[0], graph=Graph(edges, 6, weight)), attention(x, edges, weight))


def test_reset_after_deferred_initialization() -> None:
    for name, mask in masks().items():
        attention = MaskedLinearAttention(CHANNELS, HEADS, mask)
        began = copy.deepcopy(attention.mask.state_dict())
        empty = attention.to('meta').to_empty(device='cpu')
        for tensor in (*empty.parameters(), *empty.buffers()):
            tensor.data.fill_(7.0)
        empty.reset_parameters()
        for key, value in empty.mask.state_dict().items():
            assert torch.equal(value, began[key]), f'{name}: {key}'
