"""GKAT: its options, and the same model with explicit matrices."""

import inspect

import numpy as np
import pytest
import torch
from graphs import ring, trailing_empty_graphs, uneven_graphs, with_features
from oracles import linear
from torch import Tensor
from torch_geometric.data import Batch, Data

from pyg_topomask import Graph
from pyg_topomask.masks import RWGNKMask
from pyg_topomask.nn.models import GKAT
from pyg_topomask.testing import assert_batch_invariant
from pyg_topomask.transforms import AddRandomWalkKernel


def run(model: GKAT, data: Data) -> Tensor:
    graph = Graph.from_data(data)
    return model(data.x, graph.edge_index, graph=graph)


@pytest.mark.parametrize(
    'settings',
    [
        {},
        {'num_walks': None, 'transition': 'weight'},
        {'feature_map': 'relu', 'alpha': 0.0, 'readout': None},
        {'readout': None, 'project': False},
        {'independent_ensembles': True, 'sampler': 'antithetic', 'transition': 'weight', 'walk_length': 'fixed:3'},
    ],
)
def test_explicit_matrices_give_equal_outputs_and_gradients(settings: dict[str, object]) -> None:
    batch = Batch.from_data_list(with_features(uneven_graphs(), 5))
    implicit, explicit = (GKAT(5, 4, 3, (4, 1), explicit=flag, **settings) for flag in (False, True))
    explicit.load_state_dict(implicit.state_dict())
    for layer in implicit.layers:
        layer.route = 'features'  # small graphs would go by their matrices anyway
    outputs = [run(model, batch) for model in (implicit, explicit)]
    torch.testing.assert_close(*outputs, rtol=1e-4, atol=1e-4)
    for out in outputs:
        out.square().sum().backward()
    for implicit_parameter, explicit_parameter in zip(implicit.parameters(), explicit.parameters(), strict=True):
        torch.testing.assert_close(implicit_parameter.grad, explicit_parameter.grad, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize('readout', [None, 'sum', 'mean', 'max', 'mf', 'dm'])
def test_readouts(readout: str | None) -> None:
    model, batch = GKAT(5, 4, 3, (2, 1), readout=readout), Batch.from_data_list(with_features(uneven_graphs(), 5))
    out = run(model, batch)
    assert out.shape == ((40, 3) if readout is None else (4, 3))
    alone = torch.cat([run(model, data) for data in with_features(uneven_graphs(), 5)])
    torch.testing.assert_close(out, alone, rtol=1e-4, atol=1e-4)
    out.square().sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


@pytest.mark.parametrize('readout', ['sum', 'max', 'mf'])
def test_empty_graphs_at_the_end_have_outputs_too(readout: str) -> None:
    graphs = with_features(trailing_empty_graphs(), 5)
    assert run(GKAT(5, 4, 3, (2, 1), readout=readout), Batch.from_data_list(graphs)).shape == (len(graphs), 3)


def test_sum_mean_and_max_pool_what_the_attention_makes_of_the_nodes() -> None:
    batch = Batch.from_data_list(with_features(uneven_graphs(), 5))
    node = GKAT(5, 4, 3, (2, 1), readout=None)
    hidden = []
    node.lin_out.register_forward_hook(lambda module, inputs, output: hidden.append(inputs[0]))
    run(node, batch)
    for readout, pool in {'sum': torch.sum, 'mean': torch.mean, 'max': torch.amax}.items():
        model = GKAT(5, 4, 3, (2, 1), readout=readout)
        model.load_state_dict(node.state_dict())
        expected = torch.stack([pool(rows, 0) for rows in hidden[0].split(batch.ptr.diff().tolist())])
        torch.testing.assert_close(run(model, batch), node.lin_out(expected), rtol=1e-4, atol=1e-4)


def test_layers_have_the_heads_channels_and_features_asked_for() -> None:
    model = GKAT(5, 4, 3, (8, 2, 1), 'dm', num_features=16, lin_channels=7, norm=True)
    layers = list(model.layers)
    assert [layer.heads for layer in layers] == [8, 2, 1]
    assert [(layer.channels, layer.out_channels) for layer in layers] == [(7, 32), (32, 8), (8, 4)]
    assert all(layer.feature_map.num_features == 16 for layer in layers)
    assert [layer.mask.log_lam.numel() for layer in layers] == [8, 2, 1]
    before = {name: value.clone() for name, value in model.named_parameters() if 'lin' in name and 'weight' in name}
    model.reset_parameters()
    after = dict(model.named_parameters())
    assert before
    assert not any(torch.equal(value, after[name]) for name, value in before.items())


def test_without_projections_nodes_without_neighbours_keep_their_values() -> None:
    x, no_edges = torch.randn(6, 5), torch.empty(2, 0, dtype=torch.long)
    model = GKAT(5, 4, 3, (2, 1), readout=None, project=False)
    model.reset_parameters()
    hidden, out = (
        (layer.lin_v.weight.detach().double().numpy(), layer.lin_v.bias.detach().double().numpy()) for layer in model.layers
    )
    value = x.double().numpy() @ hidden[0].T + hidden[1]
    value = np.where(value > 0, value, np.expm1(value))
    torch.testing.assert_close(model(x, no_edges).double(), torch.from_numpy(value @ out[0].T + out[1]), rtol=1e-4, atol=1e-4)


def test_softmax_layers_by_their_equation() -> None:
    data, model = with_features(uneven_graphs(), 5)[2], GKAT(5, 4, 3, (2, 1), None, feature_map='softmax', project=False)
    graph, x = Graph.from_data(data), data.x.numpy()
    for layer in model.layers:
        matrix = layer.mask(graph).matmul(torch.eye(len(x)).unsqueeze(1).expand(-1, layer.heads, -1)).detach().numpy()
        q, k, v = (linear(lin, x).reshape(len(x), layer.heads, -1) for lin in (layer.lin_q, layer.lin_k, layer.lin_v))
        weight = matrix * np.exp(np.einsum('ihd,jhd->ihj', q, k) / np.sqrt(q.shape[2]))
        x = np.einsum('ihj,jhd->ihd', weight / weight.sum(2, keepdims=True), v).reshape(len(x), -1)
        x = x if layer is model.layers[-1] else np.where(x > 0, x, np.expm1(x))
    np.testing.assert_allclose(run(model, data).detach().numpy(), x, atol=1e-5)


def test_coefficients_are_dropped_in_training() -> None:
    data = with_features(uneven_graphs(), 5)[2]
    model = GKAT(5, 4, 3, readout=None, feature_map='softmax', attention_dropout=0.5)
    assert not torch.equal(run(model, data), run(model, data))
    model.eval()
    assert torch.equal(run(model, data), run(model, data))
    for name in ('explicit', 'dynamic', 'num_features'):
        with pytest.raises(ValueError, match=rf'^{name}: got .* for feature_map=.softmax'):
            GKAT(5, 4, 3, feature_map='softmax', **{name: 1})
    with pytest.raises(ValueError, match=r"^attention_dropout: got 0.5 for feature_map='favor'"):
        GKAT(5, 4, 3, attention_dropout=0.5)


def test_layers_share_one_ensemble_of_walks() -> None:
    data, model = with_features(uneven_graphs(), 5)[2], GKAT(5, 4, 3)
    graph = Graph.from_data(data)
    model(data.x, data.edge_index, graph=graph)
    states = [graph.state(layer.mask) for layer in model.layers]
    assert states[0] is states[1]


@pytest.mark.parametrize('explicit', [False, True])
def test_masks_take_every_argument_of_walks(explicit: bool) -> None:
    settings = {
        'num_walks': 6,
        'p_halt': 0.2,
        'max_walk_length': 5,
        'lam': 0.5,
        'alpha': 0.25,
        'learnable': False,
        'independent_ensembles': True,
        'sampler': 'antithetic',
        'transition': 'weight',
        'resample': 'forward',
        'seed': 4,
        'walk_length': 'poisson:1.5',
        'flow': 'target_to_source',
    }
    assert {*settings, 'heads'} == set(inspect.signature(RWGNKMask).parameters)
    for name, value in settings.items():
        mask, expected, usual = (
            GKAT(5, 4, 3, (2, 1), explicit=explicit, **{name: value}).layers[0].mask,
            RWGNKMask(2, **{name: value}),
            RWGNKMask(2),
        )
        actual, wanted, default = (
            (repr(of), of.seed, of.lam.tolist(), of.log_lam.requires_grad) for of in (mask, expected, usual)
        )
        assert actual == wanted, name
        assert actual != default, name


def test_layers_have_seeds_of_their_own_up_to_the_largest() -> None:
    seeds = [layer.mask.seed for layer in GKAT(5, 4, 3, feature_map='elu', dynamic=True, seed=2**64 - 1).layers]
    assert seeds == [2**64 - 1, 0]


@pytest.mark.parametrize('settings', [{'num_walks': None}, {'num_walks': 8}, {'num_walks': 8, 'dynamic': True}])
def test_weights_count_where_walkers_hop_by_them(settings: dict[str, object]) -> None:
    data = with_features(uneven_graphs(), 5)[2]
    ends = torch.arange(data.num_edges) % 2 + 0.1
    for transition in ('uniform', 'weight'):
        model, outputs = GKAT(5, 4, 3, readout=None, transition=transition, **settings), []
        for weight in (torch.ones_like(data.edge_weight), ends):
            generator = torch.Generator().manual_seed(0) if 'dynamic' in settings else None
            outputs.append(model(data.x, data.edge_index, weight, generator=generator))
        assert torch.equal(*outputs) == (transition == 'uniform')


def test_batch_invariance_with_stored_walks() -> None:
    graphs = [AddRandomWalkKernel()(data) for data in with_features(uneven_graphs(), 5)]
    assert_batch_invariant(GKAT(5, 4, 3, readout=None, feature_map='elu'), graphs, tolerance=1e-4)


def test_dropout_is_of_the_inputs_in_training() -> None:
    data, model = with_features(uneven_graphs(), 5)[2], GKAT(5, 4, 3, dropout=0.5)
    assert not torch.equal(run(model, data), run(model, data))
    model.eval()
    assert torch.equal(run(model, data), run(model, data))
    blind = GKAT(5, 4, 3, dropout=1.0)
    changed = data.clone()
    changed.x = data.x + 1.0
    assert torch.equal(run(blind, data), run(blind, changed))


def test_one_node_is_trained_on() -> None:
    data = Data(x=torch.randn(1, 5), edge_index=torch.empty(2, 0, dtype=torch.long))
    model = GKAT(5, 4, 3, feature_map='elu', norm=True)
    out = run(model.train(), data)
    torch.testing.assert_close(out, run(model.eval(), data))
    out.sum().backward()


def test_walks_of_each_layer_follow_its_attention() -> None:
    data = with_features(uneven_graphs(), 5)[2]
    model = GKAT(5, 4, 3, feature_map='elu', dynamic=True, num_walks=64).eval()
    with torch.no_grad():
        for sharp in model.layers:  # so that the walks tell small changes of the attention
            sharp.lin_q.weight.mul_(30.0)
            sharp.lin_k.weight.mul_(10.0)
    seen = []
    for layer in model.layers:
        layer.mask.register_forward_pre_hook(lambda _, given: seen.append(given[0].weight))
    run(model, data)
    assert not torch.allclose(*seen)
    still = GKAT(5, 4, 3, feature_map='elu', num_walks=64).eval()
    still.load_state_dict(model.state_dict())
    assert not torch.allclose(run(model, data), run(still, data))


def test_training_tells_graphs_apart_that_differ_in_their_edges_alone() -> None:
    triangles = torch.cat([ring(3), ring(3) + 3], dim=1)
    batch = Batch.from_data_list([Data(x=torch.eye(6)[:, :5], edge_index=edges, num_nodes=6) for edges in (ring(6), triangles)])
    model = GKAT(5, 4, 2, (2, 1), num_walks=None)
    graph, optimizer = Graph.from_data(batch), torch.optim.Adam(model.parameters(), 0.02)
    for _ in range(60):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(batch.x, batch.edge_index, graph=graph), torch.tensor([0, 1]))
        loss.backward()
        optimizer.step()
    assert loss < 0.3


def test_input_channels_are_inferred() -> None:
    data = with_features(uneven_graphs(), 5)[2]
    for lin_channels in (None, 6):
        torch.manual_seed(0)
        lazy = GKAT(-1, 4, 3, lin_channels=lin_channels)
        out = lazy(data.x, data.edge_index)
        known = GKAT(data.x.size(1), 4, 3, lin_channels=lin_channels)
        known.load_state_dict(lazy.state_dict())
        torch.testing.assert_close(known(data.x, data.edge_index), out)
    with pytest.raises(ValueError, match=r'^norm: got True for in_channels=-1; accepted'):
        GKAT(-1, 4, 3, norm=True)


@pytest.mark.parametrize('name', ['norm', 'explicit', 'dynamic', 'project'])
def test_words_are_no_booleans(name: str) -> None:
    with pytest.raises(ValueError, match=rf"^{name}: got 'no'; accepted: False, True"):
        GKAT(5, 4, 3, **{name: 'no'})
