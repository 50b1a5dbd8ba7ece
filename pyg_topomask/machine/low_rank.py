r"""Linear attention under a mask of low rank within each graph of a batch, as machine code.

A mask of rank :math:`r` is one of ones for :math:`r m` features: queries times the left factors, keys times the right ones.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from pyg_topomask.machine.compiled import compiled
from pyg_topomask.machine.threads import arrays_of, in_chunks
from pyg_topomask.machine.vectors import dot_rows, multiply

# Nodes of a block in sums over nodes. The rounding errors of one long sum would add up.
BLOCK = 4096


@compiled
def _weigh(x, factor, first, last, head, heads, features, ranks, out):  # type: ignore[no-untyped-def]
    width = features * ranks
    for i in range(first, last):
        row, place = i * heads + head, (i - first) * width
        multiply(factor, x, out, row * ranks, 1, 0, row * features, 0, place, features, ranks, 1, features)


@compiled
def _unweigh(grad, x, factor, first, last, head, heads, features, ranks, grad_x, grad_factor):  # type: ignore[no-untyped-def]
    width, start = features * ranks, first * heads + head
    for i in range(first, last):
        row, place = i * heads + head, (i - first) * width
        multiply(factor, grad, grad_x, row * ranks, 0, 1, place, features, row * features, 0, 1, ranks, features)
    for rank in range(ranks):
        dot_rows(
            grad, x, grad_factor,
            rank * features, width, start * features, heads * features, start * ranks + rank, heads * ranks,
            last - first, features,
        )  # fmt: skip


@compiled
def _sum_products(x, y, sums, part, x_start, x_row, y_start, y_row, rows, nodes, columns):  # type: ignore[no-untyped-def]
    for begin in range(0, nodes, BLOCK):
        count, x_begin, y_begin = min(BLOCK, nodes - begin), x_start + begin * x_row, y_start + begin * y_row
        multiply(x, y, part, x_begin, 1, x_row, y_begin, y_row, 0, columns, rows, count, columns)
        for place in range(rows * columns):
            sums[place] = part[place] if begin == 0 else sums[place] + part[place]


@compiled
def _widest(first_graph, last_graph, ptr):  # type: ignore[no-untyped-def]
    most = 0
    for graph in range(first_graph, last_graph):
        most = max(most, ptr[graph + 1] - ptr[graph])
    return most


@compiled
def _forward(first_graph, last_graph, ptr, q, k, v, left, right, total, size, heads, features, pitch, ranks):  # type: ignore[no-untyped-def]
    width = features * max(ranks, 1)
    step = width if ranks > 0 else heads * features
    most = _widest(first_graph, last_graph, ptr) * width if ranks > 0 else 0
    weighed_query, weighed_key = np.empty(most, q.dtype), np.empty(most, q.dtype)
    sums, sizes, part = np.empty(width * pitch, q.dtype), np.empty(width, q.dtype), np.empty(width * pitch, q.dtype)
    for graph in range(first_graph, last_graph):
        first, last = ptr[graph], ptr[graph + 1]
        number = last - first
        for head in range(heads):
            values, row = (first * heads + head) * pitch, heads * pitch
            query, key, start = q, k, (first * heads + head) * features
            if ranks > 0:
                query, key, start = weighed_query, weighed_key, 0
                _weigh(q, left, first, last, head, heads, features, ranks, query)
                _weigh(k, right, first, last, head, heads, features, ranks, key)
            _sum_products(key, v, sums, part, start, step, values, row, width, number, pitch)
            multiply(query, sums, total, start, step, 1, 0, pitch, values, row, number, width, pitch)
            if size.size == 0:
                continue
            sizes[:] = 0
            for i in range(number):
                for place in range(width):
                    sizes[place] += abs(key[start + i * step + place])
            for i in range(number):
                magnitude = q.dtype.type(0)
                for place in range(width):
                    magnitude += abs(query[start + i * step + place]) * sizes[place]
                size[(first + i) * heads + head] = magnitude


@compiled
def _backward(  # type: ignore[no-untyped-def]
    first_graph, last_graph, ptr, q, k, v, left, right, upstream, grad_q, grad_k, grad_v, grad_left, grad_right,
    heads, features, pitch, ranks,
):  # fmt: skip
    channels = pitch - 1
    width = features * max(ranks, 1)
    step = width if ranks > 0 else heads * features
    most = _widest(first_graph, last_graph, ptr) * width if ranks > 0 else 0
    weighed_query, weighed_key, grad = np.empty(most, q.dtype), np.empty(most, q.dtype), np.empty(most, q.dtype)
    sums, grad_sums = np.empty(width * pitch, q.dtype), np.empty(width * pitch, q.dtype)
    across, part = np.empty(width * channels, q.dtype), np.empty(width * pitch, q.dtype)
    for graph in range(first_graph, last_graph):
        first, last = ptr[graph], ptr[graph + 1]
        number = last - first
        for head in range(heads):
            values, row = (first * heads + head) * pitch, heads * pitch
            target, target_row = (first * heads + head) * channels, heads * channels
            query, key, start = q, k, (first * heads + head) * features
            if ranks > 0:
                query, key, start = weighed_query, weighed_key, 0
                _weigh(q, left, first, last, head, heads, features, ranks, query)
                _weigh(k, right, first, last, head, heads, features, ranks, key)
            _sum_products(v, key, sums, part, values, row, start, step, pitch, number, width)
            _sum_products(upstream, query, grad_sums, part, values, row, start, step, pitch, number, width)
            _sum_products(query, upstream, across, part, start, step, values, row, width, number, channels)
            multiply(key, across, grad_v, start, step, 1, 0, channels, target, target_row, number, width, channels)
            if ranks == 0:
                multiply(upstream, sums, grad_q, values, row, 1, 0, width, start, step, number, pitch, width)
                multiply(v, grad_sums, grad_k, values, row, 1, 0, width, start, step, number, pitch, width)
                continue
            multiply(upstream, sums, grad, values, row, 1, 0, width, 0, width, number, pitch, width)
            _unweigh(grad, q, left, first, last, head, heads, features, ranks, grad_q, grad_left)
            multiply(v, grad_sums, grad, values, row, 1, 0, width, 0, width, number, pitch, width)
            _unweigh(grad, k, right, first, last, head, heads, features, ranks, grad_k, grad_right)


def attend_low_rank_batch(
    ptr: Tensor, q: Tensor, k: Tensor, values: Tensor, factors: Sequence[Tensor], sized: bool
) -> tuple[Tensor, Tensor]:
    r"""Returns numerators and denominators, :obj:`[N, H, d + 1]`, and the sums of magnitudes if asked for, :obj:`[N, H]`.
    Values have a column of ones, and there are left and right factors, :obj:`[N, H, r]`, or none for a mask of ones.
    """
    total, size = torch.empty_like(values), q.new_empty(q.shape[:2] if sized else 0)
    left, right = factors or (q.new_empty(0),) * 2
    arrays = arrays_of((ptr, q, k, values, left, right, total, size))
    sizes = _sizes(q, values, factors)
    in_chunks(lambda first, last: _forward(first, last, *arrays, *sizes), arrays[0], _work(*sizes))
    return total, size


def attend_low_rank_batch_backward(
    ptr: Tensor, q: Tensor, k: Tensor, values: Tensor, factors: Sequence[Tensor], upstream: Tensor
) -> list[Tensor]:
    r"""Returns the gradients of queries, keys, values and factors from those of numerators and denominators,
    :obj:`[N, H, d + 1]`. Arguments are those of :func:`attend_low_rank_batch`.
    """
    left, right = factors or (q.new_empty(0),) * 2
    grads = [torch.empty(x.shape, dtype=x.dtype) for x in (q, k, values[..., :-1], left, right)]
    arrays = arrays_of((ptr, q, k, values, left, right, upstream, *grads))
    sizes = _sizes(q, values, factors)
    in_chunks(lambda first, last: _backward(first, last, *arrays, *sizes), arrays[0], 3 * _work(*sizes))
    return grads if factors else grads[:3]


def _sizes(q: Tensor, values: Tensor, factors: Sequence[Tensor]) -> tuple[int, int, int, int]:
    return q.size(1), q.size(2), values.size(2), factors[0].size(2) if factors else 0


def _work(heads: int, features: int, pitch: int, ranks: int) -> int:
    return 2 * heads * features * pitch * max(ranks, 1)
