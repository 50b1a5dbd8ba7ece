import numpy as np
import pytest
import torch
from explicit_layers import (
    CHANNELS,
    HEADS,
    LAYERS,
    expected_coefficients,
    features,
    positive_digraph,
)
from graphs import small_digraph, small_graph
from grids import covering
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.explain import AttentionExplainer, Explainer, GNNExplainer
from torch_geometric.explain.algorithm.utils import clear_masks, set_masks
from torch_geometric.nn import GATConv

from pyg_topomask.nn import TopoGPSConv


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


@pytest.mark.parametrize(('name', 'graph', 'reduce'), covering(LAYERS, EXPLAINED, ['max', 'mean']))
def test_explanations_are_the_coefficients_of_the_edges(name: str, graph: str, reduce: str) -> None:
    """An edge stands for the attention of one end to the other, by the flow of the mask; of equal edges the first one does."""
    data, layer = EXPLAINED[graph](), LAYERS[name]()
    x = features(data)
    _, coefficients = expected_coefficients(layer, x, data)
    expected, before = [], set()
    for edge in data.edge_index.t().tolist():
        j, i = edge if layer.flow == 'source_to_target' else reversed(edge)
        per_head = coefficients[:, i, j] if (i, j) not in before else np.zeros(HEADS)
        expected.append(per_head.max() if reduce == 'max' else per_head.mean())
        before.add((i, j))
    assert np.any(expected)
    np.testing.assert_allclose(explain(layer, x, data, reduce).numpy(), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize('name', ['softmax', 'asymmetric'])
def test_explanations_of_a_node_keep_the_edges_that_it_attends_along(name: str) -> None:
    """In-edges: its output does not depend on what attends to it."""
    data, layer = positive_digraph(), LAYERS[name]()
    data.edge_weight = data.edge_weight.float()
    x = features(data)
    everywhere, of_node = explain(layer, x, data), explain(layer, x, data, level='node', index=3)
    incoming = data.edge_index[1] == 3
    assert everywhere[incoming].any()
    reached = torch.isin(data.edge_index, torch.cat([torch.tensor([3]), data.edge_index[0, incoming]])).all(0)
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
        matrix = torch.zeros(6, 6).index_put(tuple(pairs), alpha.amax(1))
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


def test_inside_a_gps_layer_coefficients_can_be_explained() -> None:
    data, attn = small_graph(), LAYERS['asymmetric']()
    layer, x = TopoGPSConv(CHANNELS, None, attn=attn, norm=None), features(data)
    torch.testing.assert_close(explain(layer, x, data), explain(attn, x, data))


@pytest.mark.parametrize('name', LAYERS)
def test_weights_of_edges_that_explainers_learn(name: str) -> None:
    """Attention along an edge is multiplied by its weight. Attention to other nodes stays."""
    LAYERS['softmax']()  # PyG generates code of a class, which its subclasses then have, at its first instance
    data, layer = positive_digraph(), LAYERS[name]().eval()
    data.edge_weight = data.edge_weight.float()
    x = features(data)
    with torch.no_grad():
        weight = torch.linspace(0, 1, data.num_edges)
        set_masks(layer, weight, data.edge_index, apply_sigmoid=False)
        out = layer(x, data.edge_index, data.edge_weight)
        clear_masks(layer)
        _, coefficients = expected_coefficients(layer, x, data)
    source, target = data.edge_index if layer.flow == 'source_to_target' else data.edge_index.flip(0)
    coefficients = torch.tensor(coefficients).float()
    coefficients[:, target, source] *= weight
    value = layer.lin_v(x).view(len(x), HEADS, -1)
    expected = layer.lin_out(torch.einsum('hij,jhd->ihd', coefficients, value).flatten(1))
    torch.testing.assert_close(out, expected, rtol=1e-4, atol=1e-5)


def test_gnn_explainer_trains_weights_of_edges() -> None:
    data, layer = small_graph(), LAYERS['grf_softmax']()
    explainer = Explainer(
        layer,
        GNNExplainer(epochs=3),
        explanation_type='model',
        edge_mask_type='object',
        model_config={'mode': 'regression', 'task_level': 'node', 'return_type': 'raw'},
    )
    assert explainer(features(data), data.edge_index).edge_mask.shape == (data.num_edges,)
