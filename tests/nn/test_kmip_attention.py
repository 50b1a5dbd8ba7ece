import copy
import math

import numpy as np
import pytest
import torch
from explicit_layers import dense_coefficients
from graphs import GRAPHS, no_edges, ring, trailing_empty_graphs, uneven_graphs
from grids import covering
from oracles import same_graph
from torch import Tensor
from torch.utils.checkpoint import checkpoint
from torch_geometric.data import Batch, Data
from torch_geometric.explain import AttentionExplainer, Explainer
from torch_geometric.nn import GCNConv

from pyg_topomask.nn import KMIPAttention, TopoGPSConv
from pyg_topomask.testing import assert_batch_invariant, assert_permutation_equivariant

CHANNELS, HEADS = 8, 2
Array = np.ndarray


def features(data: Data) -> Tensor:
    return torch.randn(data.num_nodes or 0, CHANNELS, generator=torch.Generator().manual_seed(3), dtype=torch.float64)


def with_features(graphs: list[Data]) -> list[Data]:
    for data in graphs:
        data.x = features(data)
    return graphs


def layer_with(**settings: object) -> KMIPAttention:
    torch.manual_seed(5)
    return KMIPAttention(CHANNELS, HEADS, **{'k': 3} | settings).double()


def projected(layer: KMIPAttention, x: Tensor) -> tuple[Array, ...]:
    lins = (layer.lin_q, layer.lin_k, layer.lin_v)
    return tuple(lin(x).unflatten(1, (layer.heads, -1)).detach().numpy() for lin in lins)


def scores(q: Array, k: Array, similarity: str) -> Array:
    """[H, N, N], divided by the root of the dimension."""
    product = np.einsum('nhd,mhd->hnm', q, k)
    if similarity == 'cosine':
        return product / np.linalg.norm(k, axis=-1).T[:, None]
    if similarity == 'distance':
        difference = q.transpose(1, 0, 2)[:, :, None] - k.transpose(1, 0, 2)[:, None]
        product = -0.5 * (difference**2).sum(-1)
    return product / math.sqrt(q.shape[-1])


def kmip(q: Array, k: Array, same: Array, num: int, similarity: str = 'dot', extra: Array | None = None) -> Array:
    """Eq. 4.2 to 4.4, one query at a time: coefficients [H, N, N]."""
    score = scores(q, k, similarity)
    alpha = np.zeros_like(score)
    for head, node in np.ndindex(score.shape[:2]):
        candidates = np.flatnonzero(same[node])
        chosen = set(candidates[np.argsort(-score[head, node, candidates], kind='stable')][:num])
        if extra is not None:
            chosen |= set(np.flatnonzero(extra[node]))
        chosen = sorted(chosen)
        weight = np.exp(score[head, node, chosen] - score[head, node, chosen].max())
        alpha[head, node, chosen] = weight / weight.sum()
    return alpha


SETTINGS: dict[str, dict[str, object]] = {
    'plain': {},
    'one_key': {'k': 1},
    'sizes': {'kq_dim': 3, 'val_dim': 5},
    'concatenated': {'head_agg': 'none'},
    'cosine': {'similarity': 'cosine'},
    'distance': {'similarity': 'distance'},
    'chunked': {'backend': 'chunked'},
    'dense': {'backend': 'dense'},
    'tree': {'backend': 'tree'},
    'deterministic': {'deterministic': True},
}


@pytest.mark.parametrize(
    ('name', 'graph', 'looked_at'),
    covering(SETTINGS, ['undirected', 'batch', 'no_edges', 'one_node', 'empty'], [False, True]),
)
def test_output_and_coefficients_are_those_of_the_equations(name: str, graph: str, looked_at: bool) -> None:
    data, layer = GRAPHS[graph](), layer_with(**SETTINGS[name])
    x = features(data)
    q, k, v = projected(layer, x)
    alpha = kmip(q, k, same_graph(data), layer.k, layer.similarity)
    inner = torch.from_numpy(np.einsum('hnm,mhd->nhd', alpha, v))
    expected = layer.lin_out(inner.flatten(1))
    arguments = (x, data.edge_index, None, data.get('batch'))
    if not looked_at:
        torch.testing.assert_close(layer(*arguments), expected, rtol=1e-9, atol=1e-9)
        return
    out, (pairs, coefficients) = layer(*arguments, return_attention_weights=True)
    torch.testing.assert_close(out, expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(dense_coefficients(pairs, coefficients, data.num_nodes or 0), alpha, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize('num', [40, 1000])
def test_with_k_from_n_it_is_full_attention(num: int) -> None:
    """Against PyG's dense counterpart, values and gradients."""
    x = torch.randn(40, CHANNELS, dtype=torch.float64)
    layer = layer_with(k=num, kq_dim=3)
    full = copy.deepcopy(layer)
    layer_x, full_x = x.clone().requires_grad_(), x.clone().requires_grad_()
    out = layer(layer_x, no_edges())
    q, k, v = (lin(full_x).view(40, HEADS, -1).transpose(0, 1) for lin in (full.lin_q, full.lin_k, full.lin_v))
    attended = torch.nn.functional.scaled_dot_product_attention(q, k, v)
    expected = full.lin_out(attended.transpose(0, 1).flatten(1))
    torch.testing.assert_close(out, expected, rtol=1e-6, atol=1e-6)
    target = torch.randn_like(out)
    (out * target).sum().backward()
    (expected * target).sum().backward()
    torch.testing.assert_close(layer_x.grad, full_x.grad, rtol=1e-6, atol=1e-6)
    for parameter, full_parameter in zip(layer.parameters(), full.parameters(), strict=True):
        torch.testing.assert_close(parameter.grad, full_parameter.grad, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize('name', ['plain', 'sizes', 'cosine', 'distance'])
def test_gradients(name: str) -> None:
    data = Batch.from_data_list([Data(edge_index=no_edges(), num_nodes=size) for size in (1, 2, 7)])
    torch.manual_seed(5)
    layer = KMIPAttention(4, HEADS, **{'k': 3} | SETTINGS[name]).double()
    x = features(data)[:, :4].clone().requires_grad_()
    parameters = list(layer.parameters())

    def run(x: Tensor, *values: Tensor) -> Tensor:
        named = dict(zip(dict(layer.named_parameters()), values, strict=True))
        return torch.func.functional_call(layer, named, (x, data.edge_index, None, data.batch))

    assert torch.autograd.gradcheck(run, (x, *parameters), fast_mode=True)


@pytest.mark.parametrize('name', SETTINGS)
def test_batch_is_one_by_one(name: str) -> None:
    layer = layer_with(**SETTINGS[name])
    for graphs in (uneven_graphs(), trailing_empty_graphs()):
        assert_batch_invariant(layer, with_features(graphs), tolerance=1e-9)


@pytest.mark.parametrize('extra', [None, 'input'])
def test_permutation_equivariant(extra: str | None) -> None:
    data = GRAPHS['undirected']()
    assert_permutation_equivariant(layer_with(extra_edges=extra), features(data), data.edge_index, tolerance=1e-9)


def test_keys_of_other_graphs_are_never_chosen() -> None:
    """However large they are."""
    data = Batch.from_data_list([Data(edge_index=ring(5), num_nodes=5), Data(edge_index=ring(9), num_nodes=9)])
    layer, x = layer_with(k=2), features(data)
    alone = layer(x[:5], ring(5))
    x[5:] *= 1e6
    out, (pairs, _) = layer(x, data.edge_index, batch=data.batch, return_attention_weights=True)
    torch.testing.assert_close(out[:5], alone)
    assert (data.batch[pairs[0]] == data.batch[pairs[1]]).all()


# More keys than the best ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize('flow', ['source_to_target', 'target_to_source'])
@pytest.mark.parametrize('name', ['undirected', 'directed', 'batch'])
def test_input_edges_join_the_best_keys(name: str, flow: str) -> None:
    data, layer = GRAPHS[name](), layer_with(k=2, extra_edges='input', flow=flow)
    x = features(data)
    q, k, v = projected(layer, x)
    adjacency = np.zeros((data.num_nodes, data.num_nodes))
    source, target = data.edge_index.numpy()
    adjacency[(target, source) if flow == 'source_to_target' else (source, target)] = 1
    alpha = kmip(q, k, same_graph(data), 2, extra=adjacency)
    expected = layer.lin_out(torch.from_numpy(np.einsum('hnm,mhd->nhd', alpha, v)).flatten(1))
    torch.testing.assert_close(layer(x, data.edge_index, batch=data.get('batch')), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize('extra', ['expander', 'both'])
def test_expander_edges_join_the_best_keys(extra: str) -> None:
    """Those of a graph are the same in any batch; a connected graph in which every node has a neighbor."""
    layer = layer_with(k=1, extra_edges=extra, expander_degree=2)
    assert_batch_invariant(layer, with_features(uneven_graphs()), tolerance=1e-9)
    data = Data(num_nodes=12, edge_index=no_edges())
    _, (pairs, alpha) = layer(features(data), data.edge_index, return_attention_weights=True)
    used = dense_coefficients(pairs, alpha, 12) > 0
    assert (used.sum(-1) >= 2).all()
    assert (used.sum(-1) <= 3).all()


@pytest.mark.parametrize('schedule', [{'k': 4}, {'k': 1, 'k_start': 4}], ids=str)
def test_random_keys_only_in_training(schedule: dict[str, int]) -> None:
    layer, x = layer_with(**schedule, random_fraction=0.5), features(Data(num_nodes=60))
    counts = []
    for _ in range(2):
        _, (pairs, alpha) = layer(x, no_edges(), return_attention_weights=True)
        used = dense_coefficients(pairs, alpha, 60) > 0
        assert (used.sum(-1) >= 4).all()
        assert (used.sum(-1) <= 6).all()
        counts.append(used)
    assert counts[0].sum() > 1.3 * 4 * HEADS * 60
    assert (counts[0] != counts[1]).any()
    layer.eval()
    _, (pairs, alpha) = layer(x, no_edges(), return_attention_weights=True)
    assert ((dense_coefficients(pairs, alpha, 60) > 0).sum(-1) == 4).all()


def test_every_node_of_a_graph_may_be_a_random_key() -> None:
    data = Batch.from_data_list([Data(edge_index=no_edges(), num_nodes=size) for size in (5, 1, 3)])
    layer, x = layer_with(k=1, random_fraction=50.0), features(data)
    _, (pairs, alpha) = layer(x, no_edges(), graph=data, return_attention_weights=True)
    used = dense_coefficients(pairs, alpha, 9) > 0
    np.testing.assert_array_equal(used.any(0), data.batch.unsqueeze(1) == data.batch)


def test_random_keys_follow_the_generator_and_stay_in_the_graph() -> None:
    data = Batch.from_data_list(uneven_graphs())
    layer, x = layer_with(k=1, random_fraction=4.0), features(data)
    runs = []
    for seed in (1, 1, 2):
        generator = torch.Generator().manual_seed(seed)
        out, (pairs, _) = layer(x, data.edge_index, graph=data, generator=generator, return_attention_weights=True)
        assert (data.batch[pairs[0]] == data.batch[pairs[1]]).all()
        runs.append(out)
    assert torch.equal(runs[0], runs[1])
    assert not torch.equal(runs[0], runs[2])


def test_schedule_goes_from_many_keys_to_few_and_is_saved() -> None:
    layer, x = layer_with(k=2, k_start=32, k_steps=4), features(Data(num_nodes=50))
    seen = []
    for _ in range(6):
        seen.append(layer.current_k)
        out, (pairs, alpha) = layer(x, no_edges(), return_attention_weights=True)
        out.sum().backward()
        assert ((dense_coefficients(pairs, alpha, 50) > 0).sum(-1) == seen[-1]).all()
        restored = layer_with(k=2, k_start=32, k_steps=4)
        restored.load_state_dict(layer.state_dict())
        assert restored.current_k == layer.current_k
    assert seen == [32, 16, 8, 4, 2, 2]
    layer.reset_parameters()
    assert layer.current_k == 32
    layer = layer_with(k=2, k_start=32, k_steps=4).eval()
    layer(x, no_edges()).sum().backward()
    assert layer.current_k == 32


@pytest.mark.parametrize('reentrant', [False, True])
def test_schedule_counts_a_checkpointed_step_once(reentrant: bool) -> None:
    layer, x = layer_with(k=2, k_start=32, k_steps=4), features(Data(num_nodes=50)).requires_grad_()
    again = copy.deepcopy(layer)
    for step in range(1, 4):
        layer(x, no_edges()).square().sum().backward()
        checkpoint(again, x, no_edges(), use_reentrant=reentrant).square().sum().backward()
        torch.testing.assert_close(again.lin_k.weight.grad, layer.lin_k.weight.grad)
        assert layer.step == again.step == step


@pytest.mark.parametrize('reentrant', [False, True])
def test_a_layer_that_is_called_twice_and_checkpointed_keeps_its_k(reentrant: bool) -> None:
    layer, x = layer_with(k=2, k_start=32, k_steps=4), features(Data(num_nodes=50)).requires_grad_()
    again = copy.deepcopy(layer)
    for _ in range(2):
        layer(layer(x, no_edges()), no_edges()).square().sum().backward()
        first = checkpoint(again, x, no_edges(), use_reentrant=reentrant)
        checkpoint(again, first, no_edges(), use_reentrant=reentrant).square().sum().backward()
        torch.testing.assert_close(again.lin_k.weight.grad, layer.lin_k.weight.grad)
    assert again.current_k == layer.current_k == 2


@pytest.mark.parametrize('looked_at', [False, True])
@pytest.mark.parametrize('graph', ['undirected', 'batch', 'batch with an empty graph'])
def test_diversity_has_the_gradient_of_its_term(graph: str, looked_at: bool) -> None:
    data, weight = GRAPHS[graph.split()[0]](), 0.7
    if 'empty' in graph:
        data.batch = torch.where(data.batch > 0, data.batch + 1, 0)
    layer, x = layer_with(k=3, diversity=weight), features(data)
    plain = layer_with(k=3)
    result = layer(x, data.edge_index, batch=data.get('batch'), return_attention_weights=looked_at)
    (result[0] if looked_at else result).square().sum().backward()
    out, (pairs, alpha) = plain(x, data.edge_index, batch=data.get('batch'), return_attention_weights=True)
    batch = data.get('batch', torch.zeros(data.num_nodes, dtype=torch.long))
    term = 0.0
    for index in batch.unique():
        nodes = (batch == index).nonzero().flatten()
        received = torch.stack([alpha[pairs[0] == node].sum(0) for node in nodes])
        term = term + ((received - received.mean(0)) ** 2).mean() / batch.unique().numel()
    (out.square().sum() + weight * term).backward()
    for parameter, plain_parameter in zip(layer.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(parameter.grad, plain_parameter.grad)
    plain = layer_with(k=3)
    plain(x, data.edge_index, batch=data.get('batch')).square().sum().backward()
    assert not torch.allclose(layer.lin_k.weight.grad, plain.lin_k.weight.grad)


def test_diversity_with_dropout_of_the_coefficients_is_that_before_it() -> None:
    data, x = GRAPHS['batch'](), features(GRAPHS['batch']())
    grads = []
    for looked_at in (False, True):
        layer = layer_with(k=3, diversity=0.7, attention_dropout=1.0)
        result = layer(x, data.edge_index, batch=data.batch, return_attention_weights=looked_at)
        (result[0] if looked_at else result).sum().backward()
        grads.append(layer.lin_k.weight.grad)
    torch.testing.assert_close(*grads)
    assert grads[0].abs().max() > 1e-6


# Where it is used -----------------------------------------------------------------------------------------------------


def test_attention_dropout_keeps_the_mean() -> None:
    layer, x = layer_with(k=8, attention_dropout=0.5), features(Data(num_nodes=20))
    torch.manual_seed(0)
    draws = torch.stack([layer(x, no_edges()).detach() for _ in range(400)])
    expected = layer.eval()(x, no_edges()).detach()
    error = (draws.mean(0) - expected) / (draws.std(0) / 20)
    assert error.abs().max() < 5
    assert draws.std(0).min() > 0


def test_explainer_finds_the_coefficients() -> None:
    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attention = KMIPAttention(CHANNELS, HEADS, k=5)

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            return self.attention(x, edge_index)

    x, edge_index = torch.randn(8, CHANNELS), ring(8)
    explainer = Explainer(
        Model().eval(),
        AttentionExplainer(),
        explanation_type='model',
        edge_mask_type='object',
        model_config={'mode': 'regression', 'task_level': 'node', 'return_type': 'raw'},
    )
    mask = explainer(x, edge_index).edge_mask
    assert mask.shape == (edge_index.size(1),)
    assert (mask > 0).any()


def test_inside_a_gps_layer_it_learns() -> None:
    torch.manual_seed(0)
    data = Batch.from_data_list([Data(edge_index=ring(size), num_nodes=size) for size in (3, 8, 21)])
    layer = TopoGPSConv(CHANNELS, GCNConv(CHANNELS, CHANNELS), attn=KMIPAttention(CHANNELS, HEADS, k=4))
    x = torch.randn(data.num_nodes, CHANNELS, requires_grad=True)
    layer(x, data.edge_index, data.batch).square().mean().backward()
    assert all(parameter.grad is not None and parameter.grad.isfinite().all() for parameter in layer.parameters())
    assert any(parameter.grad.abs().max() > 0 for parameter in layer.attn.lin_q.parameters())


def test_copies_and_states() -> None:
    layer, x = layer_with(), features(Data(num_nodes=9))
    again = copy.deepcopy(layer)
    torch.testing.assert_close(again(x, no_edges()), layer(x, no_edges()))
    again.reset_parameters()
    assert not torch.allclose(again(x, no_edges()), layer(x, no_edges()))
    again.load_state_dict(layer.state_dict())
    torch.testing.assert_close(again(x, no_edges()), layer(x, no_edges()))
    assert 'k=3' in repr(layer)


@pytest.mark.parametrize('value', [math.nan, math.inf])
def test_input_that_is_not_finite(value: float) -> None:
    layer, x = layer_with(), features(Data(num_nodes=9))
    x[4, 0] = value
    with pytest.raises(
        ValueError, match=r'^x: got features with (nan|inf|-inf) in their queries; accepted: features that make finite'
    ):
        layer(x, no_edges())
