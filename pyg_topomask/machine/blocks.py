r"""Attention under a mask whose blocks are combinations of prepared ones or functions of labels, as machine code."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from pyg_topomask.machine.compiled import compiled
from pyg_topomask.machine.threads import Array, array_of, arrays_of, in_chunks
from pyg_topomask.machine.vectors import dot_rows, multiply, multiply_add

# Scores that are computed at a time: few enough for the nearest cache of a core.
_TILE = 2**12
# Sums of each label that are added up in turn.
_PARTS = 4


@compiled
def _transposed(x, first, number, head, heads, width, out):  # type: ignore[no-untyped-def]
    for i in range(number):
        start = ((first + i) * heads + head) * width
        for place in range(width):
            out[place * number + i] = x[start + place]


@compiled
def _shape(first_graph, last_graph, ptr, tile):  # type: ignore[no-untyped-def]
    r"""Returns the nodes of the largest graph, and the rows that are computed at a time at most."""
    most = 1
    for graph in range(first_graph, last_graph):
        most = max(most, ptr[graph + 1] - ptr[graph])
    return most, min(most, max(8, tile // most // 8 * 8))


@compiled(any_order=True)
def _weigh(score, mask, number, start, total, size):  # type: ignore[no-untyped-def]
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
def _combine(coefficients, terms, labels, place, every, cells, masks, count, mask):  # type: ignore[no-untyped-def]
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
def _gather(terms, labels, product, place, every, cells, count, sums):  # type: ignore[no-untyped-def]
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
def _forward(  # type: ignore[no-untyped-def]
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
                _weigh(score, mask, number, 0 if masks == 1 else head * cells, sums[:tall], sizes[:tall])
                values, row = (first * heads + head) * channels, heads * channels
                multiply(score, v, out, 0, number, 1, values, row, node * channels, row, tall, number, channels)
                for i in range(tall):
                    total[node + i * heads], size[node + i * heads] = sums[i], sizes[i]


@compiled
def _backward(  # type: ignore[no-untyped-def]
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
    arrays, pairs = arrays_of((q, k, v, coefficients, *_split(terms, q), out, total, size)), _pairs(ptr)
    sizes = (q.size(1), q.size(2), v.size(2), *coefficients.shape, _TILE)
    work = q.size(1) * (q.size(2) + v.size(2) + terms.size(0))
    in_chunks(lambda first, last: _forward(first, last, array_of(ptr), pairs, *arrays, *sizes), pairs, work)
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
    arrays, pairs = arrays_of(inputs), _pairs(ptr)
    sizes = (q.size(1), q.size(2), values.size(2) - 1, *coefficients.shape, _TILE)
    totals: list[Tensor] = []

    def run(first: int, last: int) -> None:
        total = coefficients.new_zeros(coefficients.shape if 0 in learnable else 0)
        totals.append(total)
        _backward(first, last, array_of(ptr), pairs, *arrays, array_of(total), *sizes)

    in_chunks(run, pairs, 2 * q.size(1) * (q.size(2) + values.size(2) + terms.size(0)))
    return [*grads, *(torch.stack(totals).sum(0) if index == 0 else grad_terms for index in learnable)]


def _split(terms: Tensor, like: Tensor) -> tuple[Tensor, Tensor]:
    r"""Returns entries and labels, of which one is empty. The kernels are compiled once for both."""
    if terms.is_floating_point():
        return terms, terms.new_empty(0, dtype=torch.int16)
    return like.new_empty(0), terms


def _pairs(ptr: Tensor) -> Array:
    return array_of(torch.nn.functional.pad(ptr.diff().square().cumsum(0), (1, 0)))
