"""Masked softmax attention: the equation, gradients, dropout, data types, and batches."""

import math
import sys

import numpy as np
import pytest
import torch
from graphs import GRAPH_NAMES, GRAPHS, small_digraph, small_graph, star, uneven_graphs
from hypothesis import given, settings
from hypothesis import strategies as st
from linear_masks import numbers
from oracles import confidence, softmax_attention, standard_scores
from softmax_masks import MASKS, bound, inputs, with_positive_weights
from torch import Tensor
from torch_geometric.data import Batch, Data

from pyg_topomask.graphs.graph import Graph
from pyg_topomask.graphs.sparse_pattern import SparsePattern
from pyg_topomask.masks import AdjacencyMask, GRFMask, sparse_operator
from pyg_topomask.operators.composed import Alternatives
from pyg_topomask.operators.forms import Entries, SparseEntries
from pyg_topomask.ops import masked_softmax_attention
from pyg_topomask.ops.softmax_entries import attend_softmax


@pytest.mark.parametrize('graph', GRAPH_NAMES)
@pytest.mark.parametrize('name', MASKS)
def test_it_is_softmax_attention_with_the_logarithm_of_the_mask(name: str, graph: str) -> None:
    data = with_positive_weights(GRAPHS[graph]())
    mask = MASKS[name](data).double()(data)
    q, k, v = inputs(data.num_nodes or 0)
    matrix = mask.to_dense().detach().numpy()
    expected, coefficients = softmax_attention(q.numpy(), k.numpy(), v.numpy(), matrix)
    out = masked_softmax_attention(q, k, v, mask).detach().numpy()
    np.testing.assert_allclose(out, expected, rtol=1e-9, atol=1e-12)
    entries = mask.entries()
    out, alpha, _ = attend_softmax(q, k, v, entries)
    np.testing.assert_allclose(out.detach().numpy(), expected, rtol=1e-9, atol=1e-12)
    expected_alpha = coefficients[:, entries.pattern.row.numpy(), entries.pattern.col.numpy()]
    np.testing.assert_allclose(alpha.detach().numpy(), expected_alpha, rtol=1e-9, atol=1e-12)


@settings(deadline=None, max_examples=40, derandomize=True)
@given(
    num_nodes=st.integers(0, 7),
    share=st.floats(0.0, 1.0),
    heads=st.integers(1, 3),
    features=st.integers(1, 5),
    channels=st.integers(1, 4),
    seed=st.integers(0, 100),
)
def test_random_matrices(num_nodes: int, share: float, heads: int, features: int, channels: int, seed: int) -> None:
    torch.manual_seed(seed)
    matrix = torch.rand(heads, num_nodes, num_nodes, dtype=torch.float64) + 1e-3
    operator, entries = bound(matrix * (torch.rand(heads, num_nodes, num_nodes) < share))
    q, k, v = inputs(num_nodes, heads, features, channels)
    expected, _ = softmax_attention(q.numpy(), k.numpy(), v.numpy(), operator.to_dense().numpy())
    np.testing.assert_allclose(attend_softmax(q, k, v, entries)[0].numpy(), expected, rtol=1e-9, atol=1e-12)


def test_without_a_mask_that_tells_nodes_apart_it_is_the_attention_of_torch() -> None:
    q, k, v = inputs(6)
    _, entries = bound(torch.full((2, 6, 6), 0.3, dtype=torch.float64))
    expected = torch.nn.functional.scaled_dot_product_attention(*(tensor.transpose(0, 1) for tensor in (q, k, v)))
    torch.testing.assert_close(attend_softmax(q, k, v, entries)[0], expected.transpose(0, 1))


# Gradients ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize('shared', [False, True], ids=['per_head', 'shared'])
@pytest.mark.parametrize('graph', ['directed', 'batch', 'no_edges'])
def test_gradients_of_inputs_and_mask_entries(graph: str, shared: bool) -> None:
    data = Batch.from_data_list(uneven_graphs()[:2]) if graph == 'batch' else GRAPHS[graph]()
    pattern = GRFMask(2, asymmetric=True)(data).entries().pattern
    value = torch.rand(1 if shared else 2, pattern.nnz, dtype=torch.float64) + 0.1
    q, k, v = inputs(data.num_nodes, features=2, channels=2)

    def attend(q: Tensor, k: Tensor, v: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        return attend_softmax(q, k, v, Entries(pattern, value))[:2]

    assert torch.autograd.gradcheck(attend, [tensor.requires_grad_() for tensor in (q, k, v, value)])


@pytest.mark.parametrize('name', MASKS)
def test_gradients_of_inputs_and_parameters(name: str) -> None:
    data = with_positive_weights(GRAPHS['batch']())
    mask = MASKS[name](data).double()
    leaves = [tensor.requires_grad_() for tensor in inputs(40)]
    weight, wanted = numbers(40, 2, 4), [*leaves, *mask.parameters()]
    matrix = mask(data).to_dense()
    score = torch.einsum('nhd,mhd->hnm', *leaves[:2]) / 3**0.5 + matrix.masked_fill(matrix == 0, 1.0).log()
    share = score.masked_fill(matrix == 0, -math.inf).softmax(-1).nan_to_num()
    outputs = masked_softmax_attention(*leaves, mask(data)), torch.einsum('hnm,mhd->nhd', share, leaves[2])
    entries, dense = (torch.autograd.grad((out * weight).sum(), wanted) for out in outputs)
    assert all(gradient.any() for gradient in dense)
    for actual, expected in zip(entries, dense, strict=True):
        torch.testing.assert_close(actual, expected, rtol=1e-6, atol=1e-6)


def test_gradients_with_dropout() -> None:
    entries = GRFMask(2, positive=True)(small_graph()).entries()
    value = entries.value.detach().double()

    def attend(q: Tensor, k: Tensor, v: Tensor, value: Tensor) -> Tensor:
        torch.manual_seed(3)
        return attend_softmax(q, k, v, Entries(entries.pattern, value), dropout=0.4)[0]

    assert torch.autograd.gradcheck(attend, [tensor.requires_grad_() for tensor in (*inputs(6), value)])


# Rows and entries that weigh nothing ----------------------------------------------------------------------------------


def test_rows_without_entries_give_zero_with_gradient_zero() -> None:
    mask = AdjacencyMask(2, self_loop=None, flow='target_to_source').double()(with_positive_weights(small_digraph()))
    leaves = [tensor.requires_grad_() for tensor in inputs(6)]
    out = masked_softmax_attention(*leaves, mask)
    assert not out[5].any()
    assert out[:5].any(-1).all()
    everywhere = torch.autograd.grad(out.sum(), leaves, retain_graph=True)
    assert all(gradient.isfinite().all() for gradient in everywhere)
    assert not everywhere[0][5].any()
    assert not any(gradient.any() for gradient in torch.autograd.grad(out[5].sum(), leaves))


def test_entries_of_zero_get_no_attention() -> None:
    matrix = torch.rand(2, 5, 5, dtype=torch.float64) + 0.1
    matrix[0, 1, 2] = matrix[1, 3] = 0.0  # one entry of one head, and a row of the other
    _, entries = bound(matrix)
    assert (entries.value == 0).sum() == 6
    value = entries.value.requires_grad_()
    leaves = [tensor.requires_grad_() for tensor in inputs(5)]
    out, alpha, _ = attend_softmax(*leaves, Entries(entries.pattern, value))
    expected, coefficients = softmax_attention(*(leaf.detach().numpy() for leaf in leaves), matrix.numpy())
    np.testing.assert_allclose(out.detach().numpy(), expected, rtol=1e-9, atol=1e-12)
    assert not alpha[value == 0].any()
    assert not out[3, 1].any()
    assert coefficients[0, 1, 2] == 0
    gradients = torch.autograd.grad(out.square().sum(), [*leaves, value])
    assert all(gradient.isfinite().all() for gradient in gradients)
    assert not gradients[3][value == 0].any()


def test_huge_scores_where_the_mask_is_zero_do_not_drown_the_others() -> None:
    matrix = torch.rand(1, 5, 5) + 0.1
    matrix[0, :, 2] = 0.0
    q, k, v = (tensor.float() for tensor in inputs(5, heads=1))
    k[2] = 1e4 * q[0]
    operator, _ = bound(matrix)
    row, col = torch.cartesian_prod(torch.arange(5), torch.arange(5)).t()
    pattern = SparsePattern.from_sorted(row, col, 5, 5)
    entries = SparseEntries(lambda: Entries(pattern, matrix.flatten(1)))
    operator = Alternatives(operator, entries, segments=operator.segments, heads=operator.heads)
    out = masked_softmax_attention(q, k, v, operator)
    expected, _ = softmax_attention(*(tensor.double().numpy() for tensor in (q, k, v, matrix)))
    assert expected.any(-1).all()
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-4, atol=1e-5)


# Scales ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize('numba', [True, False])
@pytest.mark.parametrize('dtype', [torch.float32, torch.float64])
def test_huge_scores_stay_finite(dtype: torch.dtype, numba: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not numba:
        monkeypatch.setitem(sys.modules, 'numba', None)
    data = small_graph()
    q, k, v = (tensor.to(dtype) for tensor in inputs(6))
    q, k = 100 * q, 100 * k
    assert (q[:, 0] @ k[:, 0].t()).abs().max() > 1e4
    mask = GRFMask(2, 8, positive=True).to(dtype)(data)
    leaves = [tensor.requires_grad_() for tensor in (q, k, v)]
    out = masked_softmax_attention(*leaves, mask)
    matrix = mask.to_dense().detach().double().numpy()
    expected, _ = softmax_attention(*(leaf.detach().double().numpy() for leaf in leaves), matrix)
    np.testing.assert_allclose(out.detach().numpy(), expected, rtol=1e-2, atol=1e-2)
    gradients = torch.autograd.grad(out.square().sum(), leaves)
    assert all(gradient.isfinite().all() for gradient in gradients)


@pytest.mark.parametrize('scale', [1e-30, 1e-6, 1e6, 1e30])
def test_the_scale_of_the_mask_cancels(scale: float) -> None:
    data, (q, k, v) = small_graph(), (tensor.float() for tensor in inputs(6))
    mask = AdjacencyMask(2)(data)
    expected = masked_softmax_attention(q, k, v, mask)
    torch.testing.assert_close(masked_softmax_attention(q, k, v, mask * scale), expected)


def test_sums_of_entries_may_be_out_of_range() -> None:
    (q, k, v), graph = (tensor.float() for tensor in inputs(6)), Graph.from_data(small_graph())
    matrix = AdjacencyMask(normalization=None)(graph).to_dense().detach()
    expected, _ = softmax_attention(*(tensor.double().numpy() for tensor in (q, k, v)), matrix.sign().double().numpy())
    actual = masked_softmax_attention(q, k, v, sparse_operator(graph, *huge_entries(matrix)))
    np.testing.assert_allclose(actual.numpy(), expected, rtol=1e-4, atol=1e-4)


def huge_entries(matrix: Tensor) -> tuple[SparsePattern, Tensor]:
    row, col = matrix[0].nonzero().unbind(1)
    return SparsePattern.from_sorted(row, col, *matrix.shape[1:]), torch.full((1, row.numel()), 3e38)


# Dropout --------------------------------------------------------------------------------------------------------------


def test_dropout_keeps_the_mean() -> None:
    data, (q, k, v) = small_graph(), inputs(6)
    mask = AdjacencyMask(2).double()(data)
    expected = masked_softmax_attention(q, k, v, mask).detach()
    samples = []
    for seed in range(500):
        torch.manual_seed(seed)
        samples.append(masked_softmax_attention(q, k, v, mask, dropout=0.4).detach().numpy())
    outputs = np.stack(samples)
    assert np.abs(standard_scores(outputs, expected.numpy())).max() < confidence(2 * expected.numel())
    assert (outputs.std(0) > 0).all()


def test_everything_dropped_is_zero_and_nothing_dropped_is_the_plain_attention() -> None:
    mask, (q, k, v) = AdjacencyMask(2)(small_graph()), inputs(6)
    assert not masked_softmax_attention(q, k, v, mask, 1.0).any()
    plain = masked_softmax_attention(q, k, v, mask)
    assert torch.equal(masked_softmax_attention(q, k, v, mask, 0.0), plain)


def test_dropout_drops_each_coefficient_on_its_own_and_returns_them_before() -> None:
    mask, (q, k, _) = AdjacencyMask(2).double()(small_graph()), inputs(6)
    identity = torch.eye(6, dtype=torch.float64).unsqueeze(1).expand(-1, 2, -1)
    whole, alpha, _ = attend_softmax(q, k, identity, mask.entries())
    out, kept, _ = attend_softmax(q, k, identity, mask.entries(), dropout=0.5)
    assert torch.equal(kept, alpha)
    ratio = (out / whole.masked_fill(whole == 0, 1.0))[whole > 0]
    torch.testing.assert_close(ratio, torch.where(ratio > 1, 2.0, 0.0).double())
    assert (ratio == 0).any()
    assert (ratio > 1).any()


# Data types -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize('dtype', [torch.bfloat16, torch.float16])
def test_half_precision_accumulates_in_single(dtype: torch.dtype) -> None:
    """A sum of so many short numbers would stand still."""
    data = Data(edge_index=star(1500), num_nodes=1501)
    mask = AdjacencyMask(2)(data)
    q, k, v = (tensor.to(dtype) for tensor in inputs(1501))
    v = v + 1
    out = masked_softmax_attention(q, k, v, mask)
    assert out.dtype == dtype
    expected = masked_softmax_attention(q.float(), k.float(), v.float(), mask)
    torch.testing.assert_close(out, expected.to(dtype), rtol=0, atol=0)
    assert attend_softmax(q, k, v, mask.entries())[1].dtype == torch.float32


@pytest.mark.parametrize('dtype', [torch.bfloat16, torch.float16])
def test_autocast_changes_nothing(dtype: torch.dtype) -> None:
    mask, (q, k, v) = AdjacencyMask(2)(Data(edge_index=star(50), num_nodes=51)), (tensor.float() for tensor in inputs(51))
    expected = masked_softmax_attention(q, k, v, mask)
    leaf = q.clone().requires_grad_()
    with torch.autocast('cpu', dtype):
        out = masked_softmax_attention(leaf, k, v, mask)
    assert out.dtype == torch.float32
    assert torch.equal(out, expected)
    out.sum().backward()
    assert leaf.grad is not None
    assert leaf.grad.isfinite().all()


# Graphs of a batch ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize('name', ['adjacency', 'adjacency_no_loop', 'grf', 'grf_one_hot_keys', 'grf_pairs'])
def test_batches_are_their_graphs_one_by_one(name: str) -> None:
    graphs = uneven_graphs()
    mask = MASKS[name](graphs[0]).double()
    for order in ([0, 1, 2, 3], [3, 2, 1, 0], [2, 2]):
        data_list = [graphs[index] for index in order]
        q, k, v = inputs(sum(data.num_nodes for data in data_list))
        out = masked_softmax_attention(q, k, v, mask(Batch.from_data_list(data_list)))
        sizes = [data.num_nodes for data in data_list]
        alone = [
            masked_softmax_attention(*qkv, mask(data))
            for data, *qkv in zip(data_list, q.split(sizes), k.split(sizes), v.split(sizes), strict=True)
        ]
        torch.testing.assert_close(out, torch.cat(alone), rtol=1e-6, atol=1e-6)


def test_nothing_passes_between_graphs() -> None:
    data = GRAPHS['batch']()
    mask = GRFMask(2, positive=True).double()(data)
    q, k, v = inputs(40)
    expected = masked_softmax_attention(q, k, v, mask)
    for tensor in (q, k, v):
        tensor[3:33] = math.nan
    out = masked_softmax_attention(q, k, v, mask)
    torch.testing.assert_close(out[:3], expected[:3])
    torch.testing.assert_close(out[33:], expected[33:])
