r"""Linear and softmax attention along the entries of a sparse mask, as machine code: sums of rows, and gradients of columns.

A row adds to the gradients of its keys and values. Threads take parts of the rows, and each adds to gradients of its own. All
heads of a neighbor are taken together. Loops in plain Numba took 1.5 to 2.2 times as long on 10,000 nodes of degree 6, and 1.4
to 2.7 times on 128 graphs of 30 nodes (softmax 1.0 to 1.6 times; 16 features and channels, 4 heads, Zen 5).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pyg_topomask.graphs.sparse_pattern import SparsePattern
from pyg_topomask.machine.compiled import compiled
from pyg_topomask.machine.threads import Array, array_of, arrays_of, chunk_bounds, in_chunks, in_threads
from pyg_topomask.machine.vectors import index, written


def _write_weights(
    write, q, k, v, mask, label, weight, denominator, magnitude, col, i, start, stop, final, heads, features, channels, stride,
    labelled,
):  # fmt: skip
    r"""Writes the weights of the entries of a row, :obj:`[stop - start, heads]`, their sums, and those of their magnitudes.
    The rows of :obj:`v` are read next.
    """
    pitch = write.times(heads, features)
    query = write.at(q, write.times(i, pitch))

    def weigh(head: Any, number: int) -> None:
        offset = write.times(head, features)
        total, size = write.variables(2, number)
        with write.for_range(start, stop) as (entry, _):
            later = write.times(write.column(col, write.ahead(entry, final)), heads)
            for tensor, width in ((k, features), (v, channels)):
                for row in write.rows(write.at(tensor, write.times(write.builder.add(later, head), width)), width, number):
                    write.prefetch(row)
            key = write.at(k, write.times(write.column(col, entry), pitch), offset)
            queries, keys = (write.rows(x, features, number) for x in (write.at(query, offset), key))
            _, factor = _factor(write, mask, label, entry, head, number, heads, stride, labelled)
            product = write.multiply(write.dots(queries, keys, features), factor)
            write.accumulate(total, product)
            write.accumulate(size, write.magnitude(product))
            write.store(product, write.at(weight, write.times(write.builder.sub(entry, start), heads), head))
        write.store(write.builder.load(total), write.at(denominator, head))
        write.store(write.builder.load(size), write.at(magnitude, head))

    write.for_groups(heads, weigh)


def _factor(write, mask, label, entry, head, number, heads, stride, labelled):
    r"""Returns where the mask has the factors of an entry, and the factors."""
    if labelled:
        place = write.builder.add(write.times(write.column(label, entry), heads), head)
        return place, write.load(write.at(mask, place), number)
    place = write.builder.add(write.times(head, stride), entry)
    return place, write.strided(write.at(mask, place), stride, number)


def _write_gradients(
    write, q, k, upstream, v, shift, mask, label, grad_mask, pairs, col, i, start, stop, final, heads, features, channels,
    stride, learned, labelled,
):  # fmt: skip
    r"""Writes the weights of the entries of a row and the gradients of their scores, :obj:`[stop - start, 2, heads]`, and adds
    to those of the mask.
    """
    widths = [(features, q, k), (channels, upstream, v)]

    def differentiate(head: Any, number: int) -> None:
        shifts = write.load(write.at(shift, write.times(i, heads), head), number)
        with write.for_range(start, stop) as (entry, _):
            column, products = write.column(col, entry), []
            later = write.column(col, write.ahead(entry, final))
            for width, left, right in widths:
                pitch, offset = write.times(heads, width), write.times(head, width)
                for row in write.rows(write.at(right, write.times(later, pitch), offset), width, number):
                    write.prefetch(row)
                x, y = write.at(left, write.times(i, pitch), offset), write.at(right, write.times(column, pitch), offset)
                products.append(write.dots(write.rows(x, width, number), write.rows(y, width, number), width))
            score, change = products[0], write.add(products[1], shifts)
            place, factor = _factor(write, mask, label, entry, head, number, heads, stride, labelled)
            target = write.at(pairs, write.times(write.builder.sub(entry, start), write.times(heads, index(2))), head)
            write.store(write.multiply(score, factor), target)
            write.store(write.multiply(change, factor), write.at(target, heads))
            with write.builder.if_then(learned):
                product = write.multiply(score, change)
                if labelled:
                    total = write.at(grad_mask, place)
                    write.store(write.add(write.load(total, number), product), total)
                else:
                    for lane in range(number):  # one after the other: heads may share a number
                        address = write.at(grad_mask, place, write.times(stride, index(lane)))
                        write.builder.store(write.add(write.builder.load(address), write.lane(product, lane)), address)

    write.for_groups(heads, differentiate)


# The factor of an entry is in its own place, or in that of its label. Labelled entries are those of balls, which are near.
_weigh, _weigh_labelled = (written(_write_weights, labelled=labelled) for labelled in (False, True))
_differentiate, _differentiate_labelled = (written(_write_gradients, labelled=labelled) for labelled in (False, True))


@written
def _gather(write, weight, x, out, col, i, start, stop, heads, channels, first, stride):
    r"""Writes :math:`\sum_e w_e \mathbf{x}_{col(e)}` over the entries of a row."""
    pitch = write.times(heads, channels)

    def gather(head: Any, number: int) -> None:
        offset = write.times(head, channels)
        target = write.at(out, write.times(i, pitch), offset)

        def total(channel: Any, mask: Any) -> None:
            totals = write.variables(number, write.lanes)
            with write.for_range(start, stop) as (entry, _):
                weights = write.at(weight, write.times(write.builder.sub(entry, start), stride), first, head)
                row = write.at(x, write.times(write.column(col, entry), pitch), offset, channel)
                for lane, each in enumerate(totals):
                    factor = write.filled(write.builder.load(write.at(weights, index(lane))), write.lanes)
                    value = write.load(write.at(row, write.times(channels, index(lane))), write.lanes, mask)
                    write.accumulate(each, write.multiply(factor, value))
            for lane, each in enumerate(totals):
                write.store(write.builder.load(each), write.at(target, write.times(channels, index(lane)), channel), mask)

        write.for_channels(channels, total)

    write.for_groups(heads, gather)


@written
def _scatter(write, weight, x, out, col, i, origin, start, stop, final, heads, channels, first, stride):
    r"""Adds :math:`w_e \mathbf{x}_i` to the row :math:`col(e)` of the output, whose first row is that of node
    :obj:`origin`, for each entry of a row.
    """
    pitch = write.times(heads, channels)

    def scatter(head: Any, number: int) -> None:
        offset = write.times(head, channels)
        source = write.at(x, write.times(i, pitch), offset)

        def add(channel: Any, mask: Any) -> None:
            rows = write.rows(write.at(source, channel), channels, number)
            values = [write.load(row, write.lanes, mask) for row in rows]
            with write.for_range(start, stop) as (entry, _):
                weights = write.at(weight, write.times(write.builder.sub(entry, start), stride), first, head)
                later = write.builder.sub(write.column(col, write.ahead(entry, final)), origin)
                for place in write.rows(write.at(out, write.times(later, pitch), offset, channel), channels, number):
                    write.prefetch(place)
                column = write.builder.sub(write.column(col, entry), origin)
                target = write.at(out, write.times(column, pitch), offset, channel)
                for lane, value in enumerate(values):
                    factor = write.filled(write.builder.load(write.at(weights, index(lane))), write.lanes)
                    place = write.at(target, write.times(channels, index(lane)))
                    added = write.add(write.load(place, write.lanes, mask), write.multiply(factor, value))
                    write.store(added, place, mask)

        write.for_channels(channels, add)

    write.for_groups(heads, scatter)


@compiled
def forward_rows(first, last, most, q, k, v, mask, label, rowptr, col, out, inverse, heads, features, channels, stride):
    limits = np.finfo(q.dtype)
    rounding, least = q.dtype.type(16) * limits.eps, limits.tiny / limits.eps
    weight, total, size = np.empty(most * heads, q.dtype), np.empty(heads, q.dtype), np.empty(heads, q.dtype)
    for i in range(first, last):
        start, stop = np.int64(rowptr[i]), np.int64(rowptr[i + 1])
        weigh = q, k, v, mask, label, weight, total, size, col, i, start, stop, len(col) - 1, heads, features, channels, stride
        if label.size > 0:
            _weigh_labelled(*weigh)
        else:
            _weigh(*weigh)
        _gather(weight, v, out, col, i, start, stop, heads, channels, 0, heads)
        for head in range(heads):
            # As inverse_weight.
            empty = abs(total[head]) <= max(rounding * size[head], least)
            scale = q.dtype.type(0) if empty else q.dtype.type(1) / total[head]
            inverse[i * heads + head] = scale
            for place in range((i * heads + head) * channels, (i * heads + head + 1) * channels):
                out[place] *= scale


@compiled
def backward_rows(
    first, last, most, origin, q, k, v, mask, label, rowptr, col, upstream, shift, grad_q, grad_k, grad_v, grad_mask, heads,
    features, channels, stride,
):  # fmt: skip
    # The weights of the entries, and the gradients of their scores.
    learned, pairs = grad_mask.size > 0, np.empty(2 * most * heads, q.dtype)
    for i in range(first, last):
        start, stop = np.int64(rowptr[i]), np.int64(rowptr[i + 1])
        differentiate = (
            q, k, upstream, v, shift, mask, label, grad_mask, pairs, col,
            i, start, stop, len(col) - 1, heads, features, channels, stride, learned,
        )  # fmt: skip
        if label.size > 0:
            _differentiate_labelled(*differentiate)
        else:
            _differentiate(*differentiate)
        _gather(pairs, k, grad_q, col, i, start, stop, heads, features, heads, 2 * heads)
        _scatter(pairs, upstream, grad_v, col, i, origin, start, stop, len(col) - 1, heads, channels, 0, 2 * heads)
        _scatter(pairs, q, grad_k, col, i, origin, start, stop, len(col) - 1, heads, features, heads, 2 * heads)


@compiled
def softmax_rows(first, last, most, q, k, v, mask, keep, ones, rowptr, col, out, alpha, heads, features, channels, stride):
    weight, spare, nnz = np.empty(most * heads, q.dtype), np.empty(heads, q.dtype), len(col)
    for i in range(first, last):
        start, stop = np.int64(rowptr[i]), np.int64(rowptr[i + 1])
        _weigh(q, k, v, ones, col, weight, spare, spare, col, i, start, stop, nnz - 1, heads, features, channels, 0)
        for head in range(heads):
            highest, total = q.dtype.type(-np.inf), q.dtype.type(0)
            for entry in range(start, stop):
                place, factor = (entry - start) * heads + head, mask[head * stride + entry]
                if factor != 1:
                    weight[place] += np.log(factor)
                highest = max(highest, weight[place])
            if highest == -np.inf:
                highest = q.dtype.type(0)
            for entry in range(start, stop):
                place = (entry - start) * heads + head
                weight[place] = np.exp(weight[place] - highest)
                total += weight[place]
            scale = q.dtype.type(1) / total if total != 0 else q.dtype.type(1)
            for entry in range(start, stop):
                place, target = (entry - start) * heads + head, head * nnz + entry
                alpha[target] = weight[place] * scale
                weight[place] = alpha[target] * (keep[target] if keep.size > 0 else q.dtype.type(1))
        _gather(weight, v, out, col, i, start, stop, heads, channels, 0, heads)


@compiled
def softmax_backward_rows(
    first, last, most, origin, q, k, v, upstream, alpha, grad_alpha, keep, ones, rowptr, col, grad_q, grad_k, grad_v,
    grad_score, heads, features, channels,
):  # fmt: skip
    change, weight = np.empty(most * heads, k.dtype), np.empty(most * heads, k.dtype)
    spare, nnz = np.empty(heads, k.dtype), len(col)
    for i in range(first, last):
        start, stop = np.int64(rowptr[i]), np.int64(rowptr[i + 1])
        _weigh(upstream, v, k, ones, col, change, spare, spare, col, i, start, stop, nnz - 1, heads, channels, features, 0)
        for head in range(heads):
            total = k.dtype.type(0)
            for entry in range(start, stop):
                place, target = (entry - start) * heads + head, head * nnz + entry
                kept = keep[target] if keep.size > 0 else k.dtype.type(1)
                added = grad_alpha[target] if grad_alpha.size > 0 else k.dtype.type(0)
                weight[place] = alpha[target] * kept
                change[place] = (change[place] * kept + added) * alpha[target]
                total += change[place]
            for entry in range(start, stop):
                place, target = (entry - start) * heads + head, head * nnz + entry
                grad_score[entry * heads + head] = change[place] - total * alpha[target]
        _gather(grad_score, k, grad_q, col, i, start, stop, heads, features, start * heads, heads)
        _scatter(grad_score, q, grad_k, col, i, origin, start, stop, len(col) - 1, heads, features, start * heads, heads)
        _scatter(weight, upstream, grad_v, col, i, origin, start, stop, len(col) - 1, heads, channels, 0, heads)


# The gradients of threads may have so many times as many rows as there are columns.
_COPIES = 4
_NO_LABELS = torch.empty(0, dtype=torch.int32)


def attend_entries(
    pattern: SparsePattern, q: Tensor, k: Tensor, v: Tensor, mask: Tensor, label: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    r"""Returns the output, :obj:`[N, H, d]`, and the inverse weights of the rows, :obj:`[N, H]`, under a mask with entries
    :obj:`[H, nnz]` or :obj:`[1, nnz]`, or with those that a table :obj:`[H or 1, labels]` has for the labels, :obj:`[nnz]`.
    """
    out, inverse = v.new_empty(v.shape), q.new_empty(q.shape[:2])
    arrays, (rowptr, col, most) = arrays_of((q, k, v, *_factors(mask, label, q.size(1)))), _rows(pattern)
    results, sizes = arrays_of((out, inverse)), (*_sizes(q, v), _stride(mask))

    def run(first: int, last: int) -> None:
        forward_rows(first, last, most, *arrays, rowptr, col, *results, *sizes)

    in_chunks(run, rowptr, _work(q, v))
    return out, inverse


def attend_entries_backward(
    pattern: SparsePattern,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor,
    sums: tuple[Tensor, Tensor],
    learned: bool,
    label: Tensor | None = None,
) -> list[Tensor]:
    r"""Returns the gradients of queries, keys and values, and that of the mask or the table if it is learned, from those of
    numerators, :obj:`[N, H, d]`, and denominators, :obj:`[N, H]`.
    """
    factors, labels = _factors(mask, label, q.size(1))
    arrays, (rowptr, col, most), sizes = arrays_of((q, k, v, factors, labels)), _rows(pattern), (*_sizes(q, v), _stride(mask))
    grad_q, of_entries = q.new_empty(q.shape), mask.new_zeros(mask.shape if learned and label is None else 0)

    def run(first: int, last: int, origin: int, grad_k: Tensor, grad_v: Tensor, *table: Tensor) -> None:
        grads = arrays_of((grad_q, grad_k, grad_v, *(table or (of_entries,))))
        backward_rows(first, last, most, origin, *arrays, rowptr, col, *arrays_of(sums), *grads, *sizes)

    shared = [factors] if learned and label is not None else []
    grad_k, grad_v, *of_labels = _by_columns(run, pattern, 2 * _work(q, v), (k, v), shared)
    of_table = [each.t() if mask.size(0) > 1 else each.sum(1).unsqueeze(0) for each in of_labels]
    return [grad_q, grad_k, grad_v, *([of_entries] if learned and label is None else of_table)]


def attend_softmax(
    pattern: SparsePattern, q: Tensor, k: Tensor, v: Tensor, mask: Tensor, keep: Tensor | None
) -> tuple[Tensor, Tensor]:
    r"""Returns the output of softmax attention, :obj:`[N, H, d]`, and its coefficients, :obj:`[H, nnz]`, for scaled queries,
    entries :obj:`[H, nnz]` or :obj:`[1, nnz]` of a mask, and factors of the coefficients, :obj:`[H, nnz]`.
    """
    out, alpha, ones = v.new_empty(v.shape), q.new_empty(q.size(1), pattern.nnz), np.ones(pattern.nnz, array_of(q).dtype)
    arrays, (rowptr, col, most), sizes = _arrays(q, k, v, mask, keep), _rows(pattern), (*_sizes(q, v), _stride(mask))

    def run(first: int, last: int) -> None:
        softmax_rows(first, last, most, *arrays, ones, rowptr, col, array_of(out), array_of(alpha), *sizes)

    in_chunks(run, rowptr, _work(q, v))
    return out, alpha


def attend_softmax_backward(
    pattern: SparsePattern,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    grad: Tensor,
    alpha: Tensor,
    grad_alpha: Tensor | None,
    keep: Tensor | None,
) -> tuple[list[Tensor], Tensor]:
    r"""Returns the gradients of queries, keys and values, and of the scores, :obj:`[nnz, H]`."""
    grad_q, grad_score = q.new_empty(q.shape), q.new_empty(pattern.nnz, q.size(1))
    arrays, ones = _arrays(q, k, v, grad, alpha, grad_alpha, keep), np.ones(pattern.nnz, array_of(q).dtype)
    rowptr, col, most = _rows(pattern)

    def run(first: int, last: int, origin: int, grad_k: Tensor, grad_v: Tensor) -> None:
        grads = arrays_of((grad_q, grad_k, grad_v, grad_score))
        softmax_backward_rows(first, last, most, origin, *arrays, ones, rowptr, col, *grads, *_sizes(q, v))

    return [grad_q, *_by_columns(run, pattern, 2 * _work(q, v), (k, v))], grad_score


def _by_columns(
    run: Callable[..., None], pattern: SparsePattern, work: int, columns: Sequence[Tensor], shared: Sequence[Tensor] = ()
) -> list[Tensor]:
    r"""Calls a function with the first row and the one after the last of a part of the rows, with the first column that these
    reach, and with zeros to which it adds gradients: of tensors of the columns from that one on, and of tensors that all rows
    share. Returns the gradients of the tensors.
    """
    totals, parts = [x.new_zeros(x.shape) for x in (*columns, *shared)], _parts(pattern, work)
    if len(parts) == 1:
        run(0, pattern.num_rows, 0, *totals)
        return totals

    def run_part(first: int, last: int, origin: int, end: int) -> list[Tensor]:
        grads = [*(x.new_zeros(end - origin, *x.shape[1:]) for x in columns), *(x.new_zeros(x.shape) for x in shared)]
        run(first, last, origin, *grads)
        return grads

    for (*_, origin, _), grads in zip(parts, in_threads(run_part, *zip(*parts, strict=True)), strict=True):
        for place, (total, grad) in enumerate(zip(totals, grads, strict=True)):
            total.narrow(0, origin if place < len(columns) else 0, grad.size(0)).add_(grad)
    return totals


def _parts(pattern: SparsePattern, work: int) -> list[tuple[int, int, int, int]]:
    r"""Divides the rows among threads. Returns the bounds of the rows of each part, and of the columns that it reaches."""
    (rowptr, col), number = arrays_of((pattern.rowptr, pattern.col)), torch.get_num_threads()
    while True:
        parts = []
        for first, last in pairwise(chunk_bounds(rowptr, work, number)):
            reached = col[rowptr[first] : rowptr[last]]
            ends = (int(reached.min()), int(reached.max()) + 1) if number > 1 and reached.size > 0 else (0, 0)
            parts.append((first, last, *ends))
        if len(parts) == 1 or sum(end - origin for *_, origin, end in parts) <= _COPIES * pattern.num_cols:
            return parts
        number = len(parts) // 2  # gradients of all columns for each thread take much memory


def _rows(pattern: SparsePattern) -> tuple[Array, Array, int]:
    r"""Returns where the entries of each row begin, their columns, and the largest number of entries of a row."""
    rowptr, col = arrays_of((pattern.rowptr, pattern.col))
    return rowptr, col, int(np.diff(rowptr).max(initial=0))


def _sizes(q: Tensor, v: Tensor) -> tuple[int, int, int]:
    return q.size(1), q.size(2), v.size(2)


def _work(q: Tensor, v: Tensor) -> int:
    return q.size(1) * (q.size(2) + v.size(2))


def _stride(mask: Tensor) -> int:
    return mask.size(1) if mask.size(0) > 1 else 0


def _factors(mask: Tensor, label: Tensor | None, heads: int) -> tuple[Tensor, Tensor]:
    r"""Returns the entries of a mask and no labels, or the values of labels, :obj:`[labels, H]`, and the labels."""
    return (mask, _NO_LABELS) if label is None else (mask.expand(heads, -1).t().contiguous(), label)


def _arrays(*tensors: Tensor | None) -> list[Array]:
    like = next(tensor for tensor in tensors if tensor is not None)
    return [array_of(like.new_empty(0) if tensor is None else tensor) for tensor in tensors]
