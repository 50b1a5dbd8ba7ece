from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from graphs import GRAPH_NAMES, GRAPHS, random_edges
from oracles import linear
from rounding import BOUND, relative_error
from torch import Tensor
from torch.nn import Linear, Sequential

from pyg_topomask import Graph
from pyg_topomask.nn import MaskedLinearAttention, TopoGPSConv
from pyg_topomask.nn.local_layers import GatedGCNConv, PositionalGate, PositionalGINEConv
from pyg_topomask.testing import assert_permutation_equivariant


def normalized(x: np.ndarray) -> np.ndarray:
    return (x - x.mean(0)) / np.sqrt(x.var(0) + 1e-5)


def oracle(
    conv: GatedGCNConv, x: np.ndarray, edge_index: np.ndarray, e: np.ndarray, weight: np.ndarray | float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """Node by node and edge by edge, with the statistics of the batch, for new batch norms."""
    source, target = edge_index
    self_term, value = linear(conv.lin_self, x), linear(conv.lin_neighbor, x)
    edge = linear(conv.lin_target, x)[target] + linear(conv.lin_source, x)[source] + linear(conv.lin_edge, e)
    gate = weight / (1 + np.exp(-edge))
    out = self_term.copy()
    for node in range(len(x)):
        into = target == node
        out[node] += (gate[into] * value[source[into]]).sum(0) / (gate[into].sum(0) + 1e-6)
    return x + np.maximum(normalized(out), 0), e + np.maximum(normalized(edge), 0)


def inputs(num_nodes: int = 9, num_edges: int = 20, channels: int = 4) -> tuple[Tensor, Tensor, Tensor]:
    edge_index = random_edges(num_nodes - 1, num_edges, seed=1)  # the last node has no edges
    generator = torch.Generator().manual_seed(2)
    x, edge_attr = (torch.randn(n, channels, generator=generator, dtype=torch.float64) for n in (num_nodes, num_edges))
    return x, edge_index, edge_attr


def test_values_are_those_of_the_equations() -> None:
    conv = GatedGCNConv(4).double()
    x, edge_index, edge_attr = inputs()
    out, edge = conv(x, edge_index, edge_attr)
    expected, expected_edge = oracle(conv, x.numpy(), edge_index.numpy(), edge_attr.numpy())
    np.testing.assert_allclose(out.detach().numpy(), expected, atol=1e-12)
    np.testing.assert_allclose(edge.detach().numpy(), expected_edge, atol=1e-12)


def test_messages_count_by_the_distance_of_positions() -> None:
    conv = GatedGCNConv(4, positional=True).double()
    x, edge_index, edge_attr = inputs()
    pe = torch.randn(9, 3, generator=torch.Generator().manual_seed(3), dtype=torch.float64, requires_grad=True)
    weights = position_weights(conv.gate, pe.detach().numpy(), edge_index.numpy())
    expected = oracle(conv, x.numpy(), edge_index.numpy(), edge_attr.numpy(), weights)
    for out, right in zip(conv(x, edge_index, edge_attr, pe), expected, strict=True):
        np.testing.assert_allclose(out.detach().numpy(), right, atol=1e-12)
    gine = PositionalGINEConv(Sequential(Linear(4, 4)), 4).double()
    weights = position_weights(gine.gate, pe.detach().numpy(), edge_index.numpy())
    total = x.numpy().copy()
    np.add.at(total, edge_index[1].numpy(), weights * (x[edge_index[0]] + edge_attr).clamp(min=0).numpy())
    out = gine(x, edge_index, edge_attr, pe)
    np.testing.assert_allclose(out.detach().numpy(), linear(gine.nn[0], total), atol=1e-12)
    assert torch.autograd.gradcheck(lambda pe: gine(x, edge_index, edge_attr, pe), pe)


def position_weights(gate: PositionalGate, pe: np.ndarray, edge_index: np.ndarray) -> np.ndarray:
    distance = np.array([[((pe[i] - pe[j]) ** 2).sum()] for j, i in edge_index.T])
    return 1 / (1 + np.exp(-linear(gate.lin_out, linear(gate.lin_in, distance).clip(min=0))))


def test_positions_must_fit() -> None:
    x, edge_index, edge_attr = (value.float() if value.is_floating_point() else value for value in inputs())
    for pe, given in ((None, 'none for a positional layer'), (torch.zeros(8, 2), r'shape \(8, 2\)')):
        with pytest.raises(ValueError, match=rf'^pe: got {given}.*; accepted: shape \[9, D\]'):
            GatedGCNConv(4, positional=True)(x, edge_index, edge_attr, pe)
    with pytest.raises(ValueError, match=r'^pe: got torch.float64; accepted: torch.float32'):
        GatedGCNConv(4, positional=True)(x, edge_index, edge_attr, torch.zeros(9, 2, dtype=torch.float64))
    with pytest.raises(ValueError, match=r'^pe: got shape \(9, 2\); accepted: None without positional=True'):
        GatedGCNConv(4)(x, edge_index, edge_attr, torch.zeros(9, 2))


def test_without_residual_the_input_is_not_added() -> None:
    conv = GatedGCNConv(4).double()
    x, edge_index, edge_attr = inputs()
    out, edge = conv(x, edge_index, edge_attr)
    conv.residual = False
    plain, plain_edge = conv(x, edge_index, edge_attr)
    torch.testing.assert_close(out, plain + x)
    torch.testing.assert_close(edge, plain_edge + edge_attr)


def test_gradients() -> None:
    conv = GatedGCNConv(2, act='tanh').double()
    x, edge_index, edge_attr = inputs(5, 7, 2)
    x, edge_attr = x.requires_grad_(), edge_attr.requires_grad_()
    assert torch.autograd.gradcheck(lambda x, e: conv(x, edge_index, e), (x, edge_attr))
    sum(output.square().sum() for output in conv(x, edge_index, edge_attr)).backward()
    assert all(parameter.grad is not None for parameter in conv.parameters())


def test_permutation_equivariance() -> None:
    conv = GatedGCNConv(4).eval()

    def run(x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        return conv(x, edge_index, x[edge_index[0]] * x[edge_index[1]])[0]

    assert_permutation_equivariant(run, torch.randn(8, 4), random_edges(8, 20, seed=0), tolerance=1e-5)


@pytest.mark.parametrize('name', GRAPH_NAMES)
def test_every_graph_also_in_training(name: str) -> None:
    graph = Graph.from_data(GRAPHS[name]())
    x = torch.randn(graph.num_nodes, 4, requires_grad=True)
    edge_attr = torch.randn(graph.num_edges, 4, requires_grad=True)
    outputs = GatedGCNConv(4)(x, graph.edge_index, edge_attr)
    sum(output.sum() for output in outputs).backward()
    assert [output.shape for output in outputs] == [x.shape, edge_attr.shape]
    assert all(tensor.isfinite().all() for tensor in (*outputs, x.grad, edge_attr.grad))


def test_closed_gates_give_the_node_itself() -> None:
    conv = GatedGCNConv(4)
    x, edge_index, edge_attr = (tensor.float() if tensor.is_floating_point() else tensor for tensor in inputs())
    with torch.no_grad():
        conv.lin_edge.bias.fill_(-1e4)
    assert all(output.isfinite().all() for output in conv(x, edge_index, edge_attr))


def test_dropout_in_training_only_and_deepcopy() -> None:
    x, edge_index, edge_attr = (tensor.float() if tensor.is_floating_point() else tensor for tensor in inputs())
    conv = GatedGCNConv(4, dropout=0.5)
    assert not torch.equal(conv(x, edge_index, edge_attr)[1], conv(x, edge_index, edge_attr)[1])
    conv.eval()
    expected = conv(x, edge_index, edge_attr)
    assert all(map(torch.equal, copy.deepcopy(conv)(x, edge_index, edge_attr), expected))
    conv.reset_parameters()
    assert not torch.equal(conv(x, edge_index, edge_attr)[0], expected[0])
    assert repr(conv) == 'GatedGCNConv(4, dropout=0.5, residual=True)'


def test_autocast_of_nodes_and_edges() -> None:
    x, edge_index, edge_attr = inputs()
    conv = GatedGCNConv(4).eval()
    expected = copy.deepcopy(conv).double()(x, edge_index, edge_attr)
    with torch.autocast('cpu', torch.bfloat16):
        out = conv(x.float(), edge_index, edge_attr.float())
    for actual, wanted in zip(out, expected, strict=True):
        assert relative_error(actual, wanted) < BOUND * torch.finfo(torch.bfloat16).eps


@pytest.mark.parametrize('attn', [True, False])
def test_gps_layer_hands_the_edge_features_on(attn: bool) -> None:
    """The convolution has its own residual connection: the layer adds none to its output."""
    x, edge_index, edge_attr = (tensor.float() if tensor.is_floating_point() else tensor for tensor in inputs())
    arguments = {'attn': MaskedLinearAttention(4, 2)} if attn else {'attn_type': None}
    layer = TopoGPSConv(4, GatedGCNConv(4), norm=None, **arguments)
    out, edge = layer(x, edge_index, edge_attr=edge_attr)
    local, expected_edge = layer.conv(x, edge_index, edge_attr)
    total = local + layer.attn(x, edge_index) + x if attn else local
    torch.testing.assert_close(edge, expected_edge)
    torch.testing.assert_close(out, total + layer.mlp(total))


@pytest.mark.parametrize('attn_type', ['multihead', 'performer'])
def test_gps_layer_with_the_attention_of_pyg(attn_type: str) -> None:
    x, edge_index, edge_attr = (tensor.float() if tensor.is_floating_point() else tensor for tensor in inputs())
    layer = TopoGPSConv(4, GatedGCNConv(4), heads=2, attn_type=attn_type)
    out, edge = layer(x, edge_index, edge_attr=edge_attr)
    assert out.isfinite().all()
    torch.testing.assert_close(edge, layer.conv(x, edge_index, edge_attr)[1])


def test_node_features_must_fit() -> None:
    x, edge_index, edge_attr = inputs()
    with pytest.raises(ValueError, match=r'^x: got shape .*; accepted: \[N, 4\]'):
        GatedGCNConv(4).double()(x[:, 1:], edge_index, edge_attr)


@pytest.mark.parametrize('shape', [(19, 4), (20, 3)])
def test_edge_features_must_fit(shape: tuple[int, int]) -> None:
    x, edge_index, _ = inputs()
    with pytest.raises(ValueError, match=r'^edge_attr: got shape .*; accepted: \(20, 4\)'):
        GatedGCNConv(4).double()(x, edge_index, torch.zeros(shape, dtype=torch.float64))
