"""The numerics by themselves: search, sparse products, attention, and the series of masks."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from fuzz.strategies import (
    DTYPES,
    arguments,
    assert_finite,
    attempt,
    attributed,
    edges,
    fuzz,
    graphs,
    lay_out,
    random,
)
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from pyg_topomask import Graph, ops
from pyg_topomask.masks import AdjacencyMask, convolve, deconvolve, kernel_series, modulation
from pyg_topomask.masks.base.series import KERNELS
from pyg_topomask.masks.expander import expander_edges
from pyg_topomask.operators.base import MaskOperator
from pyg_topomask.ops import knn_graph, topk_inner_product
from pyg_topomask.ops.routes.choice import choose_route
from pyg_topomask.ops.softmax_entries import attend_softmax
from pyg_topomask.ops.topk.topk_inner_product import choose_topk_backend, inner_product_features

# Public functions and those that they are made of, by the test that draws each.
FUZZED = {
    'attend_softmax': 'test_attention_is_finite_and_repeatable_and_overwrites_nothing',
    'choose_route': 'test_arguments_are_refused_by_name_or_do',
    'choose_topk_backend': 'test_arguments_are_refused_by_name_or_do',
    'inner_product_features': 'test_similarities_are_finite_and_refused_by_name',
    'knn_graph': 'test_neighbors_are_of_the_same_graph',
    'masked_linear_attention': 'test_attention_is_finite_and_repeatable_and_overwrites_nothing',
    'masked_softmax_attention': 'test_attention_is_finite_and_repeatable_and_overwrites_nothing',
    'topk_inner_product': 'test_search_finds_the_largest_products',
}


def test_every_public_name_is_fuzzed() -> None:
    assert set(ops.__all__) <= set(FUZZED)
    assert set(FUZZED.values()) <= set(globals())


@st.composite
def clouds(draw: st.DrawFn, dtypes: st.SearchStrategy[torch.dtype] | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """Two sets of vectors [N, H, d] and where the graphs begin; with many equal numbers, or none."""
    sizes = draw(st.lists(st.integers(0, 6), max_size=4))
    heads, channels = draw(st.integers(1, 2)), draw(st.integers(1, 3))
    dtype = draw(st.sampled_from(DTYPES) if dtypes is None else dtypes)
    scale = draw(st.sampled_from([0.0, 1e-20, 1.0, 1e3]))
    vectors = [scale * random(seed, sum(sizes), heads, channels, dtype=torch.float64) for seed in (0, 1)]
    if draw(st.booleans()):
        vectors = [tensor.round() for tensor in vectors]
    how = draw(st.sampled_from(['contiguous', 'strided']))
    q, k = (lay_out(tensor.to(dtype), how).requires_grad_() for tensor in vectors)
    return q, k, torch.tensor([0, *sizes]).cumsum(0)


@pytest.mark.parametrize('backend', ['auto', 'dense', 'chunked', 'tree', 'faiss'])
@fuzz(8)
@given(st.data())
def test_search_finds_the_largest_products(backend: str, data: st.DataObject) -> None:
    q, k, ptr = data.draw(clouds())
    num, deterministic = data.draw(st.sampled_from([1, 2, 5, 60])), data.draw(st.booleans())
    before = q.detach().clone(), k.detach().clone()
    index, valid = topk_inner_product(q, k, num, ptr, backend, deterministic)
    again = topk_inner_product(q, k, num, ptr.int(), backend, deterministic)
    assert torch.equal(index, again[0])
    assert torch.equal(valid, again[1])
    assert torch.equal(q, before[0])
    assert torch.equal(k, before[1])
    assert index.shape == valid.shape == (*q.shape[:2], num)
    query, key = (tensor.detach().to(torch.promote_types(tensor.dtype, torch.float32)).numpy() for tensor in (q, k))
    for first, end in zip(ptr[:-1].tolist(), ptr[1:].tolist(), strict=True):
        scores = np.einsum('nhd,khd->nhk', query[first:end], key[first:end])
        count = min(num, end - first)
        chosen, used = index[first:end].numpy(), valid[first:end].numpy()
        assert (used == (np.arange(num) < count)).all()
        assert ((chosen >= first) & (chosen < end)).all()
        assert all(len(set(row[:count])) == count for row in chosen.reshape(-1, num))
        largest = -np.sort(-scores, axis=-1)[..., :count]
        actual = np.take_along_axis(scores, chosen[..., :count] - first, axis=-1)
        np.testing.assert_allclose(actual, largest, rtol=1e-5, atol=1e-6 * np.abs(scores).max(initial=0.0))


@fuzz(15)
@given(st.data())
def test_similarities_are_finite_and_refused_by_name(data: st.DataObject) -> None:
    q, k, ptr = data.draw(clouds())
    similarity = data.draw(st.sampled_from(['dot', 'cosine', 'distance', 'nonsense']))
    out = attempt(lambda: inner_product_features(q, k, ptr, similarity), ['similarity'])
    assert (out is None) == (similarity == 'nonsense')
    if out is not None:
        assert_finite(torch.cat(out), q, k)


@fuzz(20)
@given(st.data())
def test_neighbors_are_of_the_same_graph(data: st.DataObject) -> None:
    q, _, ptr = data.draw(clouds())
    batch = torch.repeat_interleave(ptr.diff())
    num, loop = data.draw(st.sampled_from([1, 2, 100])), data.draw(st.booleans())
    pos = q.detach()[:, 0]
    source, target = knn_graph(pos, num, data.draw(st.sampled_from([batch, batch.int()])), loop)
    assert torch.equal(batch[source], batch[target])
    assert loop or not (source == target).any()
    assert torch.unique(torch.stack([source, target]), dim=1).size(1) == source.numel()
    for first, end in zip(ptr[:-1].tolist(), ptr[1:].tolist(), strict=True):
        count = torch.bincount(target, minlength=pos.size(0))[first:end]
        assert (count == min(num, end - first if loop else end - first - 1)).all()
        alone = knn_graph(pos[first:end], num, loop=loop) + first
        assert torch.equal(alone, torch.stack([source, target])[:, (target >= first) & (target < end)])


@fuzz(20)
@given(st.data())
def test_attention_is_finite_and_repeatable_and_overwrites_nothing(data: st.DataObject) -> None:
    graph = data.draw(graphs())
    dtype, heads, num_nodes = data.draw(st.sampled_from(DTYPES)), data.draw(st.integers(1, 2)), graph.num_nodes
    scale = data.draw(st.sampled_from([0.0, 1e-20, 1.0, 50.0]))
    sizes = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 3))
    q, k, v = (
        (scale * random(seed, num_nodes, heads, size)).to(dtype).requires_grad_()
        for seed, size in enumerate((sizes[0], sizes[0], sizes[1]))
    )
    before = [tensor.detach().clone() for tensor in (q, k, v)]
    self_loop, normalization = data.draw(st.sampled_from([None, 1.0])), data.draw(st.sampled_from(['sym', None]))
    mask = AdjacencyMask(heads, self_loop, normalization)(graph)
    entries = mask.entries
    assert entries is not None
    attend: Callable[[], Tensor] = data.draw(
        st.sampled_from(
            [
                *(lambda r=route: ops.masked_linear_attention(q, k, v, mask, r) for route in ('auto', 'features', 'edges')),
                lambda: ops.masked_softmax_attention(q, k, v, mask),
                lambda: attend_softmax(q, k, v, entries())[0],
            ]
        )
    )
    out = attend()
    assert out.shape == v.shape
    assert out.dtype == dtype
    assert torch.equal(out, attend())
    assert all(torch.equal(tensor, was) for tensor, was in zip((q, k, v), before, strict=True))
    assert_finite(out, q, k, v)


def small_mask(heads: int = 1) -> MaskOperator:
    return AdjacencyMask(heads)(attributed(edges('ring', 4, 0), 4, 0))


CALLS: dict[Callable[..., Any], dict[str, Any]] = {
    choose_route: {'mask': small_mask(), 'num_features': 4, 'num_channels': 4},
    choose_topk_backend: {'num_nodes': 10, 'dim': 4},
    expander_edges: {'graph': Graph.from_tensors(edges('ring', 4, 0), 4), 'degree': 2},
    modulation: {'name': 'heat', 'max_walk_length': 3},
    kernel_series: {'name': 'heat', 'order': 3},
}


@pytest.mark.parametrize('function', CALLS, ids=lambda function: function.__name__)
@fuzz(10)
@given(st.data())
def test_arguments_are_refused_by_name_or_do(function: Callable[..., Any], data: st.DataObject) -> None:
    drawn = data.draw(arguments(function, CALLS[function]))
    attempt(lambda: function(**drawn), drawn)


@pytest.mark.parametrize('kernel', [*sorted(KERNELS), 'nonsense'])
@fuzz(10)
@given(order=st.integers(-1, 30), scale=st.sampled_from(['', ':0.5', ':0', ':-1', ':1e300', ':nan', ':x', ':', ':1:2']))
def test_series_are_finite_or_refused_by_name(kernel: str, order: int, scale: str) -> None:
    series = attempt(lambda: kernel_series(kernel + scale, order), ['name', 'order'])
    assert series is None or (series.shape == (order + 1,) and series.isfinite().all())
    f = attempt(lambda: modulation(kernel + scale, order), ['name', 'max_walk_length'])
    assert f is None or (f.shape == (order + 1,) and f.isfinite().all())


@fuzz(20)
@given(alpha=st.lists(st.sampled_from([0.0, 1.0, -0.5, 2.0, 1e-8, 1e3]), max_size=6))
def test_deconvolution_is_undone_by_convolution(alpha: list[float]) -> None:
    series = torch.tensor(alpha, dtype=torch.float64)
    f = attempt(lambda: deconvolve(series), ['alpha'])
    assert (f is None) == (len(alpha) == 0 or alpha[0] <= 0)
    if f is not None:  # up to rounding of the terms, which may be far larger than their sum
        rounding = 1e-13 * convolve(f.abs(), f.abs())[: len(alpha)]
        assert ((convolve(f, f)[: len(alpha)] - series).abs() <= rounding).all()
