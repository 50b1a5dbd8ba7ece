import copy
import gc
import weakref

import numpy as np
import pytest
import torch
from oracles import Array, masked_attention, softmax_attention
from rounding import BOUND, relative_error
from torch import Tensor

from pyg_topomask import Graph
from pyg_topomask.masks import AdjacencyMask, DenseMask, GRFMask, HopMask, LowRankMask, Mask, PackingMask, ToeplitzMask
from pyg_topomask.nn.models.grid_encoder import GridAttention, GridEncoder

HEADS, CHANNELS = 2, 8
ROWS, COLUMNS = 3, 4


def grid_matrix() -> Array:
    """The adjacency matrix of the grid, from the coordinates of its nodes."""
    nodes = [(row, column) for row in range(ROWS) for column in range(COLUMNS)]
    return np.array([[float(abs(a - c) + abs(b - d) == 1) for c, d in nodes] for a, b in nodes])


def attention_layer(mask: Mask | None, attention: str, feature_map: str = 'relu', dense_limit: int = 256) -> GridAttention:
    return GridAttention(CHANNELS, HEADS, mask, feature_map, attention, dense_limit).double()


def grid(copies: int = 1) -> Graph:
    return GridEncoder(ROWS, COLUMNS, CHANNELS, 1, HEADS, 16).graph(copies)


def expected_output(layer: GridAttention, x: Tensor, mask: Array, feature_map: str) -> Tensor:
    """The layer's equation between its projections, image by image."""
    weight, bias = layer.lin_qkv.weight.detach().numpy(), layer.lin_qkv.bias.detach().numpy()
    outs = []
    for image in x.numpy():
        q, k, v = (
            (image @ w.T + b).reshape(-1, HEADS, CHANNELS // HEADS)
            for w, b in zip(np.split(weight, 3), np.split(bias, 3), strict=True)
        )
        if layer.attention == 'softmax':
            outs.append(softmax_attention(q, k, v, mask)[0])
        else:
            phi = {'relu': lambda z: np.maximum(z, 0), 'square': np.square}[feature_map]
            outs.append(masked_attention(phi(q), phi(k), v, mask))
    return layer.lin_out(torch.from_numpy(np.stack(outs)).flatten(2))


@pytest.mark.parametrize('attention', ['linear', 'softmax'])
def test_layer_is_masked_attention_on_the_grid(attention: str) -> None:
    matrix = grid_matrix()
    mask = AdjacencyMask(HEADS).double()
    with torch.no_grad():
        mask.self_loop.copy_(torch.tensor([0.5, 2.0]))
    layer, x = attention_layer(mask, attention), torch.randn(3, ROWS * COLUMNS, CHANNELS, dtype=torch.float64)
    expected = expected_output(layer, x, np.stack([matrix + 0.5 * np.eye(12), matrix + 2 * np.eye(12)]), 'relu')
    torch.testing.assert_close(layer(x, grid), expected)


@pytest.mark.parametrize('attention', ['linear', 'softmax'])
def test_layer_under_any_matrix(attention: str) -> None:
    matrix = torch.rand(HEADS, 12, 12, dtype=torch.float64)
    matrix[:, 3], matrix[0, 5], matrix[:, :, 7] = 0.0, 0.0, 0.0
    layer = attention_layer(DenseMask(HEADS, torch.nn.Parameter(matrix)), attention, 'square')
    x = torch.randn(3, 12, CHANNELS, dtype=torch.float64, requires_grad=True)
    out = layer(x, grid)
    torch.testing.assert_close(out, expected_output(layer, x.detach(), matrix.numpy(), 'square'))
    # A row without entries gives what the projection makes of zero.
    torch.testing.assert_close(out[:, 3], layer.lin_out.bias.expand(3, -1))
    out.square().sum().backward()
    for tensor in (x, *layer.parameters()):
        assert tensor.grad.isfinite().all()
        assert tensor.grad.any()


@pytest.mark.parametrize('form', ['dense', 'low_rank', 'product', 'sum'])
def test_given_tensors_serve_each_image_of_a_large_grid(form: str) -> None:
    matrix, left, right = torch.rand(HEADS, 12, 12), torch.rand(12, HEADS, 2), torch.rand(12, 1, 2)
    matrix[:, 3], matrix[0, 5], left[7] = 0.0, 0.0, 0.0

    def layer(dense_limit: int) -> GridAttention:
        given = (torch.nn.Parameter(tensor.clone()) for tensor in (matrix, left, right))
        dense, low_rank = DenseMask(HEADS, next(given)), LowRankMask(HEADS, *given)
        grf = GRFMask(HEADS)
        mask = {'dense': dense, 'low_rank': low_rank, 'product': dense * low_rank, 'sum': low_rank + grf}[form]
        return attention_layer(mask, 'linear', 'elu', dense_limit)

    x, results = torch.randn(3, 12, CHANNELS, dtype=torch.float64), []
    dense, general = layer(256), layer(0)
    general.load_state_dict(dense.state_dict())
    for attention in (dense, general):
        image = x.clone().requires_grad_()
        out = attention(image, grid)
        results.append([out, *torch.autograd.grad(out.square().sum(), [image, *attention.parameters()])])
        assert attention(x[:0], grid).shape == (0, 12, CHANNELS)
    torch.testing.assert_close(*results)


def test_what_is_prepared_stays_beside_given_tensors() -> None:
    encoder = GridEncoder(2, 2, CHANNELS, 2, HEADS, 16, lambda i: GRFMask(HEADS) if i else DenseMask(matrix=torch.ones(4, 4)))
    encoder.blocks[0].attention.dense_limit = encoder.blocks[1].attention.dense_limit = 0
    encoder(torch.randn(3, 4, CHANNELS))
    kept = [encoder.graph(copies) for copies in (1, 3)]
    encoder(torch.randn(3, 4, CHANNELS))
    assert all(encoder.graph(graph.num_graphs) is graph for graph in kept)


@pytest.mark.parametrize('attention', ['linear', 'softmax'])
def test_gradient_of_the_mask(attention: str) -> None:
    matrix = torch.rand(HEADS, 4, 4, dtype=torch.float64)
    matrix[0, 1] = matrix[1, 2, 3] = 0.0
    present, x = matrix != 0, torch.randn(2, 4, CHANNELS, dtype=torch.float64)
    layer = attention_layer(DenseMask(HEADS, matrix), attention, 'square')
    graph = GridEncoder(2, 2, CHANNELS, 1, HEADS, 16).graph

    def output(entries: Tensor) -> Tensor:
        layer.mask.matrix = torch.zeros_like(matrix).masked_scatter(present, entries)
        return layer(x, graph)

    assert torch.autograd.gradcheck(output, (matrix[present].requires_grad_(),))


def test_positive_masks_that_are_one_leave_softmax_attention_as_it_is() -> None:
    masked, plain = attention_layer(PackingMask(), 'softmax'), attention_layer(None, 'softmax')
    plain.load_state_dict(masked.state_dict())
    x = torch.randn(2, 12, CHANNELS, dtype=torch.float64)
    torch.testing.assert_close(masked(x, grid), plain(x, grid))


@pytest.mark.parametrize('dense_limit', [0, 256])
def test_random_features_of_an_image_ignore_the_scale_of_the_others(dense_limit: int) -> None:
    layer = attention_layer(None, 'linear', 'favor', dense_limit).float()
    x = torch.randn(3, 12, CHANNELS) * torch.tensor([1.0, 50.0, 0.1]).view(-1, 1, 1)
    torch.testing.assert_close(layer(x, grid), torch.cat([layer(image, grid) for image in x.split(1)]), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize('shape', [(3, 4), (1, 1), (1, 5), (4, 1), (2, 2)])
def test_grid_joins_neighbors_in_x_and_y(shape: tuple[int, int]) -> None:
    graph = GridEncoder(*shape, CHANNELS, 1, HEADS, 16).graph(2)
    edges = set(map(tuple, graph.edge_index.t().tolist()))
    assert len(edges) == graph.num_edges
    size, expected = shape[0] * shape[1], set()
    for copy_ in range(2):
        for row in range(shape[0]):
            for column in range(shape[1]):
                for next_row, next_column in ((row + 1, column), (row - 1, column), (row, column + 1), (row, column - 1)):
                    if 0 <= next_row < shape[0] and 0 <= next_column < shape[1]:
                        start = size * copy_
                        expected.add((start + row * shape[1] + column, start + next_row * shape[1] + next_column))
    assert edges == expected
    assert graph.batch.tolist() == [0] * size + [1] * size


def test_one_grid_is_kept_whatever_the_batch_sizes() -> None:
    encoder = GridEncoder(ROWS, COLUMNS, CHANNELS, 1, HEADS, 16)
    graphs = [weakref.ref(encoder.graph(copies)) for copies in range(1, 8)]
    gc.collect()
    assert [graph() is None for graph in graphs] == [False] + [True] * 5 + [False]
    assert encoder.graph(7) is graphs[-1]()


@pytest.mark.parametrize('dtype', [torch.bfloat16, torch.float16])
@pytest.mark.parametrize(('attention', 'dense_limit'), [('linear', 0), ('linear', 2000), ('softmax', 0)])
def test_autocast_sums_in_float32(attention: str, dense_limit: int, dtype: torch.dtype) -> None:
    """Over two thousand nodes, of which the second half has another mean."""
    layer, graph = (
        GridAttention(CHANNELS, HEADS, None, 'elu', attention, dense_limit),
        GridEncoder(40, 50, CHANNELS, 1, 1, 1).graph,
    )
    x = torch.randn(1, 2000, CHANNELS) + torch.tensor([1.0, -1.0]).repeat_interleave(1000).unsqueeze(1)
    expected = copy.deepcopy(layer).double()(x.double(), graph)
    with torch.autocast('cpu', dtype):
        out = layer(x, graph)
    assert out.dtype == dtype
    assert relative_error(out, expected) < BOUND * torch.finfo(dtype).eps


def test_softmax_takes_a_positive_mask_with_rounding_below_zero() -> None:
    def mask(layer: int) -> Mask:
        return ToeplitzMask(1, kind='distance', window=9, initial='tanh:.2', positive=True, beyond='zero')

    encoder = GridEncoder(16, 16, 16, 1, 4, 32, mask, attention='softmax')
    attend = encoder.blocks[0].attention
    matrix = attend.mask(encoder.graph(1)).to_dense()[0].detach()
    assert float(matrix.min()) < 0  # where the mask has zeros
    q, k, v = 3.0 * torch.randn(3, 2, 256, 4, 4).double()
    place = np.indices((16, 16)).reshape(2, -1)
    distance = np.abs(place[:, :, None] - place[:, None]).sum(0)
    exact = np.where(distance <= 9, np.tanh(0.2) ** distance, 0.0)
    out = attend._softmax(q.float(), k.float(), v.float(), encoder.graph).detach().numpy()
    for image in range(2):
        expected, _ = softmax_attention(q[image].numpy(), k[image].numpy(), v[image].numpy(), exact[None])
        np.testing.assert_allclose(out[image], expected, atol=1e-4)


def test_small_entries_count_and_are_learned() -> None:
    f = torch.tensor([1e-9, 1.0, 1e-6])
    encoder = GridEncoder(4, 4, 16, 1, 4, 32, lambda layer: HopMask(4, max_hops=2, f=f), attention='softmax')
    attend = encoder.blocks[0].attention
    q, k, v = 8 * torch.randn(3, 1, 16, 4, 4)
    matrix = attend.mask(encoder.graph(1)).to_dense().detach().double().numpy()
    out = attend._softmax(q, k, v, encoder.graph)
    expected, _ = softmax_attention(*(tensor[0].double().numpy() for tensor in (q, k, v)), matrix)
    np.testing.assert_allclose(out[0].detach().numpy(), expected, rtol=1e-3, atol=1e-4)
    out.sum().backward()
    assert (attend.mask.raw_f.grad != 0).all()


def test_dropout_is_of_attention_and_of_the_other_branch_in_training() -> None:
    encoder, tokens = GridEncoder(ROWS, COLUMNS, CHANNELS, 2, HEADS, 16, dropout=1.0), torch.randn(3, 12, CHANNELS)
    expected = torch.nn.functional.layer_norm(tokens + encoder.position, (CHANNELS,)).mean(1)
    torch.testing.assert_close(encoder(tokens), expected)
    assert not torch.allclose(encoder.eval()(tokens), expected)
