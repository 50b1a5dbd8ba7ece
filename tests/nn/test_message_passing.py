"""Attentions inside what PyG has for its convolutions."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from graphs import small_digraph, small_graph
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.explain import AttentionExplainer, Explainer, GNNExplainer
from torch_geometric.explain.algorithm.utils import clear_masks, set_masks
from torch_geometric.nn import DeepGCNLayer, GCNConv, HeteroConv, Sequential, to_hetero, to_hetero_with_bases

from pyg_topomask import Graph, nn
from pyg_topomask.masks import AdjacencyMask, CausalMask, HopMask, SinDegreeMask, TreeMask
from pyg_topomask.nn import MaskedLinearAttention

LAYERS: dict[str, Callable[[], torch.nn.Module]] = {
    'grf': lambda: nn.GRFAttention(8, 2),
    'rwgnk': lambda: nn.RWGNKAttention(8, 2),
    'sin_degree': lambda: nn.SinDegreeAttention(8, 2),
    'toeplitz': lambda: nn.ToeplitzAttention(8, 2),
    'hop': lambda: nn.HopAttention(8, 2),
    'sums': lambda: nn.HopAttention(8, 2, sums=True),
    'linear': lambda: MaskedLinearAttention(8, 2),
    'softmax': lambda: nn.MaskedSoftmaxAttention(8, 2, AdjacencyMask()),
    'kmip': lambda: nn.KMIPAttention(8, 2, k=3),
}


class Net(torch.nn.Module):
    def __init__(self, attention: torch.nn.Module) -> None:
        super().__init__()
        self.first, self.attention = GCNConv(8, 8, add_self_loops=False), attention

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.attention(self.first(x, edge_index).relu(), edge_index)


def features(seed: int = 3) -> Tensor:
    return torch.randn(6, 8, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize('name', LAYERS)
def test_to_hetero_gives_each_type_of_edges_an_attention(name: str) -> None:
    edges = {('a', 'to', 'a'): small_graph().edge_index, ('b', 'to', 'b'): small_graph().edge_index.flip(1)}
    edges['a', 'by', 'a'] = edges['a', 'to', 'a'][:, [0, 1, 2, 3]]
    edges['a', 'by', 'a'] = torch.cat([edges['a', 'by', 'a'], edges['a', 'by', 'a'].flip(0)], dim=1)
    model = to_hetero(Net(LAYERS[name]()), (['a', 'b'], list(edges)))
    x = {'a': features(), 'b': features(4)}
    out = model(x, edges)
    expected = {'a': torch.zeros(6, 8), 'b': torch.zeros(6, 8)}
    for key, edge_index in edges.items():
        among = [name for name in edges if name[0] == key[0]]
        inner = sum(model.first['__'.join(other)](x[key[0]], edges[other]) for other in among).relu()
        expected[key[0]] += model.attention['__'.join(key)](inner, edge_index)
    for kind in x:
        torch.testing.assert_close(out[kind], expected[kind])
    sum(each.sum() for each in out.values()).backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


@pytest.mark.parametrize('name', ['grf', 'softmax'])
def test_edges_between_types_are_refused_by_name(name: str) -> None:
    conv = HeteroConv({('a', 'to', 'b'): LAYERS[name](), ('a', 'to', 'a'): LAYERS[name]()})
    edges = {('a', 'to', 'a'): small_graph().edge_index}
    assert conv({'a': features(), 'b': features()}, edges)['a'].shape == (6, 8)
    with pytest.raises(ValueError, match=r'^x: got a pair, for edges between two types of nodes; .*HeteroConv takes'):
        conv({'a': features(), 'b': features()}, edges | {('a', 'to', 'b'): small_graph().edge_index})


@pytest.mark.parametrize('name', ['sin_degree', 'hop', 'kmip'])
def test_edge_types_that_weight_messages_are_refused_by_name(name: str) -> None:
    edges = {('a', 'to', 'a'): small_graph().edge_index}
    model = to_hetero_with_bases(Net(LAYERS[name]()), (['a'], list(edges)), 2, {'x': 8})
    with pytest.raises(ValueError, match=r'^module: got .* in to_hetero_with_bases; accepted: attentions in to_hetero'):
        model({'a': features()}, edges)


@pytest.mark.parametrize('name', LAYERS)
def test_inside_sequential_and_deep_gcn_layers(name: str) -> None:
    layer, x, edge_index = LAYERS[name](), features(), small_graph().edge_index
    expected = layer(x, edge_index)
    model = Sequential('x, edge_index', [(layer, 'x, edge_index -> x'), torch.nn.ReLU()])
    torch.testing.assert_close(model(x, edge_index), expected.relu())
    deep = DeepGCNLayer(layer, torch.nn.LayerNorm(8), torch.nn.ReLU(), block='plain')
    torch.testing.assert_close(deep(x, edge_index), deep.norm(expected).relu())


def test_state_dictionaries_have_no_other_keys() -> None:
    names = [f'lin_{each}.{kind}' for each in ('q', 'k', 'v', 'out') for kind in ('weight', 'bias')]
    assert list(MaskedLinearAttention(8, 2).state_dict()) == names
    assert [name for name, module in MaskedLinearAttention(8).named_modules() if list(module.parameters(recurse=False))] == [
        'lin_q',
        'lin_k',
        'lin_v',
        'lin_out',
    ]


# Explainers -----------------------------------------------------------------------------------------------------------

EXPLAINED: dict[str, Callable[[], MaskedLinearAttention]] = {
    'hop': lambda: nn.HopAttention(8, 2, feature_map='elu'),
    'adjacency': lambda: MaskedLinearAttention(8, 2, AdjacencyMask(2).T, 'elu', sums=True),
    'hadamard': lambda: MaskedLinearAttention(8, 2, AdjacencyMask(2) * SinDegreeMask(2), 'elu'),
}


def coefficients(layer: MaskedLinearAttention, x: Tensor, data: Data) -> np.ndarray:
    """Of linear attention, [H, N, N], by its equation with the layer's projections and mask."""
    q, k = (layer.by_head(lin(x)) for lin in (layer.lin_q, layer.lin_k))
    q, k = (tensor.detach().numpy() for tensor in layer.feature_map(q, k, Graph.from_data(data).segments))
    share = np.einsum('nhm,khm->hnk', q, k) * layer.mask(data).to_dense().detach().numpy()
    total = share.sum(-1, keepdims=True)
    return np.divide(share, total, out=np.zeros_like(share), where=total != 0)


def explainer(model: torch.nn.Module, algorithm: object) -> Explainer:
    config = {'mode': 'regression', 'task_level': 'graph', 'return_type': 'raw'}
    return Explainer(model, algorithm, explanation_type='model', edge_mask_type='object', model_config=config)


@pytest.mark.parametrize('name', EXPLAINED)
def test_explainers_read_and_weight_the_coefficients_of_sparse_masks(name: str) -> None:
    data, layer, x = Data(edge_index=small_digraph().edge_index, num_nodes=6), EXPLAINED[name]().eval(), features()
    before, alpha = layer(x, data.edge_index), coefficients(layer, x, data)
    j, i = data.edge_index.numpy() if layer.flow == 'source_to_target' else data.edge_index.flip(0).numpy()
    seen = explainer(layer, AttentionExplainer())(x, data.edge_index).edge_mask
    np.testing.assert_allclose(seen.numpy(), alpha[:, i, j].max(0), rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(layer(x, data.edge_index), before)

    weight = torch.linspace(0, 1, data.num_edges)
    set_masks(layer, weight, data.edge_index, apply_sigmoid=False)
    out = layer(x, data.edge_index)
    clear_masks(layer)
    alpha[:, i, j] *= weight.numpy()
    expected = torch.einsum('hij,jhd->ihd', torch.from_numpy(alpha).float(), layer.by_head(layer.lin_v(x)))
    if layer.lin_sum is not None:
        expected = torch.cat([expected, layer._summed_under(layer.mask(data), x)], dim=-1)
    torch.testing.assert_close(out, layer.lin_out(expected.flatten(1)), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize('mask', [TreeMask, CausalMask])
def test_masks_without_entries_leave_explanations_to_other_layers(mask: type) -> None:
    edge_index, x = torch.tensor([[0, 1, 2, 3, 4], [1, 2, 3, 4, 5]]), features()
    model = Net(MaskedLinearAttention(8, 2, mask(2))).eval()
    assert explainer(model, GNNExplainer(epochs=2))(x, edge_index).edge_mask.shape == (5,)
    with pytest.raises(ValueError, match='gradients for edges'):
        explainer(model.attention, GNNExplainer(epochs=2))(x, edge_index)
    with pytest.raises(ValueError, match='attention coefficients'):
        explainer(model.attention, AttentionExplainer())(x, edge_index)


def test_gnn_explainer_trains_weights_of_edges() -> None:
    layer = MaskedLinearAttention(8, 2, HopMask(2))
    seen = explainer(layer, GNNExplainer(epochs=3))(features(), small_graph().edge_index).edge_mask
    assert seen.shape == (14,)
