r"""Linear attention graph by graph of a batch, as machine code: under a mask of low rank, and under one whose blocks are
combinations of prepared ones or functions of labels.

A mask of rank :math:`r` is one of ones for :math:`r m` features: queries times the left factors, keys times the right ones.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from pyg_topomask.machine.compiled import compiled, largest
from pyg_topomask.machine.threads import array_of, arrays_of, in_chunks, pairs_before
from pyg_topomask.machine.vectors import dot_rows, multiply, multiply_add

# Nodes of a block in sums over nodes. The rounding errors of one long sum would add up.
BLOCK = 4096


@compiled
def _weigh_features(x, factor, first, last, head, heads, features, ranks, out):
    width = features * ranks
    for i in range(first, last):
        row, place = i * heads + head, (i - first) * width
        multiply(factor, x, out, row * ranks, 1, 0, row * features, 0, place, features, ranks, 1, features)


@compiled
def _unweigh_features(grad, x, factor, first, last, head, heads, features, ranks, grad_x, grad_factor):
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
def _sum_products(x, y, sums, part, x_start, x_row, y_start, y_row, rows, nodes, columns):
    for begin in range(0, nodes, BLOCK):
        count, x_begin, y_begin = min(BLOCK, nodes - begin), x_start + begin * x_row, y_start + begin * y_row
        multiply(x, y, part, x_begin, 1, x_row, y_begin, y_row, 0, columns, rows, count, columns)
        for place in range(rows * columns):
            sums[place] = part[place] if begin == 0 else sums[place] + part[place]


@compiled
def _forward_low_rank(first_graph, last_graph, ptr, q, k, v, left, right, total, size, heads, features, pitch, ranks):
    width = features * max(ranks, 1)
    step = width if ranks > 0 else heads * features
    most = largest(first_graph, last_graph, ptr) * width if ranks > 0 else 0
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
                _weigh_features(q, left, first, last, head, heads, features, ranks, query)
                _weigh_features(k, right, first, last, head, heads, features, ranks, key)
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
def _backward_low_rank(
    first_graph, last_graph, ptr, q, k, v, left, right, upstream, grad_q, grad_k, grad_v, grad_left, grad_right,
    heads, features, pitch, ranks,
):  # fmt: skip
    channels = pitch - 1
    width = features * max(ranks, 1)
    step = width if ranks > 0 else heads * features
    most = largest(first_graph, last_graph, ptr) * width if ranks > 0 else 0
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
                _weigh_features(q, left, first, last, head, heads, features, ranks, query)
                _weigh_features(k, right, first, last, head, heads, features, ranks, key)
            _sum_products(v, key, sums, part, values, row, start, step, pitch, number, width)
            _sum_products(upstream, query, grad_sums, part, values, row, start, step, pitch, number, width)
            _sum_products(query, upstream, across, part, start, step, values, row, width, number, channels)
            multiply(key, across, grad_v, start, step, 1, 0, channels, target, target_row, number, width, channels)
            if ranks == 0:
                multiply(upstream, sums, grad_q, values, row, 1, 0, width, start, step, number, pitch, width)
                multiply(v, grad_sums, grad_k, values, row, 1, 0, width, start, step, number, pitch, width)
                continue
            multiply(upstream, sums, grad, values, row, 1, 0, width, 0, width, number, pitch, width)
            _unweigh_features(grad, q, left, first, last, head, heads, features, ranks, grad_q, grad_left)
            multiply(v, grad_sums, grad, values, row, 1, 0, width, 0, width, number, pitch, width)
            _unweigh_features(grad, k, right, first, last, head, heads, features, ranks, grad_k, grad_right)


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
    in_chunks(lambda first, last: _forward_low_rank(first, last, *arrays, *sizes), arrays[0], _work(*sizes))
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
    in_chunks(lambda first, last: _backward_low_rank(first, last, *arrays, *sizes), arrays[0], 3 * _work(*sizes))
    return grads if factors else grads[:3]


def _sizes(q: Tensor, values: Tensor, factors: Sequence[Tensor]) -> tuple[int, int, int, int]:
    return q.size(1), q.size(2), values.size(2), factors[0].size(2) if factors else 0


def _work(heads: int, features: int, pitch: int, ranks: int) -> int:
    return 2 * heads * features * pitch * max(ranks, 1)


# Scores that are computed at a time: few enough for the nearest cache of a core.
_TILE = 2**12
# Sums of each label that are added up in turn.
_PARTS = 4


@compiled
def _transposed(x, first, number, head, heads, width, out):
    for i in range(number):
        start = ((first + i) * heads + head) * width
        for place in range(width):
            out[place * number + i] = x[start + place]


@compiled
def _shape(first_graph, last_graph, ptr, tile):
    r"""Returns the nodes of the largest graph, and the rows that are computed at a time at most."""
    most = max(1, largest(first_graph, last_graph, ptr))
    return most, min(most, max(8, tile // most // 8 * 8))


@compiled(any_order=True)
def _weigh_scores(score, mask, number, start, total, size):
    r"""Multiplies scores by the mask, row by row, and sums them and their magnitudes up."""
    for row in range(len(total)):
        denominator, magnitude = score.dtype.type(0), score.dtype.type(0)
        scores, factors = score[row * number : (row + 1) * number], mask[start + row * number : start + (row + 1) * number]
        for place in range(number):
            weight = scores[place] * factors[place]
            scores[place] = weight
            denominator += weight
            magnitude += abs(weight)
        total[row], size[row] = denominator, magnitude


@compiled
def _combine(coefficients, terms, labels, place, every, cells, masks, count, mask):
    r"""Writes the entries of the mask at some of all pairs, head by head."""
    if labels.size == 0:
        multiply(coefficients, terms, mask, 0, count, 1, place, every, 0, cells, masks, count, cells)
        return
    for first in range(place, labels.size, every):
        of_pairs = labels[first : first + cells]
        for head in range(masks):
            numbers, entries = coefficients[head * count : (head + 1) * count], mask[head * cells : (head + 1) * cells]
            if first == place:
                for cell in range(cells):
                    entries[cell] = numbers[of_pairs[cell]]
            else:
                for cell in range(cells):
                    entries[cell] += numbers[of_pairs[cell]]


@compiled
def _gather(terms, labels, product, place, every, cells, count, sums):
    r"""Writes the gradients of the coefficients from those of entries."""
    if labels.size == 0:
        dot_rows(terms, product, sums, place, every, 0, 0, 0, 1, count, cells)
        return
    # Neighbors often have one label. An addition to the sum that the last one has changed would wait for it.
    sums[:] = 0
    for first in range(place, labels.size, every):
        of_pairs = labels[first : first + cells]
        for cell in range(cells):
            sums[cell % _PARTS * count + of_pairs[cell]] += product[cell]
    for part in range(count, _PARTS * count):
        sums[part % count] += sums[part]


@compiled
def _forward_blocks(
    first_graph, last_graph, ptr, pairs, q, k, v, coefficients, terms, labels, out, total, size, heads, features, channels,
    masks, count, tile,
):  # fmt: skip
    most, rows = _shape(first_graph, last_graph, ptr, tile)
    keys = np.empty(heads * features * most, q.dtype)
    score, mask = np.empty(rows * most, q.dtype), np.empty(masks * rows * most, q.dtype)
    sums, sizes, every = np.empty(rows, q.dtype), np.empty(rows, q.dtype), pairs[-1]
    for graph in range(first_graph, last_graph):
        first, number = ptr[graph], ptr[graph + 1] - ptr[graph]
        for head in range(heads):
            _transposed(k, first, number, head, heads, features, keys[head * features * number :])
        for begin in range(0, number, rows):
            tall = min(rows, number - begin)
            cells, place = tall * number, pairs[graph] + begin * number
            _combine(coefficients, terms, labels, place, every, cells, masks, count, mask)
            for head in range(heads):
                node = (first + begin) * heads + head
                start = head * features * number
                multiply(q, keys, score, node * features, heads * features, 1, start, number, 0, number, tall, features, number)
                _weigh_scores(score, mask, number, 0 if masks == 1 else head * cells, sums[:tall], sizes[:tall])
                values, row = (first * heads + head) * channels, heads * channels
                multiply(score, v, out, 0, number, 1, values, row, node * channels, row, tall, number, channels)
                for i in range(tall):
                    total[node + i * heads], size[node + i * heads] = sums[i], sizes[i]


@compiled
def _backward_blocks(
    first_graph, last_graph, ptr, pairs, q, k, v, coefficients, terms, labels, upstream, grad_q, grad_k, grad_v,
    grad_terms, grad_coefficients, heads, features, channels, masks, count, tile,
):  # fmt: skip
    most, rows = _shape(first_graph, last_graph, ptr, tile)
    pitch, every, kind = channels + 1, pairs[-1], q.dtype
    keys, values = np.empty(heads * features * most, kind), np.empty(heads * pitch * most, kind)
    score, change, mask = np.empty(rows * most, kind), np.empty(rows * most, kind), np.empty(masks * rows * most, kind)
    product, sums = np.empty(rows * most, kind), np.empty(_PARTS * count, kind)
    for graph in range(first_graph, last_graph):
        first, number = ptr[graph], ptr[graph + 1] - ptr[graph]
        for head in range(heads):
            _transposed(k, first, number, head, heads, features, keys[head * features * number :])
            _transposed(v, first, number, head, heads, pitch, values[head * pitch * number :])
        grad_k[first * heads * features : (first + number) * heads * features] = 0
        grad_v[first * heads * channels : (first + number) * heads * channels] = 0
        for begin in range(0, number, rows):
            tall = min(rows, number - begin)
            cells, place = tall * number, pairs[graph] + begin * number
            _combine(coefficients, terms, labels, place, every, cells, masks, count, mask)
            for head in range(heads):
                node, of_head = (first + begin) * heads + head, first * heads + head
                multiply(
                    q, keys, score,
                    node * features, heads * features, 1, head * features * number, number, 0, number,
                    tall, features, number,
                )  # fmt: skip
                multiply(
                    upstream, values, change,
                    node * pitch, heads * pitch, 1, head * pitch * number, number, 0, number,
                    tall, pitch, number,
                )  # fmt: skip
                factors = mask[0 if masks == 1 else head * cells :]
                shared = 0 if masks == 1 else head * count
                if grad_coefficients.size > 0 or grad_terms.size > 0:
                    for cell in range(cells):
                        product[cell] = score[cell] * change[cell]
                if grad_coefficients.size > 0:
                    _gather(terms, labels, product, place, every, cells, count, sums)
                    for term in range(count):
                        grad_coefficients[shared + term] += sums[term]
                if grad_terms.size > 0:
                    for term in range(count):
                        factor, grad = coefficients[shared + term], grad_terms[term * every + place :]
                        for cell in range(cells):
                            grad[cell] += factor * product[cell]
                for cell in range(cells):
                    score[cell] *= factors[cell]
                    change[cell] *= factors[cell]
                multiply(
                    change, k, grad_q,
                    0, number, 1, of_head * features, heads * features, node * features, heads * features,
                    tall, number, features,
                )  # fmt: skip
                multiply_add(
                    change, q, grad_k,
                    0, 1, number, node * features, heads * features, of_head * features, heads * features,
                    number, tall, features,
                )  # fmt: skip
                multiply_add(
                    score, upstream, grad_v,
                    0, 1, number, node * pitch, heads * pitch, of_head * channels, heads * channels,
                    number, tall, channels,
                )  # fmt: skip


def attend_prepared_blocks(
    ptr: Tensor, q: Tensor, k: Tensor, v: Tensor, coefficients: Tensor, terms: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    r"""Returns numerators, :obj:`[N, H, d]`, denominators and the sums of magnitudes, :obj:`[N, H]`, for coefficients :obj:`[H
    or 1, K]` of blocks with the entries :obj:`[K, num_pairs]`, or of labels, :obj:`[labels, num_pairs]`. The nodes of graph
    :obj:`b` begin at :obj:`ptr[b]`.
    """
    out, total, size = v.new_empty(v.shape), q.new_empty(q.shape[:2]), q.new_empty(q.shape[:2])
    arrays, pairs = arrays_of((q, k, v, coefficients, *_split(terms, q), out, total, size)), pairs_before(ptr)
    sizes = (q.size(1), q.size(2), v.size(2), *coefficients.shape, _TILE)
    work = q.size(1) * (q.size(2) + v.size(2) + terms.size(0))
    in_chunks(lambda first, last: _forward_blocks(first, last, array_of(ptr), pairs, *arrays, *sizes), pairs, work)
    return out, total, size


def attend_prepared_blocks_backward(
    ptr: Tensor,
    q: Tensor,
    k: Tensor,
    values: Tensor,
    coefficients: Tensor,
    terms: Tensor,
    upstream: Tensor,
    learnable: Sequence[int],
) -> list[Tensor]:
    r"""Returns the gradients of queries, keys, values and, if they are learned, coefficients (0) and terms (1) from those of
    numerators and denominators, :obj:`[N, H, d + 1]`. Values have a column of ones, :obj:`[N, H, d + 1]`; the other arguments
    are those of :func:`attend_prepared_blocks`.
    """
    grads = [torch.empty(x.shape, dtype=x.dtype) for x in (q, k, values[..., :-1])]
    grad_terms = torch.zeros_like(terms) if 1 in learnable else q.new_empty(0)
    inputs = q, k, values, coefficients, *_split(terms, q), upstream, *grads, grad_terms
    arrays, pairs = arrays_of(inputs), pairs_before(ptr)
    sizes = (q.size(1), q.size(2), values.size(2) - 1, *coefficients.shape, _TILE)
    totals: list[Tensor] = []

    def run(first: int, last: int) -> None:
        total = coefficients.new_zeros(coefficients.shape if 0 in learnable else 0)
        totals.append(total)
        _backward_blocks(first, last, array_of(ptr), pairs, *arrays, array_of(total), *sizes)

    in_chunks(run, pairs, 2 * q.size(1) * (q.size(2) + values.size(2) + terms.size(0)))
    return [*grads, *(torch.stack(totals).sum(0) if index == 0 else grad_terms for index in learnable)]


def _split(terms: Tensor, like: Tensor) -> tuple[Tensor, Tensor]:
    r"""Returns entries and labels, of which one is empty. The kernels are compiled once for both."""
    if terms.is_floating_point():
        return terms, terms.new_empty(0, dtype=torch.int16)
    return like.new_empty(0), terms
