from typing import Any

import pytest
import torch
from graphs import GRAPH_NAMES, GRAPHS, small_graph, small_weighted_graph, uneven_graphs
from torch import Tensor
from torch.nn import Linear
from torch_geometric.nn import GATConv, GCNConv, GINEConv, GPSConv, MessagePassing, SAGEConv
from torch_geometric.utils import subgraph

from pyg_topomask import Graph
from pyg_topomask.errors import ArgumentError
from pyg_topomask.masks import HopMask
from pyg_topomask.nn import GRFAttention, HopAttention, MaskedLinearAttention, TopoGPSConv


def attention() -> GRFAttention:
    return GRFAttention(8, 2, num_walks=8, feature_map='elu')


def features(nodes: int) -> Tensor:
    return torch.randn(nodes, 8, generator=torch.Generator().manual_seed(3))


@pytest.mark.parametrize('norm', ['batch_norm', 'layer_norm', 'graph_norm', None])
@pytest.mark.parametrize('local', [True, False])
def test_layer_is_the_gps_recipe(local: bool, norm: str | None) -> None:
    data, x = GRAPHS['batch'](), features(40)
    layer = TopoGPSConv(8, GCNConv(8, 8) if local else None, norm=norm, attn=attention())
    calls = [(layer.attn(x, data.edge_index, batch=data.batch) + x, layer.norm2)]
    if local:
        calls.append((layer.conv(x, data.edge_index) + x, layer.norm1))

    def apply(norm_layer: torch.nn.Module | None, h: Tensor) -> Tensor:
        if norm_layer is None:
            return h
        return norm_layer(h, batch=data.batch) if layer.norm_with_batch else norm_layer(h)

    total = sum(apply(norm_layer, h) for h, norm_layer in calls)
    expected = apply(layer.norm3, total + layer.mlp(total))
    torch.testing.assert_close(layer(x, data.edge_index, data.batch), expected, rtol=1e-4, atol=1e-5)


def test_attentions_of_the_package_are_no_attn_type() -> None:
    with pytest.raises(
        ValueError, match=r"^attn_type: got 'grf'; accepted: None, .*; an attention of this package is .* attn="
    ):
        TopoGPSConv(8, None, attn_type='grf')


@pytest.mark.parametrize('attn_type', ['multihead', 'performer'])
def test_without_attn_the_layer_is_that_of_pyg_for_each_graph(attn_type: str) -> None:
    # Alone: PyG's PerformerAttention clears the values of padding only. Its keys stay in the denominator (2.8.1).
    data, x = GRAPHS['batch'](), features(40)
    layer = TopoGPSConv(8, GCNConv(8, 8), heads=2, attn_type=attn_type).eval()
    reference = GPSConv(8, GCNConv(8, 8), heads=2, attn_type=attn_type).eval()
    reference.load_state_dict(layer.state_dict())
    parts = x.split([graph.num_nodes for graph in uneven_graphs()])
    alone = torch.cat([reference(part, graph.edge_index) for part, graph in zip(parts, uneven_graphs(), strict=True)])
    out = layer(x, data.edge_index, 2 * data.batch)  # graphs without nodes in between
    torch.testing.assert_close(out, alone)
    out.sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in layer.parameters())


def test_no_global_attention() -> None:
    data, x = small_graph(), features(6)
    layer = TopoGPSConv(8, GCNConv(8, 8), norm=None, attn_type=None)
    total = layer.conv(x, data.edge_index) + x
    torch.testing.assert_close(layer(x, data.edge_index), total + layer.mlp(total))
    assert not any('attn' in name for name, _ in layer.named_parameters())
    layer.reset_parameters()


def test_neither_local_nor_global() -> None:
    layer, x = TopoGPSConv(8, None, norm=None, attn_type=None), features(6)
    torch.testing.assert_close(layer(x, small_graph().edge_index), x + layer.mlp(x))


def test_attention_is_called_and_changes_the_output() -> None:
    data, x = small_graph(), features(6)
    layer = TopoGPSConv(8, GCNConv(8, 8), attn=attention())
    expected = layer(x, data.edge_index)
    with torch.no_grad():
        layer.attn.lin_v.weight.mul_(2.0)
    assert not torch.allclose(layer(x, data.edge_index), expected)


def test_local_layers_with_edge_features() -> None:
    data = small_graph()
    layer = TopoGPSConv(8, GINEConv(Linear(8, 8), edge_dim=3), norm=None, attn=attention())
    layer(features(6), data.edge_index, edge_attr=torch.randn(14, 3)).square().sum().backward()
    assert all(parameter.grad is not None and parameter.grad.any() for parameter in layer.parameters())


class AnyKeyword(MessagePassing):
    """A local layer whose signature names no edge weight, and passes it on."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = GCNConv(8, 8)

    def forward(self, x: Tensor, edge_index: Tensor, **kwargs: Tensor) -> Tensor:
        return self.conv(x, edge_index, **kwargs)


@pytest.mark.parametrize(
    ('conv', 'takes_weight'),
    [(None, False), (GATConv(8, 8), False), (GCNConv(8, 8), True), (AnyKeyword(), True)],
    ids=['none', 'gat', 'gcn', 'any'],
)
def test_edge_weights_reach_the_attention_and_the_local_layers_that_take_them(
    conv: MessagePassing | None, takes_weight: bool
) -> None:
    data, x = small_weighted_graph(), features(6)
    weight = data.edge_weight.abs().float()
    layer = TopoGPSConv(8, conv, norm=None, attn=attention())
    total = layer.attn(x, data.edge_index, edge_weight=weight) + x
    if conv is not None:
        total = total + x + (conv(x, data.edge_index, edge_weight=weight) if takes_weight else conv(x, data.edge_index))
    expected = total + layer.mlp(total)
    torch.testing.assert_close(layer(x, data.edge_index, edge_weight=weight), expected, rtol=1e-4, atol=1e-5)


def test_edge_weights_that_nothing_takes_are_refused() -> None:
    data, layer = small_graph(), TopoGPSConv(8, GATConv(8, 8), attn_type=None)
    with pytest.raises(TypeError, match='edge_weight'):
        layer(features(6), data.edge_index, edge_weight=torch.ones(14))


@pytest.mark.parametrize('norm', ['layer_norm', 'batch_norm', None])
def test_gradients_reach_every_parameter(norm: str | None) -> None:
    data = GRAPHS['batch']()
    layer = TopoGPSConv(8, GCNConv(8, 8), norm=norm, attn=attention())
    weight = torch.randn(40, 8)
    (layer(features(40), data.edge_index, data.batch) * weight).sum().backward()
    assert all(parameter.grad is not None for parameter in layer.parameters())
    assert layer.attn.mask.modulation.grad.any()


def test_layers_share_the_state_of_a_common_graph() -> None:
    data, x = small_graph(), features(6)
    graph, prepared = Graph.from_data(data), []
    layers = [TopoGPSConv(8, GCNConv(8, 8), attn=attention()) for _ in range(3)]
    for layer in layers:
        original = layer.attn.mask.prepare
        layer.attn.mask.prepare = lambda *args, prepare=original: prepared.append(1) or prepare(*args)
        x = layer(x, data.edge_index, graph=graph)
    assert len(prepared) == 1


def test_dropout_in_training_only() -> None:
    data, x = small_graph(), features(6)
    layer = TopoGPSConv(8, GCNConv(8, 8), dropout=0.5, attn=attention())
    assert not torch.equal(layer(x, data.edge_index), layer(x, data.edge_index))
    layer.eval()
    assert torch.equal(layer(x, data.edge_index), layer(x, data.edge_index))


def test_reset_resets_the_attention() -> None:
    layer = TopoGPSConv(8, GCNConv(8, 8), attn=attention())
    with torch.no_grad():
        layer.attn.mask.modulation.zero_()
    before = layer.attn.lin_q.weight.clone()
    layer.reset_parameters()
    assert not torch.equal(layer.attn.lin_q.weight, before)
    assert layer.attn.mask.modulation.any()


@pytest.mark.parametrize('name', GRAPH_NAMES)
def test_every_graph(name: str) -> None:
    data = GRAPHS[name]()
    graph = Graph.from_data(data)
    layer = TopoGPSConv(8, None, norm='layer_norm', norm_kwargs={'mode': 'node'}, attn=attention())
    x = features(data.num_nodes or 0).requires_grad_()
    out = layer(x, graph.edge_index, graph.batch)
    out.sum().backward()
    assert out.shape == x.shape
    assert out.isfinite().all()
    assert x.grad.isfinite().all()


def test_attention_of_pyg_on_a_batch_without_nodes() -> None:
    layer = TopoGPSConv(8, None, attn_type='multihead')
    edge_index, batch = torch.empty(2, 0, dtype=torch.long), torch.empty(0, dtype=torch.long)
    assert layer(torch.empty(0, 8), edge_index, batch).shape == (0, 8)


@pytest.mark.parametrize(('attn', 'message'), [('GRF', "attn: got 'GRF'"), (GRFAttention(16), 'attn: got 16 output channels')])
def test_attentions_that_do_not_fit_are_refused(attn: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TopoGPSConv(8, None, attn=attn)


def test_local_layers_are_modules() -> None:
    with pytest.raises(ValueError, match=r"^conv: got 'GCN'; accepted: None and a local layer, for example GCNConv\(8, 8\)"):
        TopoGPSConv(8, 'GCN', attn=GRFAttention(8))


def test_a_local_layer_that_returns_something_else_is_refused() -> None:
    layer, data = TopoGPSConv(8, GATConv(8, 8), attn=attention()), small_graph()
    with pytest.raises(
        ValueError, match=r'^conv: got a layer that returns \(Tensor, tuple\); accepted: layers that return x, or'
    ):
        layer(features(6), data.edge_index, return_attention_weights=True)


@pytest.mark.parametrize('attn_type', ['multihead', 'performer'])
def test_heads_that_do_not_divide_the_channels_are_refused(attn_type: str) -> None:
    with pytest.raises(ValueError, match=r'^heads: got 3 for 10 channels; accepted: divisors'):
        TopoGPSConv(10, None, heads=3, attn_type=attn_type)
    with pytest.raises(ValueError, match=r'^channels: got 0'):
        TopoGPSConv(0, None, attn_type=attn_type)


def test_arguments_of_pygs_attention_beside_another_are_refused() -> None:
    assert TopoGPSConv(8, None, heads=2, attn=attention()).heads == 2
    with pytest.raises(ValueError, match=r'^attn: got the mask HopMask; accepted: .*MaskedLinearAttention\(8, heads=2, mask='):
        TopoGPSConv(8, None, attn=HopMask(2))
    with pytest.raises(ValueError, match=r'^heads: got 4 with attn, which has 2 heads; accepted:'):
        TopoGPSConv(8, None, heads=4, attn=attention())
    with pytest.raises(ValueError, match=r"^attn_type: got 'performer' with attn, which replaces it"):
        TopoGPSConv(8, None, attn=attention(), attn_type='performer')
    for arguments in ({'attn': attention()}, {'attn_type': None}):
        with pytest.raises(ValueError, match=r"^attn_kwargs: got {'dropout': 0.1}, which"):
            TopoGPSConv(8, None, attn_kwargs={'dropout': 0.1}, **arguments)
    assert 'heads=2' in repr(TopoGPSConv(8, None, attn=attention()))


@pytest.mark.parametrize('as_data', [False, True])
@pytest.mark.parametrize(
    'settings',
    [
        {'norm': 'layer_norm', 'attn': HopMask},
        {'norm': 'graph_norm', 'attn': HopMask},
        {'norm': 'layer_norm', 'attn': None},
        {'norm': None, 'attn_type': 'multihead'},
    ],
)
def test_the_graph_alone_keeps_the_graphs_of_a_batch_apart(settings: dict[str, Any], as_data: bool) -> None:
    options = dict(settings)
    if 'attn' in options:
        options |= {'attn': options['attn'] and MaskedLinearAttention(8, 2, HopMask(2)), 'attn_type': None}
    layer, data, x = TopoGPSConv(8, None, **options).eval(), GRAPHS['batch'](), features(40)
    out = layer(x, data.edge_index, graph=data if as_data else Graph.from_data(data))
    for graph, nodes in zip(data.to_data_list(), x.split(data.ptr.diff().tolist()), strict=True):
        first, out = out[: len(nodes)], out[len(nodes) :]
        torch.testing.assert_close(first, layer(nodes, graph.edge_index), rtol=1e-4, atol=1e-4)


def test_edges_are_those_of_the_local_layer_and_weights_of_both() -> None:
    data = small_graph()
    layer, x, graph = TopoGPSConv(8, GCNConv(8, 8), norm=None, attn=attention()).eval(), features(6), Graph.from_data(data)
    fewer = layer(x, data.edge_index[:, :4], graph=graph)  # as after dropping edges
    local, attended = layer.conv(x, data.edge_index[:, :4]) + x, layer.attn(x, data.edge_index) + x
    torch.testing.assert_close(fewer, (local + attended) + layer.mlp(local + attended))
    with pytest.raises(ValueError, match=r'^edge_weight: got other weights than those of graph'):
        layer(x, data.edge_index, graph=graph, edge_weight=torch.rand(data.num_edges))
    with pytest.raises(ValueError, match=r'^heads: got GRFAttention; accepted: .* attn='):
        TopoGPSConv(8, None, GRFAttention(8))


@pytest.mark.parametrize('norm', [None, 'graph_norm', 'instance_norm'])
def test_gradients_with_int32_indices(norm: str | None) -> None:
    """Gradients of torch's scatter are wrong with int32 indices."""
    layer = TopoGPSConv(8, SAGEConv(8, 8), norm=norm, attn=MaskedLinearAttention(8, 2))
    edge_index, batch = torch.tensor([[0, 1, 2, 3, 4, 0], [1, 0, 3, 2, 3, 1]]), torch.tensor([0, 0, 1, 1, 1])
    grads = []
    for dtype in (torch.int64, torch.int32):
        x = features(5).requires_grad_()
        layer(x, edge_index.to(dtype), batch.to(dtype)).square().sum().backward()
        grads.append(x.grad)
    torch.testing.assert_close(*grads)


def test_arguments_of_a_convolution_without_one() -> None:
    layer, edge_index = TopoGPSConv(8, None, attn=MaskedLinearAttention(8, 2)), torch.tensor([[0, 1], [1, 0]])
    with pytest.warns(UserWarning, match='^edge_attr: got edge features, which have no effect here: neither conv nor attn'):
        layer(features(2), edge_index, edge_attr=torch.ones(2, 3), edge_weight=torch.ones(2))
    layer(features(2), edge_index, edge_attr=torch.ones(2, 3))  # once
    with pytest.raises(TypeError, match=r"^TopoGPSConv.forward\(\) got an unexpected keyword argument 'bacth'"):
        layer(features(2), edge_index, bacth=torch.zeros(2, dtype=torch.long))


def test_disjoint_samples_whose_nodes_are_mixed() -> None:
    """The sample of pyg-lib's DisjointNeighborTest, of nodes 2 and 3 of a cycle: what docs/layers.md says to do with it."""
    edge_index = torch.tensor([[2, 3, 4, 5, 6, 0, 0, 7, 8, 1, 1, 9], [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]])
    batch, x = torch.tensor([0, 1, 0, 0, 1, 1, 0, 0, 1, 1]), torch.randn(10, 8)
    layer = TopoGPSConv(8, SAGEConv(8, 8), norm='layer_norm', attn=HopAttention(8, 2)).eval()
    with pytest.raises(ArgumentError, match=r'^batch: got a vector that is not ascending, 0 after 1; .*argsort\(stable=True\)'):
        layer(x, edge_index, batch)
    order = batch.argsort(stable=True)
    place = order.argsort()
    out = layer(x[order], place[edge_index], batch[order])[place]
    for sample in (0, 1):
        nodes = batch == sample
        alone, _ = subgraph(nodes, edge_index, relabel_nodes=True)
        torch.testing.assert_close(out[nodes], layer(x[nodes], alone))
