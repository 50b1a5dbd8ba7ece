"""Edge features in attention over pairs of nodes: the equation, gradients, batches, the GPS layer, and bad input."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from graphs import GRAPHS, small_digraph, uneven_graphs
from grids import covering
from oracles import as_numpy, same_graph
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck
from torch.func import functional_call
from torch_geometric.data import Data
from torch_geometric.explain import AttentionExplainer, Explainer
from torch_geometric.nn import GCNConv, GINEConv
from torch_geometric.utils import scatter, softmax

from pyg_topomask import Graph
from pyg_topomask.graphs import locality
from pyg_topomask.masks import AdjacencyMask, ExpanderMask, GRFMask, HopMask, Mask, SinDegreeMask
from pyg_topomask.nn import (
    AsymmetricGRFAttention,
    EdgeWeights,
    GRFSoftmaxAttention,
    KMIPAttention,
    MaskedSoftmaxAttention,
    MaskEncoding,
    TopoGPSConv,
    attention,
)
from pyg_topomask.nn.explicit_attention import ExplicitAttention
from pyg_topomask.ops import softmax_attention as softmax_rows
from pyg_topomask.testing import assert_batch_invariant

CHANNELS, HEADS, DIM = 8, 2, 3


def under(mask: object, **options: object) -> MaskedSoftmaxAttention:
    return MaskedSoftmaxAttention(CHANNELS, HEADS, mask, edge_dim=DIM, **options)


LAYERS: dict[str, Callable[[], ExplicitAttention]] = {
    'adjacency': lambda: under(AdjacencyMask(HEADS, normalization='sym')),
    'outgoing': lambda: under(AdjacencyMask(self_loop=None, flow='target_to_source')),
    'transposed': lambda: under(AdjacencyMask(HEADS, self_loop=None).T),
    'hop': lambda: under(HopMask(HEADS, max_hops=2)),
    'product': lambda: under(HopMask(HEADS, max_hops=2) * SinDegreeMask(HEADS)),
    'all_pairs': lambda: under(SinDegreeMask(HEADS)),
    'walks': lambda: GRFSoftmaxAttention(CHANNELS, HEADS, asymmetric=True, edge_dim=DIM),
    'kmip': lambda: KMIPAttention(CHANNELS, HEADS, k=2, edge_dim=DIM),
    'kmip_one_head': lambda: KMIPAttention(CHANNELS, k=3, edge_dim=DIM),
    'kmip_edges': lambda: KMIPAttention(
        CHANNELS, HEADS, k=1, val_dim=5, extra_edges='input', flow='target_to_source', edge_dim=DIM
    ),
}


OUTGOING = 'target_to_source'


@pytest.mark.parametrize(
    ('mask', 'rows'),
    [
        (lambda: HopMask(max_hops=1), [1, 2, 3]),
        (lambda: HopMask(max_hops=1, flow=OUTGOING), [0, 1, 2]),
        (lambda: HopMask(max_hops=1, flow=OUTGOING) * SinDegreeMask(), [0, 1, 2]),
        (lambda: HopMask(max_hops=1).T * SinDegreeMask(), [0, 1, 2]),
        (lambda: HopMask(max_hops=1) * SinDegreeMask(flow=OUTGOING), [1, 2, 3]),
        (lambda: HopMask(max_hops=1, flow=OUTGOING) * ExpanderMask(input_edges=False), [0, 1, 2]),
        (lambda: SinDegreeMask(flow=OUTGOING), [1, 2, 3]),
    ],
)
def test_features_of_edges_are_those_along_which_the_mask_attends(mask: Callable[[], Mask], rows: list[int]) -> None:
    """On a directed path: node i + 1 has the edge from node i, and with the other flow node i has it."""
    layer, x = random(under(mask())).float(), torch.randn(4, CHANNELS)
    edge_index = torch.tensor([[0, 1, 2], [1, 2, 3]])
    out, plain = (layer(x, edge_index, edge_attr=features) for features in (torch.randn(3, DIM), torch.zeros(3, DIM)))
    assert (out - plain).abs().amax(1).gt(1e-6).nonzero().flatten().tolist() == rows


def random(layer: ExplicitAttention) -> ExplicitAttention:
    torch.manual_seed(0)
    for parameter in layer.edge_terms.parameters():
        torch.nn.init.normal_(parameter)
    return layer.double()


def featured(data: Data, seed: int = 0) -> Data:
    """With features of nodes and edges, and without edge weights."""
    generator, edges = torch.Generator().manual_seed(seed), data.edge_index
    x = torch.randn(data.num_nodes, CHANNELS, generator=generator, dtype=torch.float64)
    edge_attr = torch.randn(edges.size(1), DIM, generator=generator, dtype=torch.float64)
    return Data(x=x, edge_index=edges, edge_attr=edge_attr, batch=data.get('batch'))


def mask_of(layer: ExplicitAttention, data: Data, q: np.ndarray, k: np.ndarray) -> np.ndarray:
    """Factors of the exponentiated scores, [H or 1, N, N]: the mask, or the pairs that k-MIP attention chooses."""
    if not isinstance(layer, KMIPAttention):
        return layer.mask(Graph(data.edge_index, data.num_nodes, None, data.batch)).to_dense().detach().double().numpy()
    score = np.where(same_graph(data) > 0, np.einsum('ihd,jhd->hij', q, k), -np.inf)
    chosen = (np.argsort(np.argsort(-score, kind='stable'), kind='stable') < layer.k) & (score > -np.inf)
    if layer.extra_edges is not None:
        row, col = as_numpy(data, layer.flow)[0]
        chosen[:, row, col] = True
    return chosen.astype(float)


def oracle(layer: ExplicitAttention, data: Data) -> tuple[Tensor, np.ndarray]:
    """alpha_ij ~ M_ij exp(q_i k_j / sqrt(d)) mean_e exp(w e + c), and values v_j + sum_e softmax_e(w e + c) (W e + c'), one by
    one.
    """
    lins = (layer.lin_q, layer.lin_k, layer.lin_v)
    q, k, v = (lin(data.x).unflatten(1, (layer.heads, -1)).detach().numpy() for lin in lins)
    numbers = {name: parameter.detach().numpy() for name, parameter in layer.edge_terms.named_parameters()}
    edges, e = as_numpy(data, layer.flow)[0].T.tolist(), data.edge_attr.numpy()
    mask, out = mask_of(layer, data, q, k), np.zeros_like(v)
    alpha = np.zeros((layer.heads, len(q), len(q)))
    for head in range(layer.heads):
        factor = np.exp(e @ numbers['lin_bias.weight'][head] + numbers['lin_bias.bias'][head])
        added = e @ numbers['lin_value.weight'].reshape(layer.heads, -1, DIM)[head].T
        added = added + numbers['lin_value.bias'].reshape(layer.heads, -1)[head]
        for i in range(len(q)):
            joined = [[n for n, ends in enumerate(edges) if ends == [i, j]] for j in range(len(q))]
            mean = [factor[several].mean() if several else 1.0 for several in joined]
            row = mask[head if len(mask) > 1 else 0, i] * np.exp(k[:, head] @ q[i, head] / np.sqrt(q.shape[2])) * mean
            alpha[head, i] = row / row.sum() if row.sum() > 0 else row
            for j, several in enumerate(joined):
                value = v[j, head] + (factor[several] @ added[several] / factor[several].sum() if several else 0.0)
                out[i, head] += alpha[head, i, j] * value
    return layer.lin_out(torch.from_numpy(out).flatten(1)), alpha


@pytest.mark.parametrize(
    ('name', 'graph', 'looked_at'),
    covering(LAYERS, ['directed', 'parallel_edges', 'batch', 'no_edges'], [False, True]),
)
def test_output_and_coefficients_are_those_of_the_equations(name: str, graph: str, looked_at: bool) -> None:
    layer, data = random(LAYERS[name]()), featured(GRAPHS[graph]())
    expected, coefficients = oracle(layer, data)
    arguments = (data.x, data.edge_index, None, data.batch)
    if not looked_at:
        torch.testing.assert_close(layer(*arguments, edge_attr=data.edge_attr), expected, rtol=1e-7, atol=1e-7)
        return
    out, (pairs, alpha) = layer(*arguments, edge_attr=data.edge_attr, return_attention_weights=True)
    torch.testing.assert_close(out, expected, rtol=1e-7, atol=1e-7)
    matrix = np.zeros_like(coefficients)
    matrix[:, pairs[1], pairs[0]] = alpha.detach().t().numpy()
    np.testing.assert_allclose(matrix, coefficients, atol=1e-7)


@pytest.mark.parametrize('heads', [1, 2])
def test_self_loops_in_graphs_with_fewer_nodes_than_keys(heads: int) -> None:
    """The slots of a search that find no key hold the node itself."""
    layer = random(KMIPAttention(CHANNELS, heads, k=3, edge_dim=DIM))
    loops = torch.arange(5).repeat(2, 1)
    data = featured(Data(edge_index=loops, num_nodes=5, batch=torch.tensor([0, 0, 1, 1, 1])))
    expected, _ = oracle(layer, data)
    torch.testing.assert_close(layer(data.x, loops, batch=data.batch, edge_attr=data.edge_attr), expected)


@pytest.mark.parametrize('dtype', [torch.bfloat16, torch.float16])
@pytest.mark.parametrize('name', LAYERS)
def test_half_precision(name: str, dtype: torch.dtype) -> None:
    layer, data = random(LAYERS[name]()).to(dtype), featured(GRAPHS['batch']()).apply(lambda x: x.to(dtype), 'x', 'edge_attr')
    out = layer(data.x, data.edge_index, batch=data.batch, edge_attr=data.edge_attr)
    assert out.dtype == dtype
    assert bool(out.isfinite().all())
    out.float().sum().backward()
    assert layer.edge_terms.lin_value.weight.grad.dtype == dtype


@pytest.mark.parametrize('name', LAYERS)
def test_large_biases(name: str) -> None:
    layer, data = random(LAYERS[name]()), featured(GRAPHS['parallel_edges']())
    data.edge_attr = 100 * data.edge_attr  # exponentials up to about e^500
    expected, _ = oracle(layer, data)
    torch.testing.assert_close(layer(data.x, data.edge_index, edge_attr=data.edge_attr), expected, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize('constant', [-300.0, 300.0])
def test_a_bias_of_all_pairs_changes_nothing(constant: float) -> None:
    pairs, x = torch.ones(5, 5).nonzero().t(), torch.randn(5, CHANNELS)
    for layer in (
        KMIPAttention(CHANNELS, HEADS, k=3, edge_dim=1),
        MaskedSoftmaxAttention(CHANNELS, HEADS, HopMask(), edge_dim=1),
    ):
        plain = layer(x, pairs, edge_attr=torch.ones(25, 1))
        layer.edge_terms.lin_bias.weight.data.fill_(constant)
        out = layer(x, pairs, edge_attr=torch.ones(25, 1))
        torch.testing.assert_close(out, plain)
        out.square().sum().backward()
        assert layer.lin_q.weight.grad.abs().max() > 0


def test_parallel_edges_are_messages_of_pyg() -> None:
    """Under the adjacency matrix, each edge has a logit and a message of its own."""
    layer, data = random(under(AdjacencyMask(self_loop=None))), featured(GRAPHS['parallel_edges']())
    source, target = data.edge_index
    q, k, v = (lin(data.x).view(-1, HEADS, CHANNELS // HEADS) for lin in (layer.lin_q, layer.lin_k, layer.lin_v))
    logit = (q[target] * k[source]).sum(-1) / (CHANNELS // HEADS) ** 0.5 + layer.edge_terms.lin_bias(data.edge_attr)
    alpha = softmax(logit, target, num_nodes=data.num_nodes).unsqueeze(-1)
    value = v[source] + layer.edge_terms.lin_value(data.edge_attr).view(-1, HEADS, CHANNELS // HEADS)
    expected = layer.lin_out(scatter(alpha * value, target, dim_size=data.num_nodes).flatten(1))
    torch.testing.assert_close(layer(data.x, data.edge_index, edge_attr=data.edge_attr), expected)


@pytest.mark.parametrize('name', LAYERS)
def test_the_layer_starts_as_one_without(name: str) -> None:
    layer, data = LAYERS[name]().double(), featured(small_digraph())
    out = layer(data.x, data.edge_index, edge_attr=data.edge_attr)
    random(layer).reset_parameters()
    layer.double()
    again = layer(data.x, data.edge_index, edge_attr=data.edge_attr)
    layer.edge_terms = None
    torch.testing.assert_close(layer(data.x, data.edge_index), again)
    assert not torch.equal(out, again)


@pytest.mark.parametrize('name', LAYERS)
def test_gradients(name: str) -> None:
    layer, data = random(LAYERS[name]()), featured(GRAPHS['parallel_edges']())
    names, numbers = zip(*layer.edge_terms.named_parameters(prefix='edge_terms'), strict=True)

    def attend(x: Tensor, edge_attr: Tensor, *numbers: Tensor) -> Tensor:
        given = dict(zip(names, numbers, strict=True))
        return functional_call(layer, given, (x, data.edge_index), {'edge_attr': edge_attr})

    inputs = [x.detach().requires_grad_() for x in (data.x, data.edge_attr, *numbers)]
    assert gradcheck(attend, inputs, fast_mode=True)
    assert gradgradcheck(attend, inputs, fast_mode=True, atol=1e-4)
    grads = torch.autograd.grad(attend(*inputs).square().sum(), inputs)
    assert all(grad.any() for grad, name in zip(grads, ('x', 'e', *names), strict=True) if name != 'edge_terms.lin_bias.bias')


@pytest.mark.parametrize('name', LAYERS)
def test_batch_is_one_by_one(name: str) -> None:
    layer, graphs = random(LAYERS[name]()), [featured(data, seed) for seed, data in enumerate(uneven_graphs())]
    for data in graphs:
        del data.batch

    def run(x: Tensor, *given: Tensor | None, graph: Graph) -> Tensor:
        return layer(x, *given, graph=graph, edge_attr=graph.attribute('edge_attr'))

    assert_batch_invariant(run, graphs, 1e-6)


@pytest.mark.parametrize('name', ['adjacency', 'kmip'])
def test_training_after_inference_on_the_same_graph(name: str) -> None:
    layer, data = random(LAYERS[name]()), featured(small_digraph())
    graph = Graph.from_data(data)
    with torch.inference_mode():
        expected = layer(data.x, graph=graph, edge_attr=data.edge_attr)
    out = layer(data.x, graph=graph, edge_attr=data.edge_attr)
    out.sum().backward()
    torch.testing.assert_close(out, expected)


def test_layers_under_other_masks_share_a_graph() -> None:
    data = featured(small_digraph())
    graph = Graph.from_data(data)
    for name in (*LAYERS, *LAYERS):
        layer = random(LAYERS[name]())
        out = layer(data.x, graph=graph, edge_attr=data.edge_attr)
        torch.testing.assert_close(out, layer(data.x, data.edge_index.clone(), edge_attr=data.edge_attr))


def test_large_graphs_take_other_numbers_of_the_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    size, generator = 20_000, torch.Generator().manual_seed(0)
    order = torch.randperm(size, generator=generator)
    edges = torch.stack([order, order.roll(1)])
    x, edge_attr = (torch.randn(size, width, generator=generator) for width in (CHANNELS, DIM))
    layer = random(under(HopMask(HEADS))).float()
    expected = layer(x, graph=Graph(edges, size), edge_attr=edge_attr)
    monkeypatch.setattr(locality, '_LARGE', size)
    graph = Graph(edges, size)
    torch.testing.assert_close(layer(x, graph=graph, edge_attr=edge_attr), expected)
    assert graph.near(layer.mask) is not None


@pytest.mark.parametrize('name', ['adjacency', 'all_pairs', 'kmip'])
def test_dropout_and_autocast(name: str) -> None:
    layer, data = random(LAYERS[name]()), featured(GRAPHS['batch']())
    layer.attention_dropout = 1.0
    given = {'batch': data.batch, 'edge_attr': data.edge_attr}
    torch.testing.assert_close(layer(data.x, data.edge_index, **given), layer.lin_out.bias.expand_as(data.x))
    layer.eval().float()
    expected = layer(data.x.float(), data.edge_index, batch=data.batch, edge_attr=data.edge_attr.float()).detach()
    with torch.autocast('cpu', torch.bfloat16):
        out = layer(data.x.float(), data.edge_index, batch=data.batch, edge_attr=data.edge_attr.float())
    assert out.dtype == torch.bfloat16
    assert float((out.detach() - expected).norm() / expected.norm()) < (1.0 if name == 'kmip' else 0.05)  # it may choose others


def test_explainers_weigh_the_edges() -> None:
    layer, data = random(under(AdjacencyMask(self_loop=None))), featured(small_digraph())
    explainer = Explainer(
        layer, AttentionExplainer(), 'model', {'mode': 'regression', 'task_level': 'node'}, edge_mask_type='object'
    )
    mask = explainer(data.x, data.edge_index, edge_attr=data.edge_attr).edge_mask
    _, alpha = oracle(layer, data)
    np.testing.assert_allclose(mask, alpha.max(0)[data.edge_index[1], data.edge_index[0]], rtol=1e-9)


# The GPS layer -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize('conv', [None, 'gcn', 'gine'])
@pytest.mark.parametrize('learned', [False, True])
def test_gps_layer_hands_edge_features_on(conv: str | None, learned: bool) -> None:
    data, attn = featured(GRAPHS['batch']()), LAYERS['adjacency']()
    local = {None: lambda: None, 'gcn': lambda: GCNConv(8, 8), 'gine': lambda: GINEConv(torch.nn.Linear(8, 8), edge_dim=DIM)}[
        conv
    ]()
    weights = EdgeWeights(DIM) if learned else None
    layer = TopoGPSConv(CHANNELS, local, attn=attn, norm=None, edge_weights=weights).double()
    random(attn)
    if weights is not None:
        torch.nn.init.normal_(weights.lin_out.weight)
    out = layer(data.x, data.edge_index, data.batch, edge_attr=data.edge_attr)
    weight = None if weights is None else weights(data.edge_attr, data.edge_index)
    h = attn(data.x, data.edge_index, weight, data.batch, edge_attr=data.edge_attr) + data.x
    if local is not None:
        h = h + local(data.x, data.edge_index, **({'edge_attr': data.edge_attr} if conv == 'gine' else {})) + data.x
    torch.testing.assert_close(out, h + layer.mlp(h))


def test_words_take_edge_dim() -> None:
    for word, options in (('Hop', {'feature_map': 'softmax'}), ('Expander', {}), ('KMIP', {}), ('GRFSoftmax', {})):
        assert attention(word, CHANNELS, HEADS, edge_dim=DIM, **options).edge_terms.lin_bias.in_features == DIM
    with pytest.raises(ValueError, match=r'^edge_dim: got 3 for linear attention; accepted: None; feature_map="softmax" reads'):
        attention('Hop', CHANNELS, HEADS, edge_dim=DIM)
    with pytest.raises(ValueError, match=r'^edge_dim: got an option that AsymmetricGRF has not'):
        attention('AsymmetricGRF', CHANNELS, HEADS, edge_dim=DIM)


# Bad input ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize('name', ['adjacency', 'kmip'])
def test_edge_features_are_refused_by_name(name: str) -> None:
    layer, data = random(LAYERS[name]()), featured(small_digraph())
    e, number = data.edge_attr, data.num_edges
    for wrong, message in (
        (None, rf'None; accepted: the features of the edges, \[E, {DIM}\]'),
        (e[:, 1:], rf'shape \({number}, 2\) of torch.float64; accepted: \[{number}, 3\]'),
        (torch.cat([e, e]), rf'shape \({2 * number}, 3\) of .*; edges that are added later'),
        (e[:, 0], r'shape .*; use edge_attr.view\(-1, 1\), and edge_dim=1'),
        (e.long(), r'shape .* of torch.int64; .*; use torch.nn.Embedding'),
        (e.float(), r'torch.float32; accepted: torch.float64'),
        (e.index_fill(0, torch.tensor([2]), torch.nan), r'features of edge 2 with the biases \[nan, nan\]; accepted: finite'),
    ):
        with pytest.raises(ValueError, match=rf'^edge_attr: got {message}'):
            layer(data.x, data.edge_index, edge_attr=wrong)
    adj_t = torch.sparse_coo_tensor(data.edge_index.flip(0), torch.ones(number), (6, 6)).to_sparse_csr()
    with pytest.raises(ValueError, match=r'^edge_index: got a sparse matrix; accepted: the edges in the order'):
        layer(data.x, adj_t, edge_attr=e)


def test_what_cannot_be_done_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    layer, data = random(LAYERS['kmip']()), featured(small_digraph())
    with pytest.raises(ValueError, match=r'^x: got a batch of torch.func.vmap; accepted: one without edge_dim'):
        torch.func.vmap(lambda x: layer(x, data.edge_index, edge_attr=data.edge_attr))(torch.stack([data.x, data.x]))
    layer = random(under(SinDegreeMask()))
    monkeypatch.setattr(softmax_rows, '_MOST_PAIRS', 35)
    with pytest.raises(ValueError, match=r'^edge_dim: got 3 for 36 pairs of nodes, .*; accepted: up to 35 pairs, and None'):
        layer(data.x, data.edge_index, edge_attr=data.edge_attr)
    graph = Graph.from_data(data)
    monkeypatch.setattr(type(graph.segments), 'is_whole', False)
    with pytest.raises(ValueError, match=r'^graph: got a sharded graph; accepted: graphs of one process'):
        MaskEncoding(HopMask(), 4)(graph)


def test_layers_without_edge_dim_refuse_edge_features() -> None:
    data = featured(small_digraph())
    for layer in (
        MaskedSoftmaxAttention(CHANNELS, 2, GRFMask(positive=True)),
        AsymmetricGRFAttention(CHANNELS),
        KMIPAttention(CHANNELS),
    ):
        with pytest.raises(ValueError, match=r'^edge_attr: got edge features for \w+ without edge_dim, which reads none; '):
            layer.double()(data.x, data.edge_index, edge_attr=data.edge_attr)
    with pytest.raises(ValueError, match=r'^edge_dim: got 0'):
        KMIPAttention(CHANNELS, edge_dim=0)
