r"""Linear attention under a polynomial of a sparse matrix, as machine code.

The products of features and values go through the polynomial a few features at a time, by Clenshaw's scheme, and stay in cache.
The backward pass goes through the polynomial of the transpose term by term, which also gives the gradients of the coefficients.

Loops in plain Numba took 1.9 to 2.4 times as long on 10,000 nodes of degree 6, and 2.5 to 2.6 times on 128 graphs of 30 nodes
(5 steps, 16 features and channels, 4 heads, Zen 5).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import reduce
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from pyg_topomask.graphs.segments import Segments
from pyg_topomask.graphs.sparse_pattern import SparsePattern
from pyg_topomask.machine.compiled import compiled, copy, largest
from pyg_topomask.machine.patterns import closed_ends
from pyg_topomask.machine.threads import Array, array_of, arrays_of, in_chunks, in_threads, pairs_before
from pyg_topomask.machine.vectors import dot_rows, index, multiply, multiply_add, written

T = TypeVar('T')

# Bytes of a block of products, which several steps read; features of one at least, in the forward pass, which holds less at a
# time, and in the backward pass; and nodes of small graphs taken together.
_BLOCK, _FEATURES, _NODES = 2**17, (8, 4), 256
# Bytes of the terms of so many features that are kept for gradients of the entries.
_KEPT = 2**29
# Columns of a plain product that go through the polynomial together, and bytes of all terms of some columns of a block: if
# possible, and at most, but for one vector of columns.
_COLUMNS, _TERMS, _LARGE = 64, 2**20, 2**26


def _step(write, value, col, rowptr, x, y, u, total, dot, first, last, columns, alpha, beta, gamma, terms, pairs):
    builder = write.builder
    products = write.variables(4, write.lanes)
    recurrent = builder.fcmp_ordered('!=', beta, write.number(0.0))
    alphas, betas, gammas = (write.filled(each, write.lanes) for each in (alpha, beta, gamma))
    final = builder.sub(write.column(rowptr, last), index(1))
    with write.for_range(first, last) as (row, _):
        start, stop = write.column(rowptr, row), write.column(rowptr, builder.add(row, index(1)))
        offset = write.times(builder.sub(row, first), columns)

        def of_columns(column: list[Any], mask: Any) -> None:
            sums = write.variables(len(column), write.lanes)
            places = [builder.add(offset, each) for each in column]
            row_of_total = [write.load(write.at(total, place), write.lanes, mask) for place in places] if pairs else []
            with write.for_range(start, stop) as (entry, _):
                later = write.times(builder.sub(write.column(col, write.ahead(entry, final)), first), columns)
                for each in column:
                    write.prefetch(write.at(x, later, each))
                factor = write.filled(builder.load(write.at(value, entry)), write.lanes)
                source = write.times(builder.sub(write.column(col, entry), first), columns)
                vectors = [write.load(write.at(x, source, each), write.lanes, mask) for each in column]
                for total_of, vector in zip(sums, vectors, strict=True):
                    write.accumulate(total_of, write.multiply(factor, vector))
                if pairs:
                    product = reduce(write.add, map(write.multiply, vectors, row_of_total))
                    summed, scaled = write.at(dot, entry), write.multiply(alpha, write.total(product))
                    builder.store(write.add(builder.load(summed), scaled), summed)
            for product, total_of, place in zip(products, sums, places, strict=False):
                target = write.at(y, place)
                builder.store(write.multiply(alphas, builder.load(total_of)), total_of)
                with builder.if_then(recurrent):
                    write.accumulate(total_of, write.multiply(betas, write.load(target, write.lanes, mask)))
                given = write.load(write.at(u, place), write.lanes, mask)
                if not terms:
                    write.accumulate(total_of, write.multiply(gammas, given))
                result = builder.load(total_of)
                write.store(result, target, mask)
                if terms:
                    write.accumulate(product, write.multiply(given, result))
                    summed = write.at(total, place)
                    before = write.load(summed, write.lanes, mask)
                    write.store(write.add(before, write.multiply(gammas, result)), summed, mask)

        write.for_wide(columns, of_columns)
    if terms:
        first_two, last_two = (write.add(*map(builder.load, products[at : at + 2])) for at in (0, 2))
        write.store(write.add(first_two, last_two), dot)


# All write y = alpha * B x + beta * y. The first and the last also add gamma * u. The second also adds gamma * y to a total,
# and writes a vector of products of y with u. The last adds to each entry of B in dot the product of the row of x that the
# entry multiplies and of its own row of the total, times alpha.
_clenshaw_step, _term_step, _pair_step = (
    written(_step, terms=terms, pairs=pairs) for terms, pairs in ((False, False), (True, False), (False, True))
)


@compiled
def _polynomial(value, col, rowptr, coefficients, chebyshev, x, y, u, first, last, columns):
    r"""Returns the product of the polynomial and u, in one of two blocks."""
    degree, zero = len(coefficients) - 1, value.dtype.type(0)
    if degree == 0:
        for place in range((last - first) * columns):
            x[place] = coefficients[0] * u[place]
    for k in range(degree - 1, -1, -1):
        alpha = value.dtype.type(2 if chebyshev and k > 0 else 1)
        if k == degree - 1:  # the first two steps begin from multiples of u
            _clenshaw_step(value, col, rowptr, u, x, u, u, u, first, last, columns, alpha * coefficients[degree], zero,
                           coefficients[k])  # fmt: skip
            continue
        beta = value.dtype.type(-1 if chebyshev and k < degree - 2 else 0)
        gamma = coefficients[k] - (coefficients[degree] if chebyshev and k == degree - 2 else zero)
        _clenshaw_step(value, col, rowptr, x, y, u, u, u, first, last, columns, alpha, beta, gamma)
        x, y = y, x
    return x


@compiled(any_order=True)
def _first_term(x, u, total, size, coefficient):
    product = x.dtype.type(0)
    for place in range(size):
        total[place] = coefficient * x[place]
        product += x[place] * u[place]
    return product


@compiled
def _polynomial_terms(value, col, rowptr, coefficients, chebyshev, x, y, u, total, grad, first, last, columns):
    r"""Writes the product of the polynomial and x to the total, and adds the products of its terms and u to the gradients."""
    products = np.empty(16, value.dtype)
    products[:] = 0
    grad[0] += _first_term(x, u, total, (last - first) * columns, coefficients[0])
    for k in range(1, len(coefficients)):
        alpha, beta = (2, -1) if chebyshev and k > 1 else (1, 0)
        _term_step(value, col, rowptr, x, y, u, total, products, first, last, columns, value.dtype.type(alpha),
                   value.dtype.type(beta), coefficients[k])  # fmt: skip
        grad[k] += products.sum()
        x, y = y, x


@compiled
def _spread(x, values, first, last, head, heads, features, channels, start, stop, out):
    r"""Writes the products of some features and all values of each node."""
    width = stop - start
    for i in range(first, last):
        row = i * heads + head
        multiply(
            x, values, out,
            row * features + start, 1, 0, row * channels, 0, (i - first) * width * channels, channels,
            width, 1, channels,
        )  # fmt: skip


@compiled
def _forward(
    first, last, head, scratch, value, col, rowptr, coefficients, chebyshev, q, k, v, total, heads, features, channels, width
):
    u, x, y = scratch[0], scratch[1], scratch[2]
    for i in range(first, last):
        total[(i * heads + head) * channels : (i * heads + head + 1) * channels] = 0
    for start in range(0, features, width):
        stop = min(start + width, features)
        _spread(k, v, first, last, head, heads, features, channels, start, stop, u)
        product = _polynomial(value, col, rowptr, coefficients, chebyshev, x, y, u, first, last, (stop - start) * channels)
        for i in range(first, last):
            row, place = i * heads + head, (i - first) * (stop - start) * channels
            multiply_add(
                q, product, total, row * features + start, 0, 1, place, channels, row * channels, 0, 1, stop - start, channels
            )


@compiled
def _backward(
    first, last, head, scratch, value, col, rowptr, value_t, col_t, rowptr_t, coefficients, chebyshev, q, k, v, upstream,
    grad_q, grad_k, grad_v, grad_coefficients, heads, features, channels, width,
):  # fmt: skip
    u, x, y, total = scratch[0], scratch[1], scratch[2], scratch[3]
    for i in range(first, last):
        grad_v[(i * heads + head) * channels : (i * heads + head + 1) * channels] = 0
    for start in range(0, features, width):
        stop = min(start + width, features)
        columns = (stop - start) * channels
        _spread(k, v, first, last, head, heads, features, channels, start, stop, u)
        product = _polynomial(value, col, rowptr, coefficients, chebyshev, x, y, u, first, last, columns)
        for i in range(first, last):
            row, place = i * heads + head, (i - first) * columns
            dot_rows(
                product, upstream, grad_q, place, channels, row * channels, 0, row * features + start, 1, stop - start, channels
            )
        _spread(q, upstream, first, last, head, heads, features, channels, start, stop, x)
        _polynomial_terms(
            value_t, col_t, rowptr_t, coefficients, chebyshev, x, y, u, total, grad_coefficients, first, last, columns
        )
        for i in range(first, last):
            row, place = i * heads + head, (i - first) * columns
            dot_rows(total, v, grad_k, place, channels, row * channels, 0, row * features + start, 1, stop - start, channels)
            multiply_add(
                k, total, grad_v, row * features + start, 0, 1, place, channels, row * channels, 0, 1, stop - start, channels
            )


@compiled
def _backward_learned(
    first, last, head, scratch, value, col, rowptr, value_t, col_t, rowptr_t, coefficients, chebyshev, q, k, v, upstream,
    grad_q, grad_k, grad_v, grad_value, grad_coefficients, heads, features, channels, width,
):  # fmt: skip
    r"""Does what :func:`_backward` does, and adds the gradients of the entries of the transpose: the terms, and their
    recurrence backwards.
    """
    count, most, one = len(coefficients), scratch.shape[1], value.dtype.type(1)
    terms, given, products = scratch[:count].reshape(count * most), scratch[count], np.empty(count, value.dtype)
    for i in range(first, last):
        grad_v[(i * heads + head) * channels : (i * heads + head + 1) * channels] = 0
    for start in range(0, features, width):
        stop = min(start + width, features)
        columns = (stop - start) * channels
        size = (last - first) * columns
        change, later = scratch[count + 1], scratch[count + 2]
        _spread(k, v, first, last, head, heads, features, channels, start, stop, terms)
        _write_terms(value, col, rowptr, count, chebyshev, first, last, columns, most, terms)
        multiply(coefficients, terms, change, 0, 0, 1, 0, most, 0, 0, 1, count, size)
        for i in range(first, last):
            row, place = i * heads + head, (i - first) * columns
            dot_rows(
                change, upstream, grad_q, place, channels, row * channels, 0, row * features + start, 1, stop - start, channels
            )
        _spread(q, upstream, first, last, head, heads, features, channels, start, stop, given)
        dot_rows(given, terms, products, 0, 0, 0, most, 0, 1, count, size)
        for term in range(count):
            grad_coefficients[term] += products[term]
        multiply(coefficients, given, change, count - 1, 0, 0, 0, 0, 0, 0, 1, 1, size)
        for term in range(count - 2, -1, -1):
            factor = one + one if chebyshev and term > 0 else one
            _pair_step(value_t, col_t, rowptr_t, change, later, given, terms[term * most :], grad_value, first, last, columns,
                       factor, -one if chebyshev and term < count - 2 else one - one, coefficients[term])  # fmt: skip
            later, change = change, later
        for i in range(first, last):
            row, place = i * heads + head, (i - first) * columns
            dot_rows(change, v, grad_k, place, channels, row * channels, 0, row * features + start, 1, stop - start, channels)
            multiply_add(
                k, change, grad_v, row * features + start, 0, 1, place, channels, row * channels, 0, 1, stop - start, channels
            )


@compiled
def _write_terms(value, col, rowptr, count, chebyshev, first, last, columns, size, terms):
    r"""Writes the terms of the first of some blocks, one after the other."""
    one, zero = value.dtype.type(1), value.dtype.type(0)
    for k in range(1, count):
        before, term = terms[(k - 1) * size : k * size], terms[k * size : (k + 1) * size]
        recurrent = chebyshev and k > 1
        earlier = terms[(k - 2) * size : (k - 1) * size] if recurrent else before
        _clenshaw_step(value, col, rowptr, before, term, earlier, term, term, first, last, columns,
                       one + one if recurrent else one, zero, -one if recurrent else zero)  # fmt: skip


@compiled
def _terms_of_units(value, col, rowptr, terms, chebyshev, first, last, begin, columns, scratch):
    r"""Writes the terms of some columns of the identity, one after the other."""
    size = (last - first) * columns
    scratch[:size] = 0
    for column in range(columns):
        scratch[(begin + column) * columns + column] = 1
    _write_terms(value, col, rowptr, terms, chebyshev, first, last, columns, size, scratch)


@compiled
def _blocks(first_graph, last_graph, ptr, pairs, value, col, rowptr, basis, terms, chebyshev, width, out):
    r"""Writes polynomials graph by graph, some columns at a time, whose terms stay in cache."""
    most, count = largest(first_graph, last_graph, ptr), len(basis) // terms
    scratch, every = np.empty(terms * most * min(most, width), value.dtype), len(out) // count
    for graph in range(first_graph, last_graph):
        first, last = ptr[graph], ptr[graph + 1]
        for begin in range(0, last - first, width):
            columns = min(width, last - first - begin)
            size = (last - first) * columns
            _terms_of_units(value, col, rowptr, terms, chebyshev, first, last, begin, columns, scratch)
            for row in range(last - first):
                place = pairs[graph] + row * (last - first) + begin
                multiply(basis, scratch, out, 0, terms, 1, row * columns, size, place, every, count, terms, columns)


@compiled
def _blocks_backward(
    first_graph, last_graph, ptr, pairs, value, col, rowptr, value_t, col_t, rowptr_t, basis, upstream, grad_value, grad_basis,
    terms, chebyshev, width,
):  # fmt: skip
    r"""Adds the gradients of :func:`_blocks`, of the entries in the order of the transpose: the terms, and their recurrence
    backwards.
    """
    most, count = largest(first_graph, last_graph, ptr), len(basis) // terms
    block, every, one = most * min(most, width), len(upstream) // count, value.dtype.type(1)
    scratch, given = np.empty(terms * block, value.dtype), np.empty(count * block, value.dtype)
    rest, products = np.empty(3 * block, value.dtype), np.empty(terms, value.dtype)
    for graph in range(first_graph, last_graph):
        first, last = ptr[graph], ptr[graph + 1]
        for begin in range(0, last - first, width):
            columns = min(width, last - first - begin)
            size = (last - first) * columns
            _terms_of_units(value, col, rowptr, terms, chebyshev, first, last, begin, columns, scratch)
            for head in range(count):
                for row in range(last - first):
                    place = head * every + pairs[graph] + row * (last - first) + begin
                    start = head * size + row * columns
                    copy(upstream, place, given, start, columns)
            if grad_basis.size > 0:
                for head in range(count):
                    dot_rows(given, scratch, products, head * size, 0, 0, size, 0, 1, terms, size)
                    for term in range(terms):
                        grad_basis[head * terms + term] += products[term]
            later, change, of_term = rest[:size], rest[size : 2 * size], rest[2 * size : 3 * size]
            multiply(basis, given, change, terms - 1, 0, terms, 0, size, 0, 0, 1, count, size)
            for k in range(terms - 2, -1, -1):
                factor = one + one if chebyshev and k > 0 else one
                multiply(basis, given, of_term, k, 0, terms, 0, size, 0, 0, 1, count, size)
                _pair_step(value_t, col_t, rowptr_t, change, later, of_term, scratch[k * size :], grad_value, first, last,
                           columns, factor, -one if chebyshev and k < terms - 2 else one - one, one)  # fmt: skip
                later, change = change, later


def polynomial_blocks(pattern: SparsePattern, value: Tensor, basis: Tensor, method: str, segments: Segments) -> Tensor:
    r"""Returns the entries of polynomials. Arguments: see :func:`~pyg_topomask.operators.polynomial.polynomial_blocks`."""
    count, terms = basis.shape
    # NumPy asks for large pages of memory, which take a quarter of the time to get.
    out = torch.from_numpy(np.empty((count, segments.num_pairs), array_of(basis).dtype))
    width, pairs = _width(terms, value, segments), pairs_before(segments.ptr)
    arrays = arrays_of((segments.ptr, value, pattern.col, pattern.rowptr, basis, out))

    def run(first: int, last: int) -> None:
        ptr, *matrix, of_basis, entries = arrays
        _blocks(first, last, ptr, pairs, *matrix, of_basis, terms, method == 'chebyshev', width, entries)

    if terms > 0:
        in_chunks(run, pairs, terms * (count + pattern.nnz // max(pattern.num_rows, 1)))
    return out


def polynomial_blocks_backward(
    pattern: SparsePattern, value: Tensor, basis: Tensor, method: str, segments: Segments, upstream: Tensor, learned: bool
) -> tuple[Tensor, Tensor]:
    r"""Returns the gradients of the entries, and of the basis if it is learned, from those of :func:`polynomial_blocks`."""
    count, terms = basis.shape
    grad_value, totals, pairs = torch.zeros_like(value), list[Tensor](), pairs_before(segments.ptr)
    width, matrix = _width(terms + count + 3, value, segments), (value, pattern.col, pattern.rowptr)
    transpose = value.index_select(0, pattern.perm_t), pattern.col_t, pattern.rowptr_t
    ptr, *arrays = arrays_of((segments.ptr, *matrix, *transpose, basis, upstream, grad_value))

    def run(first: int, last: int) -> None:
        total = basis.new_zeros(basis.shape if learned else 0)
        totals.append(total)
        _blocks_backward(first, last, ptr, pairs, *arrays, array_of(total), terms, method == 'chebyshev', width)

    in_chunks(run, pairs, 3 * terms * (count + pattern.nnz // max(pattern.num_rows, 1)))
    return pattern.from_transpose(grad_value), torch.stack(totals).sum(0)


def _width(blocks: int, value: Tensor, segments: Segments) -> int:
    r"""Returns the columns of so many blocks that are computed at a time: a multiple of what :func:`_step` takes together, but
    of one vector where terms of large graphs would fill the memory.
    """
    size = value.element_size()
    column, lanes = blocks * max(segments.largest, 1) * size, 64 // size
    together = lanes if 4 * lanes * column > _LARGE else 4 * lanes
    return -(-_TERMS // (column * together)) * together


def attend_polynomial(
    pattern: SparsePattern, value: Tensor, coefficients: Tensor, method: str, q: Tensor, k: Tensor, v: Tensor
) -> Tensor:
    r"""Returns the sums of the values, weighted by scores and mask, :obj:`[N, H, d]`. The arguments are those of
    :func:`~pyg_topomask.operators.polynomial.polynomial_action`, and queries, keys and values.
    """
    total = v.new_empty(v.shape)
    matrix, arrays = arrays_of((value, pattern.col, pattern.rowptr)), arrays_of((q, k, v, total))
    of_heads = _of_heads(coefficients, q.size(1))

    def run(first: int, last: int, head: int, width: int, scratch: Array) -> None:
        sizes = q.size(1), q.size(2), v.size(2), width
        _forward(first, last, head, scratch, *matrix, of_heads[head], method == 'chebyshev', *arrays, *sizes)

    _in_parts(run, pattern, q, v, 3, _FEATURES[0])
    return total


def attend_polynomial_backward(
    pattern: SparsePattern,
    value: Tensor,
    coefficients: Tensor,
    method: str,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    upstream: Tensor,
    learned: bool = False,
) -> tuple[list[Tensor], Tensor, Tensor | None]:
    r"""Returns the gradients of queries, keys and values, of the coefficients and, if they are learned, of the entries, from
    that of the output, :obj:`[N, H, d]`. Arguments are those of :func:`attend_polynomial`.
    """
    grads = [torch.empty(x.shape, dtype=x.dtype) for x in (q, k, v)]
    matrix = arrays_of((value, pattern.col, pattern.rowptr))
    transposed = arrays_of((value.index_select(0, pattern.perm_t), pattern.col_t, pattern.rowptr_t))
    arrays = arrays_of((q, k, v, upstream, *grads))
    of_heads = _of_heads(coefficients, q.size(1))

    # The heads of a part run side by side.
    grad_value = np.zeros((q.size(1), value.numel() if learned else 0), array_of(q).dtype)

    def run(first: int, last: int, head: int, width: int, scratch: Array) -> tuple[int, Array]:
        sizes, grad = (q.size(1), q.size(2), v.size(2), width), np.zeros_like(of_heads[head])
        tensors = *matrix, *transposed, of_heads[head], method == 'chebyshev', *arrays
        if learned:
            _backward_learned(first, last, head, scratch, *tensors, grad_value[head], grad, *sizes)
        else:
            _backward(first, last, head, scratch, *tensors, grad, *sizes)
        return head, grad

    grad = torch.zeros(len(of_heads), coefficients.size(1), dtype=q.dtype)
    blocks, least = coefficients.size(1) + 3 if learned else 4, _FEATURES[1]
    if learned:
        least = max(1, min(least, _KEPT // max(1, blocks * v[:, 0].numel() * v.element_size())))
    for head, total in _in_parts(run, pattern, q, v, blocks, least):
        grad[head] += torch.from_numpy(total)
    grad = grad if coefficients.size(0) > 1 else grad.sum(0, keepdim=True)
    return grads, grad, pattern.from_transpose(torch.from_numpy(grad_value.sum(0))) if learned else None


def polynomial_action(pattern: SparsePattern, value: Tensor, coefficients: Tensor, method: str, x: Tensor) -> Tensor:
    r"""Returns the product of the polynomial and :obj:`x`, :obj:`[N, H, c]`."""
    ones = x.new_ones(*x.shape[:2], 1)
    return torch.cat(
        [attend_polynomial(pattern, value, coefficients, method, ones, ones, part) for part in x.split(_COLUMNS, 2)], 2
    )


def polynomial_action_backward(
    pattern: SparsePattern,
    value: Tensor,
    coefficients: Tensor,
    method: str,
    x: Tensor,
    grad: Tensor,
    learned: bool = False,
) -> tuple[Tensor, Tensor, Tensor | None]:
    r"""Returns the gradients of :obj:`x`, the coefficients and, if they are learned, the entries in
    :func:`polynomial_action`.
    """
    ones, total, grads = x.new_ones(*x.shape[:2], 1), torch.zeros_like(coefficients), []
    total_value = torch.zeros_like(value)
    for part, grad_part in zip(x.split(_COLUMNS, 2), grad.split(_COLUMNS, 2), strict=True):
        (*_, grad_x), grad_coefficients, grad_value = attend_polynomial_backward(
            pattern, value, coefficients, method, ones, ones, part, grad_part, learned
        )
        grads.append(grad_x)
        total += grad_coefficients
        if grad_value is not None:
            total_value += grad_value
    return torch.cat(grads, 2), total, total_value if learned else None


def _of_heads(coefficients: Tensor, heads: int) -> list[Array]:
    return [array_of(row) for row in coefficients.expand(heads, -1)]


def _in_parts(run: Callable[..., T], pattern: SparsePattern, q: Tensor, v: Tensor, blocks: int, least: int) -> list[T]:
    r"""Calls a function for each head of each large graph, and of small ones taken together, with memory for some blocks."""
    ends = closed_ends(pattern)
    group = (ends - 1) // _NODES
    bounds = [0, *ends[np.append(group[1:] > group[:-1], True)].tolist()] if ends.size > 0 else []
    nodes, (_, heads, features), local = np.diff(bounds), q.shape, threading.local()
    channels = v.size(2)
    widths = np.clip(_BLOCK // (nodes * max(channels, 1) * q.element_size()), min(least, features), features)
    most = int((nodes * widths * channels).max(initial=0))

    def run_in_memory(first: int, last: int, width: int, head: int) -> T:
        if not hasattr(local, 'scratch'):  # once per thread: new memory takes longer than what is done in it
            local.scratch = np.empty((blocks, most), array_of(q).dtype)
        return run(first, last, head, width, local.scratch)

    tasks = [(*part, head) for part in zip(bounds[:-1], bounds[1:], widths.tolist(), strict=True) for head in range(heads)]
    return in_threads(run_in_memory, *zip(*tasks, strict=True)) if tasks else []
