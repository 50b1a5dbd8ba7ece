"""Edge weights of each head: each head of a mask is the mask of its equation under the weights of this head."""

import warnings
from collections.abc import Callable

import numpy as np
import pytest
import torch
from graphs import GRAPH_NAMES, GRAPHS, path, small_digraph, small_graph
from oracles import power_series, weight_matrix
from scipy.linalg import expm
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck
from torch_geometric.data import Data

from pyg_topomask import Graph
from pyg_topomask.graphs import locality
from pyg_topomask.masks import (
    AdjacencyMask,
    CausalMask,
    ExpanderMask,
    GRFMask,
    HeatKernelMask,
    HopMask,
    Mask,
    MultiHeadMask,
    PowerSeriesMask,
    RWGNKMask,
    TreeMask,
)
from pyg_topomask.nn import EdgeWeights, MaskedLinearAttention, MaskedSoftmaxAttention, TopoGPSConv

HEADS = 2
ALPHA = torch.tensor([[1.0, 0.5, 0.25], [0.5, 0.7, 0.1]])


def edges_of(data: Data) -> Tensor:
    return data.edge_index if 'edge_index' in data else torch.empty(2, 0, dtype=torch.long)


def weights(data: Data) -> Tensor:
    """Signed weights of each head, and some that are 0."""
    weight = torch.randn(edges_of(data).size(1), HEADS, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    weight[::5] = 0.0
    return weight.requires_grad_()


def positive(data: Data) -> Tensor:
    return (weights(data).detach().abs() + 0.5).requires_grad_()


def graph_of(data: Data, weight: Tensor) -> Graph:
    return Graph(edges_of(data), data.num_nodes or 0, None, data.get('batch')).with_weights(weight)


def of_head(data: Data, weight: Tensor, head: int) -> Data:
    return Data(edge_index=edges_of(data), edge_weight=weight.detach()[:, head], num_nodes=data.num_nodes)


# The equations -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize('name', GRAPH_NAMES)
def test_heads_have_the_equation_of_their_weights(name: str) -> None:
    data = GRAPHS[name]()
    weight, size = weights(data), data.num_nodes or 0
    matrices = [[weight_matrix(of_head(data, weight, head), kind) for head in range(HEADS)] for kind in (None, 'sym')]
    adjacency = AdjacencyMask(HEADS).double()
    with torch.no_grad():
        adjacency.self_loop.copy_(torch.tensor([0.5, 2.0]))
    expected = np.stack([matrix + loop * np.eye(size) for matrix, loop in zip(matrices[0], (0.5, 2.0), strict=True)])
    graph = graph_of(data, weight)
    np.testing.assert_allclose(adjacency(graph).to_dense().detach().numpy(), expected, atol=1e-12)
    series = PowerSeriesMask(HEADS, 2, ALPHA.double()).double()
    pairs = zip(matrices[1], ALPHA.double().numpy(), strict=True)
    expected = np.stack([power_series(matrix, alpha) for matrix, alpha in pairs])
    np.testing.assert_allclose(series(graph).to_dense().detach().numpy(), expected, rtol=1e-6, atol=1e-9)


def test_heat_kernels_have_the_laplacian_of_each_head() -> None:
    data, mask = small_graph(), HeatKernelMask(HEADS, lam=[0.5, 1.5], tolerance=1e-13).double()
    half = torch.rand(data.num_edges, HEADS, dtype=torch.float64) + 0.5
    back = [data.edge_index.t().tolist().index([j, i]) for i, j in data.edge_index.t().tolist()]
    weight = (half + half[back]).requires_grad_()
    expected = []
    for head, lam in enumerate((0.5, 1.5)):
        adjacency = weight_matrix(of_head(data, weight, head), None)
        expected.append(expm(-lam * (np.diag(adjacency.sum(1)) - adjacency)))
    actual = mask(graph_of(data, weight)).to_dense()
    np.testing.assert_allclose(actual.detach().numpy(), np.stack(expected), rtol=1e-7, atol=1e-9)
    assert bool(torch.autograd.grad(actual.square().sum(), weight)[0].any())


@pytest.mark.parametrize('learnable', [False, True])
def test_trees_have_the_lengths_of_each_head(learnable: bool) -> None:
    data = Data(edge_index=path(5), num_nodes=5)
    half = torch.rand(4, HEADS, dtype=torch.float64) + 0.5
    lower = data.edge_index.min(0).values  # the edge between i and i + 1 has number i
    weight = half[lower].requires_grad_()
    a, b = torch.tensor([-1.0, 0.3]), torch.tensor([0.2, -0.4])
    mask = TreeMask(HEADS, a=a, b=b, learnable=learnable).double()
    place = np.concatenate([np.zeros((1, HEADS)), np.cumsum(half.numpy(), 0)])
    distance = np.abs(place[:, None] - place[None]).transpose(2, 0, 1)
    expected = np.exp(a.double().numpy()[:, None, None] * distance + b.double().numpy()[:, None, None])
    actual = mask(graph_of(data, weight)).to_dense()
    np.testing.assert_allclose(actual.detach().numpy(), expected, rtol=1e-6)
    (grad,) = torch.autograd.grad(actual.sum(), weight)
    # Each edge lengthens the distances of the pairs on its two sides.
    of_edges = torch.zeros(4, HEADS, dtype=torch.float64).index_add(0, lower, grad)
    for edge in range(4):
        crossing = 2 * expected[:, : edge + 1, edge + 1 :].sum((1, 2)) * a.double().numpy()
        np.testing.assert_allclose(of_edges[edge].numpy(), crossing, rtol=1e-6)


#: Masks of two heads, whose heads learn different numbers.
MASKS: dict[str, Callable[[], Mask]] = {
    'adjacency': lambda: AdjacencyMask(HEADS, normalization='rw'),
    'power_series': lambda: PowerSeriesMask(HEADS, order=3),
    'heat_of_walks': lambda: HeatKernelMask(HEADS, 'random_walk_laplacian', tolerance=1e-13),
    'hop': lambda: HopMask(HEADS, max_hops=3, path_weights='mean'),
    'grf': lambda: GRFMask(HEADS, num_walks=8),
    'shared_grf': lambda: GRFMask(HEADS, share_modulation=True, asymmetric=True),
    'rwgnk': lambda: RWGNKMask(HEADS, num_walks=None, transition='weight'),
    'expander': lambda: ExpanderMask(HEADS, degree=2, input_weights=True),
    'sum': lambda: AdjacencyMask(1) + PowerSeriesMask(HEADS, order=2).T,
    'product': lambda: AdjacencyMask(HEADS) * GRFMask(HEADS),
    'scaled': lambda: PowerSeriesMask(HEADS, order=2) * torch.tensor([0.5, 2.0]),
    'learned_scale': lambda: AdjacencyMask(HEADS) * torch.nn.Parameter(torch.tensor([0.5, 2.0])),
    'heads': lambda: MultiHeadMask(AdjacencyMask(1), HopMask(1, path_weights='mean')),
}


def mask_of(name: str) -> Mask:
    mask = MASKS[name]().double()
    torch.manual_seed(0)
    for parameter in mask.parameters():
        torch.nn.init.uniform_(parameter, 0.2, 0.8)
    return mask


@pytest.mark.filterwarnings('ignore:edge_index. got a directed graph')
@pytest.mark.parametrize('name', MASKS)
def test_heads_and_gradients_are_those_of_masks_under_the_weights_of_the_head(name: str) -> None:
    data, mask = small_digraph(), mask_of(name)
    weight, leaves = positive(data), list(mask.parameters())
    together = mask(graph_of(data, weight)).to_dense()
    alone = torch.stack([mask(graph_of(data, weight[:, head])).to_dense()[head] for head in range(HEADS)])
    torch.testing.assert_close(together, alone)
    grads = [torch.autograd.grad(each.sin().sum(), [weight, *leaves]) for each in (together, alone)]
    for one, other in zip(*grads, strict=True):
        torch.testing.assert_close(one, other)
    given = mask(graph_of(data, weight.detach())).to_dense()
    torch.testing.assert_close(given, together)


@pytest.mark.parametrize('name', ['adjacency', 'power_series', 'hop'])
def test_derivatives_are_finite_differences(name: str) -> None:
    data, mask = small_digraph(), mask_of(name)

    def product(weight: Tensor, x: Tensor) -> Tensor:
        return mask(graph_of(data, weight)).matmul(x)

    inputs = positive(data), torch.randn(6, HEADS, 2, dtype=torch.float64, requires_grad=True)
    assert gradcheck(product, inputs)
    assert gradgradcheck(product, inputs, fast_mode=True)


@pytest.mark.parametrize('name', ['power_series', 'hop', 'grf', 'shared_grf'])
def test_large_graphs_take_other_numbers_of_the_nodes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    size, mask = 20_000, mask_of(name)
    order = torch.randperm(size)
    data = Data(edge_index=torch.stack([torch.cat([order, order.roll(1)]), torch.cat([order.roll(1), order])]), num_nodes=size)
    weight, layer = positive(data).detach().float().requires_grad_(), MaskedLinearAttention(8, HEADS, mask.float())
    x = torch.randn(size, 8)
    expected = layer(x, data.edge_index, weight)
    monkeypatch.setattr(locality, '_LARGE', size)
    torch.testing.assert_close(layer(x, data.edge_index.clone(), weight), expected)
    given = Graph(data.edge_index, size)
    assert given.near(PowerSeriesMask()) is not None
    torch.testing.assert_close(layer(x, graph=given.with_weights(weight)), expected)


@pytest.mark.parametrize('name', ['adjacency', 'power_series', 'hop', 'rwgnk'])
def test_a_batch_equals_its_graphs(name: str) -> None:
    data, mask = GRAPHS['batch'](), mask_of(name)
    weight, x = positive(data), torch.randn(data.num_nodes, HEADS, 2, dtype=torch.float64)
    ptr, of_edge = data.ptr.tolist(), data.batch[data.edge_index[0]]
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        together = mask(graph_of(data, weight)).matmul(x)
        alone = [
            mask(graph_of(one, weight[of_edge == number])).matmul(x[ptr[number] : ptr[number + 1]])
            for number, one in enumerate(data.to_data_list())
        ]
    torch.testing.assert_close(together, torch.cat(alone))


# The network and the layers ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize('symmetric', [False, True])
def test_the_network_has_a_row_of_its_last_layer_for_each_head(symmetric: bool) -> None:
    data, edge_attr = small_graph(), torch.randn(small_graph().num_edges, 4)
    weights = EdgeWeights(4, symmetric=symmetric, heads=3)
    assert torch.equal(weights(edge_attr, data.edge_index), torch.ones(data.num_edges, 3))
    for parameter in weights.parameters():
        torch.nn.init.normal_(parameter)
    together = weights(edge_attr, data.edge_index)
    for head in range(3):
        single = EdgeWeights(4, symmetric=symmetric)
        state = weights.state_dict()
        single.load_state_dict(
            state | {f'lin_out.{name}': state[f'lin_out.{name}'][head : head + 1] for name in ('weight', 'bias')}
        )
        torch.testing.assert_close(together[:, head], single(edge_attr, data.edge_index))
    assert EdgeWeights(4, heads=1)(edge_attr, data.edge_index).shape == (data.num_edges,)
    assert repr(weights).endswith(', heads=3)')


@pytest.mark.parametrize('given', [False, True])
def test_layers_learn_weights_of_heads(given: bool) -> None:
    data = small_graph()
    x, edge_attr = torch.randn(6, 8), torch.randn(data.num_edges, 4)
    weights = EdgeWeights(4, heads=2)
    torch.nn.init.normal_(weights.lin_out.weight)
    attn = MaskedLinearAttention(8, 2, PowerSeriesMask())
    layer = TopoGPSConv(8, None, attn=attn, edge_weights=weights, norm=None)
    edge_weight = torch.rand(data.num_edges) if given else None
    out = layer(x, data.edge_index, edge_attr=edge_attr, **({'edge_weight': edge_weight} if given else {}))
    learned = weights(edge_attr, data.edge_index)
    expected = attn(x, data.edge_index, learned * edge_weight.unsqueeze(1) if given else learned) + x
    torch.testing.assert_close(out, expected + layer.mlp(expected))
    out.square().sum().backward()
    assert all(bool(row.any()) for row in weights.lin_out.weight.grad)
    softmax = MaskedSoftmaxAttention(8, 2, AdjacencyMask(2))
    attended = softmax(x, data.edge_index, weights(edge_attr, data.edge_index))
    assert attended.shape == (6, 8)


# Bad input ---------------------------------------------------------------------------------------------------------------


def test_what_takes_no_weights_of_heads_is_refused_by_name() -> None:
    data = small_graph()
    graph = graph_of(data, positive(data))
    for mask in (CausalMask(HEADS), AdjacencyMask(HEADS) + CausalMask(HEADS)):
        with pytest.raises(ValueError, match=r'^edge_weight: got weights of heads for CausalMask; accepted: .*\[E\]; EdgeW'):
            mask(graph)
    with pytest.raises(ValueError, match=r'^edge_weight: got weights of 2 heads for a AdjacencyMask of 3; .*heads=2'):
        AdjacencyMask(3)(graph)
    with pytest.raises(ValueError, match=r'^edge_weight: got weights of several heads; accepted: weights of shape \[E\]'):
        _ = graph.weight
    with pytest.raises(ValueError, match=r'^heads: got 0'):
        EdgeWeights(4, heads=0)
    with pytest.raises(ValueError, match=r'^edge_weight: got nan at edge 1'):
        graph.with_weights(torch.tensor([[1.0, 1.0], [1.0, torch.nan]]).repeat(data.num_edges // 2, 1))


def test_a_mask_warns_once_of_a_directed_graph() -> None:
    data, mask = small_digraph(), GRFMask(HEADS).double()
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter('always')
        for _ in range(2):
            mask(graph_of(data, positive(data)))
    assert len([each for each in record if 'directed graph' in str(each.message)]) == 1
