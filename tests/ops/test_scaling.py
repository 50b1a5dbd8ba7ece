"""Numbers from 1e-30 to 1e30, compared with attention in numbers of 50 digits and any exponent."""

import mpmath
import numpy as np
import pytest
import torch
from graphs import ring
from grids import covering
from torch import Tensor
from torch_geometric.data import Batch, Data

from pyg_topomask.feature_maps.names import FEATURE_MAPS, feature_map_of_name
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks import AdjacencyMask, GRFMask, HeatKernelMask, Mask, PackingMask, PowerSeriesMask
from pyg_topomask.nn import KMIPAttention
from pyg_topomask.operators.base import MaskOperator
from pyg_topomask.ops import masked_linear_attention, masked_softmax_attention, topk_inner_product
from pyg_topomask.ops.masked_linear_attention import dense_linear_attention
from pyg_topomask.ops.normalize import in_range, power_of_two
from pyg_topomask.ops.topk.topk_inner_product import inner_product_features

SIZES, CHANNELS = (5, 4), 3
SCALES = [(1e30, 1e30, 1e30), (1e-30, 1e-30, 1e-30), (1e30, 1e-30, 1.0), (1e-30, 1e30, 1e30), (1e13, 1e13, 1e13)]
MASKS = {
    'features': (AdjacencyMask, 'features'),
    'series': (PowerSeriesMask, 'features'),
    'blocks': (lambda: HeatKernelMask(kind='adjacency'), 'blocks'),
    'edges': (GRFMask, 'edges'),
    'low_rank': (PackingMask, 'low_rank'),
}


def inputs(scales: tuple[float, float, float] = (1.0, 1.0, 1.0), seed: int = 0) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [scale * torch.randn(sum(SIZES), 1, CHANNELS, generator=generator) for scale in scales]


def batch() -> Batch:
    return Batch.from_data_list([Data(edge_index=ring(size), num_nodes=size) for size in SIZES])


def bound(mask: Mask, data: Data | None = None) -> MaskOperator:
    return mask.eval()(Graph.of(batch() if data is None else data))


@mpmath.workdps(50)
def features(name: str, x: Tensor) -> list[list[mpmath.mpf]]:
    rows = [[mpmath.mpf(entry) for entry in row] for row in x.squeeze(1).tolist()]
    if name == 'focused':
        return [_focused(row) for row in rows]
    maps = {
        'identity': lambda t: t,
        'relu': lambda t: max(t, mpmath.mpf(0)),
        'square': lambda t: t * t,
        'elu': lambda t: t + 1 if t > 0 else mpmath.exp(t),
    }
    return [[maps[name](entry) for entry in row] for row in rows]


def _focused(row: list[mpmath.mpf]) -> list[mpmath.mpf]:
    positive = [max(entry, mpmath.mpf(0)) for entry in row]
    cubes = [entry**3 for entry in positive]
    length, norm = (mpmath.sqrt(sum(entry**2 for entry in each)) for each in (positive, cubes))
    return [entry * length / norm if norm else norm for entry in cubes]


@mpmath.workdps(50)
def linear_attention(name: str, q: Tensor, k: Tensor, v: Tensor, mask: MaskOperator) -> np.ndarray:
    query, key, weight = features(name, q), features(name, k), mask.to_dense()[0].tolist()
    return combine([[m * dot(a, b) for b, m in zip(key, row, strict=True)] for a, row in zip(query, weight, strict=True)], v)


def dot(first: list[mpmath.mpf], second: list[mpmath.mpf]) -> mpmath.mpf:
    return sum((a * b for a, b in zip(first, second, strict=True)), start=mpmath.mpf(0))


def combine(weight: list[list[mpmath.mpf]], v: Tensor) -> np.ndarray:
    columns, out = v.squeeze(1).t().tolist(), []
    for row in weight:
        total = sum(row)
        out.append([[float(dot(row, [mpmath.mpf(x) for x in column]) / total) if total else 0.0 for column in columns]])
    return np.array(out)


@pytest.mark.parametrize('scales', SCALES)
@pytest.mark.parametrize('route', MASKS)
def test_every_route_over_sixty_decades(route: str, scales: tuple[float, float, float]) -> None:
    make, name = MASKS[route]
    mask, (q, k, v) = bound(make()), inputs(scales)
    out = masked_linear_attention(q.relu(), k.relu(), v, mask, name)
    np.testing.assert_allclose(out.detach() / scales[2], linear_attention('relu', q, k, v, mask) / scales[2], 1e-4, 1e-5)


@pytest.mark.parametrize(('name', 'scales'), covering(['relu', 'square', 'elu', 'focused', 'identity'], SCALES))
def test_feature_maps_over_sixty_decades(name: str, scales: tuple[float, float, float]) -> None:
    mask, (q, k, v), graph = bound(PackingMask()), inputs(scales, seed=1), Graph.of(batch())
    query, key = feature_map_of_name(name, CHANNELS)(q, k, graph.segments)
    out = masked_linear_attention(query, key, v, mask)
    expected = linear_attention(name, q, k, v, mask)
    np.testing.assert_allclose(out / scales[2], expected / scales[2], rtol=2e-4, atol=1e-5)


@pytest.mark.parametrize('below', [-60.0, -1e3, -1e30])
def test_elu_of_graphs_far_below_zero(below: float) -> None:
    (q, k, v), graph, mask = inputs(), Graph.of(batch()), bound(PackingMask())
    q[1] += below
    k[: SIZES[0]] += below
    query, key = feature_map_of_name('elu', CHANNELS)(q, k, graph.segments)
    out = masked_linear_attention(query, key, v, mask)
    np.testing.assert_allclose(out, linear_attention('elu', q, k, v, mask), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ('name', 'stabilize', 'scale'), covering(sorted(FEATURE_MAPS), [True, False], [1e-30, 1e13, 1e30], strength=2)
)
def test_outputs_and_gradients_are_finite(name: str, stabilize: bool, scale: float) -> None:
    x = inputs((scale, scale, 1.0))
    leaves = [each.requires_grad_() for each in x]
    feature_map, graph = feature_map_of_name(name, CHANNELS), Graph.of(batch())
    feature_map.stabilize = stabilize
    out = masked_linear_attention(*feature_map(*leaves[:2], graph.segments), leaves[2], bound(AdjacencyMask()))
    out.sum().backward()
    assert out.isfinite().all()
    assert all(leaf.grad is not None and leaf.grad.isfinite().all() for leaf in leaves)


@pytest.mark.parametrize('route', MASKS)
def test_gradients_scale_with_the_inputs(route: str) -> None:
    make, name = MASKS[route]
    upstream, gradients = inputs(seed=5)[0], []
    for scales in ((1.0, 1.0, 1.0), (2.0**-60, 2.0**90, 2.0**60)):
        leaves = [each.abs().requires_grad_() for each in inputs(scales)]
        (masked_linear_attention(*leaves, bound(make()), name) * upstream).sum().backward()
        pairs = zip(leaves, scales, strict=True)
        gradients.append([leaf.grad * scale / scales[2] for leaf, scale in pairs if leaf.grad is not None])
    assert len(gradients[0]) == 3
    for ordinary, scaled in zip(*gradients, strict=True):
        torch.testing.assert_close(scaled, ordinary, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize('route', MASKS)
def test_graphs_of_any_size_do_not_change_each_other(route: str) -> None:
    make, name = MASKS[route]
    data, x = batch(), inputs()
    for each in x:
        each[: SIZES[0]] *= 1e25
        each[SIZES[0] :] *= 1e-25
    out = masked_linear_attention(*(each.abs() for each in x), bound(make(), data), name)
    last = slice(SIZES[0], None)
    alone = masked_linear_attention(*(each[last].abs() for each in x), bound(make(), data[1]), name)
    torch.testing.assert_close(out[last], alone, rtol=1e-5, atol=0.0)
    assert alone.all()


def test_half_precision_over_its_range() -> None:
    mask, x = bound(AdjacencyMask()), [each.half() for each in inputs((2.0**14, 2.0**-24, 2.0**14))]
    with torch.autocast('cpu', dtype=torch.float16):
        out = masked_linear_attention(x[0].abs(), x[1].abs(), x[2], mask)
    expected = masked_linear_attention(*(each.double().abs() for each in x[:2]), x[2].double(), mask)
    torch.testing.assert_close(out.double(), expected, rtol=2e-3, atol=10.0)


def test_dense_blocks_of_images() -> None:
    mask = bound(AdjacencyMask(), Data(edge_index=ring(5), num_nodes=5))
    q, k, v = (scale * torch.rand(2, 5, 1, 3, generator=torch.Generator().manual_seed(0)) for scale in (1e30, 1e30, 1e-30))
    out = dense_linear_attention(q, k, v, mask)
    expected = linear_attention('identity', q[0], k[0], v[0], mask)
    np.testing.assert_allclose(out[0].detach() * 1e30, expected * 1e30, rtol=1e-5)


def test_powers_of_two_are_exact() -> None:
    sizes = torch.tensor([0.0, 1e-37, 0.75, 1.0, 1e38, float('inf'), float('nan')], dtype=torch.float64)
    expected = [1.0, 2.0**-123, 0.5, 1.0, 2.0**126, 1.0, 1.0]
    assert power_of_two(sizes).tolist() == expected
    assert power_of_two(sizes.float()).tolist() == expected


# Softmax and search ---------------------------------------------------------------------------------------------------


@mpmath.workdps(50)
def softmax_attention(q: Tensor, k: Tensor, v: Tensor, mask: MaskOperator) -> np.ndarray:
    query, key, weight = features('identity', q), features('identity', k), mask.to_dense()[0].tolist()
    rows = []
    for a, row in zip(query, weight, strict=True):
        score = [dot(a, b) / mpmath.sqrt(CHANNELS) for b in key]
        highest = max(s for s, m in zip(score, row, strict=True) if m)
        rows.append([m * mpmath.exp(s - highest) for s, m in zip(score, row, strict=True)])
    return combine(rows, v)


@pytest.mark.parametrize('scales', SCALES)
def test_softmax_over_sixty_decades(scales: tuple[float, float, float]) -> None:
    mask, x = bound(AdjacencyMask()), inputs(scales)
    leaves = [each.requires_grad_() for each in x]
    out = masked_softmax_attention(*leaves, mask)
    expected = softmax_attention(*(leaf.detach() for leaf in leaves), mask)
    np.testing.assert_allclose(out.detach() / scales[2], expected / scales[2], rtol=1e-4, atol=1e-5)
    (out / scales[2]).sum().backward()
    assert all(leaf.grad is not None and leaf.grad.isfinite().all() for leaf in leaves)


@pytest.mark.parametrize(
    ('scale', 'similarity', 'backend'), covering([1e-30, 1e30], ['dot', 'cosine', 'distance'], ['dense', 'chunked', 'tree'])
)
def test_search_over_sixty_decades(scale: float, similarity: str, backend: str) -> None:
    ptr, (q, k, _) = torch.tensor([0, *np.cumsum(SIZES).tolist()]), inputs((scale, scale, 1.0))
    index, valid = topk_inner_product(*inner_product_features(q, k, ptr, similarity), 3, ptr, backend)
    ordinary = [x.double() / scale for x in (q, k)]
    expected, _ = topk_inner_product(*inner_product_features(*ordinary, ptr, similarity), 3, ptr, backend)
    assert valid.all()
    assert torch.equal(index, expected)


@pytest.mark.parametrize('scale', [1e-30, 1e25])
@pytest.mark.parametrize('similarity', ['dot', 'cosine', 'distance'])
def test_layers_of_k_mip_attention_are_finite(similarity: str, scale: float) -> None:
    layer, x = (
        KMIPAttention(4, k=2, similarity=similarity),
        scale * torch.randn(9, 4, generator=torch.Generator().manual_seed(0)),
    )
    out = layer(x.requires_grad_(), batch=batch().batch, edge_index=batch().edge_index)
    (out / max(scale, 1.0)).sum().backward()
    assert out.isfinite().all()
    assert x.grad is not None
    assert x.grad.isfinite().all()


@pytest.mark.parametrize('zeros', [True, False])
@pytest.mark.parametrize('kind', [torch.float32, torch.float64])
def test_rows_in_range(kind: torch.dtype, zeros: bool) -> None:
    ordinary = torch.rand(7, 3, 5, dtype=kind)
    kinds = [ordinary, ordinary.transpose(0, 1), ordinary[:0], ordinary[..., :0]]
    for number in (0.0, 1e-9, 1e9, torch.inf, torch.nan):
        x = ordinary.clone()
        x[4, 1] = number
        kinds.append(x)
    assert [in_range(x, zeros=zeros) for x in kinds] == [True, True, True, zeros, zeros, False, False, False, False]
