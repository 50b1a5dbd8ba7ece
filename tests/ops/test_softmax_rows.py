"""Softmax attention under masks without sparse entries, whose rows are formed some at a time."""

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from graphs import path, uneven_graphs, with_features
from linear_masks import low_rank, numbers
from oracles import softmax_attention
from softmax_masks import inputs
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch_geometric.data import Batch, Data

from pyg_topomask import Graph
from pyg_topomask.masks import (
    AdjacencyMask,
    CausalMask,
    DenseMask,
    GRFMask,
    HeatKernelMask,
    HopMask,
    HypercubeMask,
    Mask,
    MultiHeadMask,
    PackingMask,
    PowerSeriesMask,
    RWGNKMask,
    SinDegreeMask,
    ToeplitzMask,
    TreeMask,
)
from pyg_topomask.nn import MaskedSoftmaxAttention, attention
from pyg_topomask.ops import masked_softmax_attention
from pyg_topomask.testing import assert_batch_invariant
from pyg_topomask.transforms import AddSpanningForest

SIZES = (5, 1, 9, 0, 9)


def undirected_path(size: int) -> Data:
    edges = path(max(size, 1))
    return Data(edge_index=torch.cat([edges, edges.flip(0)], dim=1), num_nodes=size, time=torch.arange(size).flip(0) // 2)


def paths() -> Data:
    """Paths with a time for each node, the last one in two pieces, and two trees each."""
    data = [undirected_path(size) for size in SIZES]
    data[-1].edge_index = data[-1].edge_index[:, (data[-1].edge_index != 3).all(0) | (data[-1].edge_index != 4).all(0)]
    return Batch.from_data_list([AddSpanningForest(num_trees=2)(each) for each in data])


MASKS: dict[str, Callable[[Data], Mask]] = {
    'packing': lambda data: PackingMask(),
    'low_rank': low_rank,
    'dense': lambda data: DenseMask(2, torch.nn.Parameter(numbers(2, 24, 24).abs())),
    'toeplitz': lambda data: ToeplitzMask(2, 1, initial='tanh', window=3),
    'toeplitz_transposed': lambda data: ToeplitzMask(2, 1, window=2, beyond='zero', causal=0).T,
    'toeplitz_periodic': lambda data: ToeplitzMask(2, 1, 'distance', initial='tanh', periodic=True),
    'heat_kernel': lambda data: HeatKernelMask(2, tolerance=1e-13),
    'tree': lambda data: TreeMask(2),
    'tree_distance': lambda data: TreeMask(2, 'distance', max_distance=3, method='rings'),
    'tree_fft': lambda data: TreeMask(2, 'distance', max_distance=3, method='fft'),
    'tree_fft_zeros': lambda data: TreeMask(2, 'distance', max_distance=2, f=torch.tensor([1.0, 0.5, 0.0]), method='fft'),
    'causal': lambda data: CausalMask(2, order='time', strict=True),
    'sin_degree': lambda data: SinDegreeMask(2),
    'stitched': lambda data: GRFMask(2, 4, 0.3, 2, stitch=2, positive=True),
    'rwgnk': lambda data: RWGNKMask(2, num_walks=None),
    'sum': lambda data: TreeMask(2) + AdjacencyMask(2),
    'hadamard': lambda data: CausalMask() * low_rank(data),
    'heads': lambda data: MultiHeadMask(HopMask(1), ToeplitzMask(1, 1)),
    'scaled': lambda data: PackingMask() * torch.nn.Parameter(torch.tensor([2.0, 0.5])),
}


def dense(mask: Mask, data: Data) -> Tensor:
    """The matrix of a mask without what Fourier transforms leave where it is 0."""
    matrix = mask(data).to_dense()
    return matrix.masked_fill(matrix.abs() < 1e-13, 0.0)


def dense_attention(q: Tensor, k: Tensor, v: Tensor, matrix: Tensor) -> Tensor:
    score = torch.einsum('nhd,mhd->hnm', q, k) / q.size(-1) ** 0.5 + matrix.masked_fill(matrix == 0, 1.0).log()
    share = score.masked_fill(matrix == 0, -math.inf).softmax(-1).nan_to_num()
    return torch.einsum('hnm,mhd->nhd', share, v)


@pytest.mark.parametrize('name', ['heat_kernel', 'rwgnk', 'sin_degree'])
def test_second_derivatives_are_those_of_a_dense_bias(name: str) -> None:
    data = paths()
    mask = MASKS[name](data).double()
    leaves = [tensor.requires_grad_() for tensor in inputs(24)]
    wanted = [*leaves, *mask.parameters()]

    def second(out: Tensor) -> tuple[Tensor, ...]:
        first = torch.autograd.grad(out.square().sum(), wanted, create_graph=True)
        return torch.autograd.grad(sum(each.square().sum() for each in first), wanted)

    expected = second(dense_attention(*leaves, dense(mask, data)))
    torch.testing.assert_close(second(masked_softmax_attention(*leaves, mask(data))), expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize('name', MASKS)
def test_it_is_softmax_attention_with_the_logarithm_of_the_mask(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data = paths()
    mask = MASKS[name](data).double()
    leaves = [tensor.requires_grad_() for tensor in inputs(24)]
    matrix, weight = dense(mask, data), numbers(24, 2, 4)
    out = masked_softmax_attention(*leaves, mask(data))
    expected, _ = softmax_attention(*(leaf.detach().numpy() for leaf in leaves), matrix.detach().numpy())
    np.testing.assert_allclose(out.detach().numpy(), expected, rtol=1e-9, atol=1e-12)
    wanted = [*leaves, *mask.parameters()]
    reference = torch.autograd.grad((dense_attention(*leaves, matrix) * weight).sum(), wanted)
    assert all(gradient.any() for gradient in reference)
    torch.testing.assert_close(torch.autograd.grad((out * weight).sum(), wanted), reference, rtol=1e-7, atol=1e-9)
    monkeypatch.setattr('pyg_topomask.ops.softmax_attention._FORMED', 100)  # two rows at a time
    monkeypatch.setattr('pyg_topomask.ops.softmax_attention._TILE', 40)
    out = masked_softmax_attention(*leaves, mask(data))
    np.testing.assert_allclose(out.detach().numpy(), expected, rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(torch.autograd.grad((out * weight).sum(), wanted), reference, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize('scale', [1.0, 1e3])  # of scores, the largest of which may be at an entry of 0
@pytest.mark.parametrize('factor', [1.0, 1e-9])  # of entries
def test_zeros_beside_scores_and_entries_of_any_size(scale: float, factor: float) -> None:
    mask = factor * CausalMask(2, order='time', strict=True).double()
    q, k, v = (tensor.requires_grad_() for tensor in inputs(24))
    out = masked_softmax_attention(scale * q, k, v, mask(paths()))
    expected = dense_attention(scale * q, k, v, dense(mask, paths()))
    torch.testing.assert_close(out, expected, rtol=1e-9, atol=1e-12)
    gradients, references = (torch.autograd.grad(each.square().sum(), [q, k, v]) for each in (out, expected))
    torch.testing.assert_close(gradients, references, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize('gap', [10.0, 60.0, 100.0, 300.0])
def test_a_large_score_at_an_entry_of_zero_leaves_the_shares_of_others(gap: float) -> None:
    data = undirected_path(3)
    data.time = torch.arange(3)
    key = torch.tensor([0.0, 0.7, gap]).view(3, 1, 1)
    out = masked_softmax_attention(torch.ones(3, 1, 1), key, torch.eye(3).unsqueeze(1), CausalMask(1, order='time')(data))
    share = math.exp(0.7) / (1 + math.exp(0.7))
    np.testing.assert_allclose(out[1, 0].numpy(), [1 - share, share, 0], rtol=1e-5)


def test_binary_codes_have_rows_too() -> None:
    data, mask = Data(num_nodes=8), HypercubeMask(2, 3).double()
    q, k, v = inputs(8)
    expected, _ = softmax_attention(q.numpy(), k.numpy(), v.numpy(), mask(data).to_dense().detach().numpy())
    np.testing.assert_allclose(masked_softmax_attention(q, k, v, mask(data)).detach().numpy(), expected, rtol=1e-9)


@pytest.mark.parametrize(
    'mask', [lambda: HeatKernelMask(2, 'random_walk_laplacian'), lambda: SinDegreeMask(2), lambda: HopMask(2) + PackingMask()]
)
def test_the_output_for_a_graph_is_the_same_alone_and_in_any_batch(mask: Callable[[], Mask]) -> None:
    graphs = with_features(uneven_graphs())
    for data in graphs:
        data.edge_weight = data.edge_weight.abs()
    assert_batch_invariant(MaskedSoftmaxAttention(8, 2, mask()), graphs)


def test_rows_without_entries_give_zero_with_gradient_zero() -> None:
    leaves = [tensor.requires_grad_() for tensor in inputs(24)]
    out = masked_softmax_attention(*leaves, CausalMask(strict=True)(paths()))
    first = torch.tensor([0, 5, 6, 15])
    assert not out[first].any()
    assert out[[node for node in range(24) if node not in first]].any(-1).all()
    assert not any(gradient.any() for gradient in torch.autograd.grad(out[first].sum(), leaves, retain_graph=True))
    everywhere = torch.autograd.grad(out.square().sum(), leaves)
    assert all(gradient.isfinite().all() for gradient in everywhere)
    assert not everywhere[0][first].any()


def test_second_derivatives() -> None:
    data, mask = Batch.from_data_list([undirected_path(3), undirected_path(1)]), TreeMask(1).double()

    def attend(q: Tensor, k: Tensor, v: Tensor, a: Tensor) -> Tensor:
        torch.manual_seed(0)
        bound = torch.func.functional_call(mask, {'raw_a': a}, (data,))
        return masked_softmax_attention(q, k, v, bound, dropout=0.3)

    leaves = [*inputs(4, features=2, channels=2), mask.raw_a.detach()]
    assert torch.autograd.gradgradcheck(attend, [leaf.requires_grad_() for leaf in leaves], fast_mode=True)


# Dropout --------------------------------------------------------------------------------------------------------------


def test_dropout_drops_a_share_of_the_coefficients() -> None:
    mask = PackingMask()(Batch.from_data_list([Data(num_nodes=40), Data(num_nodes=40)]))
    q = k = torch.zeros(80, 3, 2)
    v = torch.eye(40).repeat(2, 1).unsqueeze(1).expand(-1, 3, -1)  # the output is the coefficients
    torch.manual_seed(0)
    out = masked_softmax_attention(q, k, v, mask, dropout=0.3)
    assert set(out.unique().mul(28).round(decimals=3).tolist()) == {0.0, 1.0}
    share = (out == 0).float()
    assert abs(float(share.mean()) - 0.3) < 4 * (0.21 / share.numel()) ** 0.5
    assert not torch.equal(out[:40], out[40:])
    assert not torch.equal(out[:, 0], out[:, 1])
    assert not torch.equal(out, masked_softmax_attention(q, k, v, mask, dropout=0.3))
    torch.manual_seed(0)
    assert torch.equal(out, masked_softmax_attention(q, k, v, mask, dropout=0.3))
    assert not masked_softmax_attention(q, k, v, mask, dropout=1.0).any()


def test_gradients_with_dropout_are_those_of_the_same_coefficients(monkeypatch: pytest.MonkeyPatch) -> None:
    data, mask = paths(), TreeMask(2).double()

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        torch.manual_seed(3)
        return masked_softmax_attention(q, k, v, mask(data), dropout=0.4)

    leaves = [tensor.requires_grad_() for tensor in inputs(24)]
    whole = attend(*leaves)
    assert torch.autograd.gradcheck(attend, leaves, fast_mode=True)
    monkeypatch.setattr('pyg_topomask.ops.softmax_attention._FORMED', 100)
    torch.testing.assert_close(attend(*leaves), whole)


# Memory and numbers ---------------------------------------------------------------------------------------------------


class Largest(TorchDispatchMode):
    """Remembers the size of the largest tensor that an operation returns."""

    size = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for each in out if isinstance(out, (list, tuple)) else [out]:
            self.size = max(self.size, each.numel() if isinstance(each, Tensor) else 0)
        return out


@pytest.mark.parametrize(
    'mask', [lambda: TreeMask(2), lambda: ToeplitzMask(2, 1), lambda: CausalMask(), lambda: HeatKernelMask(2)]
)
def test_no_tensor_has_a_number_for_each_pair_of_nodes(mask: Callable[[], Mask], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr('pyg_topomask.ops.softmax_attention._FORMED', 2**14)
    monkeypatch.setattr('pyg_topomask.ops.routes.choice._MOST_PREPARED', 2**14)
    data, leaves = undirected_path(500), [torch.randn(500, 2, 4, requires_grad=True) for _ in range(3)]
    operator = mask()(data)
    with Largest() as mode:
        masked_softmax_attention(*leaves, operator).sum().backward()
    assert 0 < mode.size <= 2**15


@pytest.mark.parametrize('size', [1e-30, 1e18, 1e30])
@pytest.mark.parametrize('numbers', [torch.randn, lambda *shape: -torch.rand(shape)], ids=['mixed', 'negative'])
def test_numbers_of_any_size_give_finite_results(numbers: Callable[..., Tensor], size: float) -> None:
    leaves = [(size * numbers(24, 2, 4)).requires_grad_() for _ in range(3)]
    out = masked_softmax_attention(*leaves, TreeMask(2)(paths()))
    assert out.isfinite().all()
    assert out.any(-1).all()
    out.div(size).sum().backward()
    assert all(leaf.grad.isfinite().all() for leaf in leaves)


def test_autocast_and_half_precision() -> None:
    q, k, v = (torch.randn(24, 2, 4) for _ in range(3))
    mask = TreeMask(2)(paths())
    expected = masked_softmax_attention(q, k, v, mask)
    half = masked_softmax_attention(*(each.bfloat16() for each in (q, k, v)), mask)
    assert half.dtype == torch.bfloat16
    torch.testing.assert_close(half.float(), expected, rtol=0.05, atol=0.05)
    with torch.autocast('cpu', dtype=torch.bfloat16):
        torch.testing.assert_close(masked_softmax_attention(q, k, v, mask), expected)


# Layers and words -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ('word', 'options', 'mask'),
    [
        ('HeatKernel', {'lam': 2.0}, lambda: HeatKernelMask(2, lam=2.0)),
        ('Toeplitz', {'shape_dims': 1, 'positive': True}, lambda: ToeplitzMask(2, 1, positive=True)),
        ('Hop', {'max_hops': 3}, lambda: HopMask(2, 3)),
        ('Linear', {'bias': False}, lambda: PackingMask(2)),
        ('SinDegree', {}, lambda: SinDegreeMask(2)),
        ('PowerSeries', {'order': 3}, lambda: PowerSeriesMask(2, 3)),
    ],
)
def test_words_with_the_feature_map_softmax(word: str, options: dict[str, object], mask: Callable[[], Mask]) -> None:
    torch.manual_seed(0)
    layer = attention(word, 8, 2, feature_map='softmax', dropout=0.25, **options)
    assert isinstance(layer, MaskedSoftmaxAttention)
    assert (layer.attention_dropout, layer.dropout) == (0.25, 0.0)
    written = MaskedSoftmaxAttention(8, 2, mask(), bias=options.get('bias', True))
    written.load_state_dict(layer.state_dict())
    x, graph = torch.randn(24, 8), Graph.from_data(paths())
    torch.testing.assert_close(layer.eval()(x, graph=graph), written(x, graph=graph))


@pytest.mark.parametrize(
    ('word', 'options', 'text'),
    [
        ('Hop', {'route': 'edges'}, "route: got 'edges' with"),
        ('Linear', {'sums': True}, 'sums: got True with'),
        ('Toeplitz', {'positive': False}, 'positive: got False with'),
        ('AsymmetricGRF', {}, "feature_map: got 'softmax'; .*MaskedSoftmaxAttention"),
    ],
)
def test_options_of_linear_attention_are_refused_by_name(word: str, options: dict[str, object], text: str) -> None:
    with pytest.raises(ValueError, match=f'^{text}'):
        attention(word, 8, 2, feature_map='softmax', **options)


def test_coefficients_are_those_of_all_pairs_of_a_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    data, layer, x = paths(), MaskedSoftmaxAttention(8, 2, CausalMask(order='time')), torch.randn(24, 8)
    out, (pairs, alpha) = layer(x, graph=data, return_attention_weights=True)
    torch.testing.assert_close(out, layer(x, graph=data))
    assert pairs.size(1) == sum(size**2 for size in SIZES)
    q, k, v = (lin(x).view(-1, 2, 4).detach().numpy() for lin in (layer.lin_q, layer.lin_k, layer.lin_v))
    _, expected = softmax_attention(q, k, v, dense(layer.mask, data).numpy())
    np.testing.assert_allclose(alpha.detach().numpy().T, expected[:, pairs[1], pairs[0]], rtol=1e-4, atol=1e-6)
    monkeypatch.setattr('pyg_topomask.ops.softmax_attention._MOST_PAIRS', 100)
    with pytest.raises(ValueError, match=r'^return_attention_weights: got True for 188 pairs of nodes'):
        layer(x, graph=data, return_attention_weights=True)


def test_what_has_no_logarithm_and_graphs_that_are_too_large_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    q, k, v = inputs(24)
    with pytest.raises(ValueError, match=r'^mask: got the entry -1\.0, which has no finite logarithm'):
        masked_softmax_attention(q, k, v, PackingMask()(paths()) * -1.0)
    monkeypatch.setattr('pyg_topomask.ops.softmax_attention._LARGEST', 8)
    with pytest.raises(ValueError, match=r'^mask: got a mask without sparse entries on a graph of 9 nodes .*up to 8 nodes'):
        masked_softmax_attention(q, k, v, TreeMask(2)(paths()))
