"""Linear attention that also reads sums under its mask."""

import numpy as np
import pytest
import torch
from explicit_layers import features
from graphs import GRAPH_NAMES, GRAPHS, small_digraph, uneven_graphs, with_features
from grids import covering
from oracles import masked_attention

from pyg_topomask import Graph
from pyg_topomask.masks import AdjacencyMask, GRFMask, HeatKernelMask, HopMask, Mask, PackingMask, PowerSeriesMask
from pyg_topomask.nn import HopAttention, MaskedLinearAttention
from pyg_topomask.testing import assert_batch_invariant, assert_permutation_equivariant

CHANNELS, HEADS = 8, 2


def masks() -> dict[str, Mask | None]:
    signed = PowerSeriesMask(HEADS, 2, torch.tensor([[1.0, -2.0, 0.5], [0.5, 1.0, -1.0]]))
    return {
        'none': None,
        'hop': HopMask(HEADS, 3),
        'grf': GRFMask(HEADS, num_walks=8),
        'signed': signed,
        'heat': HeatKernelMask(HEADS, 'random_walk_laplacian'),
        'transposed': AdjacencyMask(HEADS).T,
        'sum': HopMask(HEADS) + 0.1 * PackingMask(),
    }


def layer(mask: str = 'hop', **settings: object) -> MaskedLinearAttention:
    return MaskedLinearAttention(CHANNELS, HEADS, masks()[mask], **{'feature_map': 'elu', 'sums': True} | settings)


@pytest.mark.parametrize('mask', masks())
def test_output_reads_means_and_sums_under_the_mask(mask: str) -> None:
    attention, data = layer(mask).double(), small_digraph()
    x = features(data).double()
    q, k, v, s = (
        lin(x).view(-1, HEADS, CHANNELS // HEADS)
        for lin in (attention.lin_q, attention.lin_k, attention.lin_v, attention.lin_sum)
    )
    q, k = attention.feature_map(q, k)
    matrix = attention.mask(data).to_dense().detach().numpy()
    mean = masked_attention(*(tensor.detach().numpy() for tensor in (q, k, v)), matrix)
    total = np.einsum('hij,jhd->ihd', np.broadcast_to(matrix, (HEADS, *matrix.shape[1:])), s.detach().numpy().clip(min=0))
    read = np.concatenate([mean, np.sign(total) * np.log1p(np.abs(total))], axis=2).reshape(len(x), -1)
    expected = read @ attention.lin_out.weight.detach().numpy().T + attention.lin_out.bias.detach().numpy()
    out = attention(x, data.edge_index, data.edge_weight)
    np.testing.assert_allclose(out.detach().numpy(), expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize(('mask', 'name'), covering(masks(), GRAPH_NAMES))
def test_every_graph_gives_a_finite_output_and_gradient(mask: str, name: str) -> None:
    data, attention = GRAPHS[name](), layer(mask)
    graph, x = Graph.from_data(data), features(data).requires_grad_()
    out = attention(x, graph.edge_index, graph.edge_weight, graph.batch)
    out.sum().backward()
    assert out.isfinite().all()
    assert x.grad.isfinite().all()


def test_a_batch_and_an_order_of_nodes_change_nothing() -> None:
    graphs = with_features(uneven_graphs())
    for data in graphs:
        data.x, data.edge_weight = data.x.double(), data.edge_weight.double()
    assert_batch_invariant(layer('hop').double(), graphs, tolerance=1e-8)
    data = graphs[-1]
    assert_permutation_equivariant(layer('hop').double(), data.x, data.edge_index, tolerance=1e-8)


def test_sums_count_nodes_where_means_do_not() -> None:
    attention = HopAttention(4, heads=1, max_hops=1, f=torch.ones(2), sums=True)
    ring, chords = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]]), torch.tensor([[0, 2, 1, 3], [2, 0, 3, 1]])
    x = torch.ones(4, 4)
    few, many = (attention(x, edges) for edges in (ring, torch.cat([ring, chords], dim=1)))
    assert not torch.allclose(few, many)
    attention.lin_out.weight.data[:, 4:] = 0
    torch.testing.assert_close(attention(x, ring), attention(x, torch.cat([ring, chords], dim=1)))


def test_large_features_and_half_precision_stay_finite() -> None:
    attention, data = layer('hop'), small_digraph()
    x = features(data)
    assert attention(1e30 * x, data.edge_index).isfinite().all()
    with torch.autocast('cpu', torch.bfloat16):
        rounded = attention(x, data.edge_index)
    torch.testing.assert_close(rounded.float(), attention(x, data.edge_index), rtol=0.1, atol=0.1)
    # The sums themselves are added up in float32: 1,000 ones are no whole number of bfloat16 steps from 1,001.
    count = MaskedLinearAttention(1, 1, sums=True)
    with torch.no_grad():
        count.lin_sum.weight.zero_()
        count.lin_sum.bias.fill_(1.0)
    graph = Graph.from_tensors(torch.empty(2, 0, dtype=torch.long), num_nodes=1001)
    with torch.autocast('cpu', torch.bfloat16):
        total = count._summed_under(count.mask(graph), torch.zeros(1001, 1))
    torch.testing.assert_close(total.float(), torch.full((1001, 1, 1), float(np.log1p(1001))), rtol=4e-3, atol=0)


def test_without_sums_the_layer_is_as_it_was() -> None:
    torch.manual_seed(0)
    plain = MaskedLinearAttention(CHANNELS, HEADS, HopMask(HEADS))
    assert not [name for name in plain.state_dict() if 'sum' in name]
    assert plain.lin_out.in_features == CHANNELS


def test_repr_names_the_sums() -> None:
    assert repr(layer('none')).endswith('sums=True)')
    assert 'sums' not in repr(MaskedLinearAttention(CHANNELS, HEADS))
