"""Edge weights that are learned from edge features: the equation, gradients through masks, the GPS layer, and bad input."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from oracles import as_numpy, masked_attention, power_series, weight_matrix
from scipy.linalg import expm
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck
from torch.func import functional_call
from torch.nn import Linear, Module
from torch_geometric.data import Batch, Data
from torch_geometric.nn import GCNConv, GINEConv

from pyg_topomask import Graph
from pyg_topomask.graphs import locality
from pyg_topomask.masks import (
    AdjacencyMask,
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
from pyg_topomask.nn import (
    EdgeWeights,
    GatedGCNConv,
    KMIPAttention,
    MaskedLinearAttention,
    MaskedSoftmaxAttention,
    RWGNKAttention,
    TopoGPSConv,
)


def tree(size: int, seed: int) -> Data:
    """A tree with edges in both directions, and with features of nodes and edges."""
    generator = torch.Generator().manual_seed(seed)
    child = torch.arange(1, size)
    parent = (torch.rand(size - 1, generator=generator) * child).long()
    edges = torch.cat([torch.stack([parent, child]), torch.stack([child, parent])], dim=1)
    x, edge_attr = (torch.randn(rows, 4, generator=generator).double() for rows in (size, 2 * size - 2))
    return Data(x=x, edge_index=edges, edge_attr=edge_attr)


def batch() -> Batch:
    return Batch.from_data_list([tree(2, 0), tree(5, 1), tree(3, 2)])


def random(weights: EdgeWeights) -> EdgeWeights:
    torch.manual_seed(0)
    for parameter in weights.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return weights.double()


def oracle(weights: EdgeWeights, data: Data) -> np.ndarray:
    """w = 2 sigmoid(v max(W e + b + U (x_i + x_j), 0) + c), one edge at a time."""
    numbers = {name: parameter.detach().numpy() for name, parameter in weights.named_parameters()}
    x, ends, logits = data.x.numpy(), data.edge_index.t().tolist(), []
    for (source, target), features in zip(ends, data.edge_attr.numpy(), strict=True):
        hidden = numbers['lin_edge.weight'] @ features + numbers['lin_edge.bias']
        if 'lin_node.weight' in numbers:
            hidden = hidden + numbers['lin_node.weight'] @ (x[source] + x[target])
        logits.append(float((numbers['lin_out.weight'] @ np.maximum(hidden, 0) + numbers['lin_out.bias'])[0]))
    if weights.symmetric:
        logits = [np.mean([z for z, other in zip(logits, ends, strict=True) if set(other) == set(pair)]) for pair in ends]
    return 2 / (1 + np.exp(-np.array(logits)))


@pytest.mark.parametrize('channels', [None, 4])
@pytest.mark.parametrize('symmetric', [False, True])
def test_weights_are_those_of_the_equation(channels: int | None, symmetric: bool) -> None:
    weights, data = random(EdgeWeights(4, channels, 3, symmetric)), batch()
    actual = weights(data.edge_attr, data.edge_index, data.x)
    np.testing.assert_allclose(actual.detach().numpy(), oracle(weights, data), rtol=1e-12)
    expected = as_numpy(Data(edge_index=data.edge_index, edge_weight=actual.detach(), num_nodes=10))
    matrix = np.zeros((10, 10))
    matrix[tuple(expected[0])] = expected[1]
    assert np.array_equal(matrix, matrix.T) == symmetric


def test_edges_of_equal_features_have_equal_weights_in_both_directions() -> None:
    data, weights = batch(), random(EdgeWeights(4, 4))
    both = torch.cat([data.edge_index, data.edge_index.flip(0)], dim=1)
    first, second = weights(data.edge_attr.repeat(2, 1), both, data.x).chunk(2)
    torch.testing.assert_close(first, second, rtol=1e-14, atol=0)


def test_masks_start_as_those_without_weights() -> None:
    data = batch()
    weights = EdgeWeights(4, 4).double()
    assert torch.equal(weights(data.edge_attr, data.edge_index, data.x), torch.ones(data.num_edges, dtype=torch.float64))
    random(weights).reset_parameters()
    assert torch.equal(weights(data.edge_attr, data.edge_index, data.x), torch.ones(data.num_edges, dtype=torch.float64))


# Attention ---------------------------------------------------------------------------------------------------------------

#: Masks of two heads that hand gradients on to edge weights.
MASKS: dict[str, Callable[[], Mask]] = {
    'adjacency': lambda: AdjacencyMask(2, normalization='sym'),
    'power_series': lambda: PowerSeriesMask(2, order=3),
    'power_series_of_rw': lambda: PowerSeriesMask(2, order=4, parameterization='f', normalization='rw'),
    'heat': lambda: HeatKernelMask(2, lam=[0.5, 1.5], tolerance=1e-13),
    'heat_of_walks': lambda: HeatKernelMask(2, 'random_walk_laplacian', tolerance=1e-13),
    'heat_of_adjacency': lambda: HeatKernelMask(2, 'adjacency', lam=0.4, tolerance=1e-13),
    'tree': lambda: TreeMask(2),
    'grf': lambda: GRFMask(2, num_walks=8),
    'asymmetric_grf': lambda: GRFMask(2, asymmetric=True),
    'stitched_grf': lambda: GRFMask(2, stitch=2, normalization='rw'),
    'hop': lambda: HopMask(2, max_hops=3, path_weights='mean'),
    'largest_product': lambda: HopMask(2, max_hops=3, path_weights='max'),
    'rwgnk': lambda: RWGNKMask(2, num_walks=None, transition='weight'),
    'expander': lambda: ExpanderMask(2, degree=2, input_weights=True),
    'sum': lambda: HopMask(2) + 0.5 * PowerSeriesMask(2, order=2).T,
    'heads': lambda: MultiHeadMask(AdjacencyMask(1), HeatKernelMask(1, tolerance=1e-13)),
}


def needs_symmetry(name: str) -> bool:
    return name in ('heat', 'heads', 'heat_of_adjacency')


def attention(name: str) -> MaskedLinearAttention:
    torch.manual_seed(1)
    return MaskedLinearAttention(4, 2, MASKS[name](), feature_map='elu').double()


@pytest.mark.parametrize('name', ['power_series', 'heat'])
def test_attention_under_learned_weights_is_that_of_the_dense_matrix(name: str) -> None:
    weights, layer, data = random(EdgeWeights(4, 4, symmetric=True)), attention(name), batch()
    out = layer(data.x, data.edge_index, weights(data.edge_attr, data.edge_index, data.x), data.batch)
    data.edge_weight = torch.from_numpy(oracle(weights, data))
    if name == 'heat':
        adjacency = weight_matrix(data, None)
        laplacian = np.diag(adjacency.sum(0)) - adjacency
        matrix = np.stack([expm(-lam * laplacian) for lam in (0.5, 1.5)])
    else:
        matrix = np.stack([power_series(weight_matrix(data, 'sym'), [1, 0.5, 0.25, 0.125])] * 2)
    q, k, v = (lin(data.x).detach().numpy().reshape(-1, 2, 2) for lin in (layer.lin_q, layer.lin_k, layer.lin_v))
    q, k = (np.where(x > 0, x + 1, np.exp(np.minimum(x, 0))) for x in (q, k))
    expected = layer.lin_out(torch.from_numpy(masked_attention(q, k, v, matrix)).flatten(1))
    torch.testing.assert_close(out, expected, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize('name', MASKS)
def test_gradients_reach_the_network(name: str) -> None:
    """First derivatives, and second ones of each kind of operator, are those of finite differences."""
    weights, layer, data = random(EdgeWeights(4, 4, 3, needs_symmetry(name))), attention(name), batch()
    names, numbers = zip(*weights.named_parameters(), strict=True)

    def attend(x: Tensor, *numbers: Tensor) -> Tensor:
        given = data.edge_attr, data.edge_index, x
        weight = functional_call(weights, dict(zip(names, numbers, strict=True)), given)
        return layer(x, data.edge_index, weight, data.batch)

    inputs = [tensor.detach().requires_grad_() for tensor in (data.x, *numbers)]
    assert gradcheck(attend, inputs, fast_mode=True, atol=1e-6)
    if name in ('adjacency', 'power_series', 'tree', 'grf', 'hop', 'largest_product', 'rwgnk', 'expander'):
        assert gradgradcheck(attend, inputs, fast_mode=True, atol=1e-5)
    grads = torch.autograd.grad(attend(*inputs).square().sum(), inputs)
    assert all(bool(grad.any()) for grad in grads[:-1])  # some masks ignore a common factor


@pytest.mark.parametrize('name', MASKS)
def test_a_batch_equals_its_graphs(name: str) -> None:
    weights, layer, data = random(EdgeWeights(4, 4, 3, needs_symmetry(name))), attention(name), batch()

    def attend(one: Data) -> Tensor:
        return layer(one.x, one.edge_index, weights(one.edge_attr, one.edge_index, one.x), one.get('batch'))

    parameters = list(weights.parameters())
    together, alone = attend(data), torch.cat([attend(one) for one in data.to_data_list()])
    torch.testing.assert_close(together, alone, rtol=1e-9, atol=1e-9)
    grads = [torch.autograd.grad(out.square().sum(), parameters) for out in (together, alone)]
    for first, second in zip(*grads, strict=True):
        torch.testing.assert_close(first, second, rtol=1e-7, atol=1e-9)


def test_graphs_with_other_weights_are_those_made_of_them() -> None:
    data, weight = batch(), torch.rand(14, dtype=torch.float64)
    graph = Graph.from_data(data)
    other = graph.with_weights(weight)
    assert graph.edge_weight is None
    for mask in (AdjacencyMask(normalization='sym'), HeatKernelMask(kind='random_walk_laplacian'), TreeMask()):
        mask(graph)
        expected = mask(Graph(data.edge_index, 10, weight, data.batch)).to_dense()
        assert torch.equal(mask(other).to_dense(), expected)
        assert torch.equal(mask(graph.with_weights(weight)).to_dense(), expected)
    with pytest.raises(ValueError, match=r'^edge_weight: got shape \(13,\) of torch.float64 for 14 edges'):
        graph.with_weights(weight[1:])
    assert torch.equal(graph.with_weights(torch.ones(14, dtype=torch.long)).weight, torch.ones(14))
    with pytest.raises(ValueError, match=r'^edge_weight: got list; accepted: a tensor'):
        graph.with_weights([1.0] * 14)
    with pytest.raises(ValueError, match=r'^edge_weight: got nan at edge 2'):
        graph.with_weights(weight.index_fill(0, torch.tensor([2]), torch.nan))


def test_large_graphs_are_numbered_once_for_all_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    size = 20_000
    monkeypatch.setattr(locality, '_LARGE', size)
    order = torch.randperm(size, generator=torch.Generator().manual_seed(0))
    edges = torch.stack([order, order.roll(1)])
    graph, mask = Graph(torch.cat([edges, edges.flip(0)], dim=1), size), PowerSeriesMask(order=2)
    first, second = (graph.with_weights(weight) for weight in torch.rand(2, 2 * size))
    near = first.near(mask)
    assert near is not None
    assert near.order is second.near(mask).order
    assert torch.equal(near.place, graph.near(mask).place)
    assert torch.equal(near.edge_weight, first.edge_weight)


# The GPS layer -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize('given', [False, True])
@pytest.mark.parametrize('conv', [None, 'gcn', 'gine', 'gated'])
def test_the_gps_layer_gives_its_mask_the_learned_weights_times_those_given(conv: str | None, given: bool) -> None:
    data, convs = batch(), {'gcn': GCNConv(4, 4), 'gine': GINEConv(Linear(4, 4)), 'gated': GatedGCNConv(4)}
    local: Module | None = convs[conv].double() if conv else None
    weight = torch.rand(14, dtype=torch.float64) + 0.5 if given else None
    weights, attn = random(EdgeWeights(4, 4)), attention('power_series')
    layer = TopoGPSConv(4, local, attn=attn, edge_weights=weights, norm=None).double().eval()
    alone = TopoGPSConv(4, local, attn=attn, norm=None).double().eval()
    alone.mlp = layer.mlp
    kwargs = {} if weight is None else {'edge_weight': weight}
    out = layer(data.x, data.edge_index, data.batch, edge_attr=data.edge_attr, **kwargs)
    learned = weights(data.edge_attr, data.edge_index, data.x) * (1 if weight is None else weight)
    of_conv = {'edge_attr': data.edge_attr} if conv in ('gine', 'gated') else {}
    if conv == 'gcn':
        of_conv = kwargs
    with torch.no_grad():
        hs = []
        edge_attr = None
        if local is not None:
            h = local(data.x, data.edge_index, **of_conv)
            h, edge_attr = h if isinstance(h, tuple) else (h + data.x, None)
            hs.append(h)
        hs.append(attn(data.x, data.edge_index, learned, data.batch) + data.x)
        expected = sum(hs) + layer.mlp(sum(hs))
    actual = out[0] if isinstance(out, tuple) else out
    torch.testing.assert_close(actual, expected)
    assert isinstance(out, tuple) == (edge_attr is not None)
    graph = Graph(data.edge_index, 10, weight, data.batch)
    again = layer(data.x, data.edge_index, data.batch, edge_attr=data.edge_attr, graph=graph, **kwargs)
    torch.testing.assert_close(again[0] if isinstance(again, tuple) else again, expected)


def test_softmax_attention_learns_weights() -> None:
    data, weights = batch(), random(EdgeWeights(4))
    attn = MaskedSoftmaxAttention(4, 2, AdjacencyMask(2))
    layer = TopoGPSConv(4, None, attn=attn, edge_weights=weights, norm=None).double()
    layer(data.x, data.edge_index, data.batch, edge_attr=data.edge_attr).square().sum().backward()
    assert all(bool(parameter.grad.any()) for parameter in weights.parameters())


# Bad input ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ('change', 'message'),
    [
        (lambda e: e[:, 1:], r'shape \(14, 3\) of torch.float64; accepted: \[14, 4\] of torch.float64, a row for each edge'),
        (lambda e: e[:, 0], r'shape \(14,\) of .*; use edge_attr.view\(-1, 1\), and edge_dim=1'),
        (lambda e: torch.cat([e, e[:3]]), r'shape \(17, 4\) of .*; edges that are added later, such as self-loops, need'),
        (
            lambda e: e.long(),
            r'shape \(14, 4\) of torch.int64; .*; use torch.nn.Embedding\(num_types, 4\)\(edge_attr.view\(-1\)\)',
        ),
        (lambda e: e.bool(), r'shape \(14, 4\) of torch.bool; '),
        (lambda e: e.float(), r'torch.float32; accepted: torch.float64, the data type of the parameters'),
        (lambda e: e.index_fill(0, torch.tensor([3]), torch.nan), r'features of edge 3 whose weight is not finite'),
        (lambda e: None, r'NoneType; accepted: \[14, 4\]'),
    ],
)
def test_edge_features_are_refused_by_name(change: Callable[[Tensor], Tensor], message: str) -> None:
    data, weights = batch(), random(EdgeWeights(4))
    with pytest.raises(ValueError, match=rf'^edge_attr: got {message}'):
        weights(change(data.edge_attr), data.edge_index)


def test_edges_are_refused_by_name() -> None:
    data, weights = batch(), random(EdgeWeights(4))
    for edges, given in (
        (data.edge_index.t(), r'shape \(14, 2\)'),
        (torch.eye(10).to_sparse_csr(), 'a sparse matrix'),
        (None, 'None'),
    ):
        with pytest.raises(
            ValueError, match=rf'^edge_index: got {given}.*; accepted: the edges in the order of their features'
        ):
            weights(data.edge_attr, edges)


def test_features_that_are_missing_are_named() -> None:
    data = batch()
    with pytest.raises(ValueError, match=r'^x: got None; accepted: the features of the nodes, \[N, 4\], or channels=None'):
        random(EdgeWeights(4, 4))(data.edge_attr, data.edge_index)
    layer = TopoGPSConv(4, None, attn=attention('adjacency'), edge_weights=random(EdgeWeights(4))).double()
    with pytest.raises(ValueError, match=r'^edge_attr: got None; accepted: the features of the edges, \[E, 4\]'):
        layer(data.x, data.edge_index, data.batch)


@pytest.mark.parametrize('attn', [RWGNKAttention(4), KMIPAttention(4), 'pyg', MaskedLinearAttention(4)])
def test_attention_without_gradients_of_weights_is_refused(attn: Module | str) -> None:
    with pytest.raises(
        ValueError, match=r'^edge_weights: got an EdgeWeights for \w+, which .*; accepted: None, and .*AdjacencyMask'
    ):
        TopoGPSConv(4, None, attn=attn, edge_weights=EdgeWeights(4))
    with pytest.raises(ValueError, match=r'^edge_weights: got .*; accepted: None and an EdgeWeights, such as'):
        TopoGPSConv(4, None, attn=attention('adjacency'), edge_weights=4)


def test_asymmetric_weights_of_a_symmetric_kernel_are_refused() -> None:
    data, layer = batch(), attention('heat')
    weight = random(EdgeWeights(4))(data.edge_attr, data.edge_index)
    with pytest.raises(
        ValueError, match=r'^edge_index: got edges whose weights differ .*; EdgeWeights\(symmetric=True\) learns'
    ):
        layer(data.x, data.edge_index, weight, data.batch)


@pytest.mark.filterwarnings('error')
def test_weights_of_a_series_that_grows_warn() -> None:
    data, layer = batch(), MaskedLinearAttention(4, 2, PowerSeriesMask(normalization=None)).double()
    weights = random(EdgeWeights(4))
    torch.nn.init.constant_(weights.lin_out.bias, 9.0)
    with pytest.raises(UserWarning, match='The spectral radius of'):
        layer(data.x, data.edge_index, weights(data.edge_attr, data.edge_index), data.batch)
