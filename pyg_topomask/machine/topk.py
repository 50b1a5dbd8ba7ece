r"""Search as machine code: scores of a few queries and a block of keys at a time, of which only the largest are kept.

With maxima and ranks in plain Numba, searches took 1.2 to 1.4 times as long (128 graphs of 30 nodes and one of 10,000, 16
channels, 4 heads, Zen 5); with comparisons with the bound in plain Numba too, 1.4 to 4.2 times.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from torch import Tensor

from pyg_topomask.machine.compiled import compiled, copy, lowest_bit, sort
from pyg_topomask.machine.threads import array_of, in_chunks
from pyg_topomask.machine.vectors import index, multiply, written

# Queries whose scores are computed together, queries that read a block of keys in turn, and scores that are compared together.
_ROWS, _QUERIES, _LANES = 8, 64, 16
# Keys of a block, and numbers of a block of keys with many channels.
_KEYS, _NUMBERS = 2**12, 2**18
# Bits of a word.
_BITS = 64
# Numbers of a page of memory.
_PAGE = 1024
# The first scores of a query are divided into a multiple of so many groups, at least twice as many as there are keys to find,
# and those of all keys of a small graph into half as many.
_GROUPS = 32
# Of at most so many keys, all scores are looked at together. Beyond, sorting takes less time than comparing all pairs.
_FEW = 512
_INTEGER, _INTEGERS = ir.IntType(32), ir.VectorType(ir.IntType(32), _LANES)


@written
def _maxima(write, x, start, size, groups, out):
    r"""Writes the maxima of groups. Group i holds the numbers at i, i + groups, i + 2 groups and so on."""
    builder = write.builder
    (largest,) = write.variables(1, _LANES)
    with write.for_range(index(0), groups, _LANES) as (group, _):
        builder.store(write.load(write.at(x, start, group), _LANES), largest)
        with cgutils.for_range_slice(builder, builder.add(group, groups), size, groups) as (place, _):
            numbers, before = write.load(write.at(x, start, place), _LANES), builder.load(largest)
            builder.store(builder.select(builder.fcmp_ordered('>', numbers, before), numbers, before), largest)
        write.store(builder.load(largest), write.at(out, group))


@written
def _rank(write, x, start, number, out):
    r"""Writes how many of some numbers are larger than each of them, or equal and before it."""
    builder = write.builder
    count, lanes = cgutils.alloca_once(builder, _INTEGERS), ir.Constant(_INTEGERS, list(range(_LANES)))
    with write.for_range(index(0), number, _LANES) as (place, _):
        numbers = write.load(write.at(x, start, place), _LANES)
        positions = builder.add(lanes, write.filled(builder.trunc(place, _INTEGER), _LANES))
        builder.store(ir.Constant(_INTEGERS, [0] * _LANES), count)
        with write.for_range(index(0), number) as (other, _):
            given = write.filled(builder.load(write.at(x, start, other)), _LANES)
            before = builder.icmp_signed('<', write.filled(builder.trunc(other, _INTEGER), _LANES), positions)
            equal = builder.and_(builder.fcmp_ordered('==', given, numbers), before)
            larger = builder.or_(builder.fcmp_ordered('>', given, numbers), equal)
            builder.store(builder.sub(builder.load(count), builder.sext(larger, _INTEGERS)), count)
        builder.store(builder.load(count), builder.bitcast(write.at(out, place), _INTEGERS.as_pointer()), align=4)


@partial(written, returns=types.int64)
def _larger(write, x, start, bound, equal):
    r"""Returns which of a vector of numbers are above a bound, or equal to it if they shall, one bit for each."""
    builder = write.builder
    numbers, bounds = write.load(write.at(x, start), _LANES), write.filled(bound, _LANES)
    also = write.filled(builder.trunc(equal, ir.IntType(1)), _LANES)
    reached = builder.and_(builder.fcmp_ordered('==', numbers, bounds), also)
    larger = builder.or_(builder.fcmp_ordered('>', numbers, bounds), reached)
    return builder.zext(builder.bitcast(larger, ir.IntType(_LANES)), ir.IntType(64))


@compiled
def _bound(score, start, size, num, groups, maxima, ranks):
    r"""Returns the :obj:`num`-th largest of the maxima of groups. At least :obj:`num` scores reach it."""
    _maxima(score, start, size, groups, maxima)
    _rank(maxima, 0, groups, ranks)
    bound = maxima[0]
    for group in range(groups):
        if ranks[group] == num - 1:
            bound = maxima[group]
    return bound


@compiled
def _sort(top, chosen, ranks, space, places, query, number, num):
    r"""Sorts the candidates of a query by their scores, and returns how many are left, at most :obj:`num`. Of equal ones, the
    first stays.
    """
    start = query * (chosen.size // _QUERIES)
    if number <= _FEW:
        _rank(top, start, number, ranks)
        for candidate in range(number):
            space[ranks[candidate]], places[ranks[candidate]] = top[start + candidate], chosen[start + candidate]
    else:
        for candidate in range(number):
            space[candidate], ranks[candidate] = -top[start + candidate], candidate
        sort(space, ranks, number)
        for rank in range(number):
            space[rank], places[rank] = -space[rank], chosen[start + ranks[rank]]
    left = min(number, num)
    copy(space, 0, top, start, left)
    copy(places, 0, chosen, start, left)
    return left


@compiled
def _keep(top, chosen, held, bounds, maxima, ranks, space, places, query, num, score, start, size, first_key):
    r"""Adds the scores of a query with a block of keys that are above its bound to its candidates. When there are many, the
    best stay, and the last of them becomes the bound.
    """
    limit, groups = chosen.size // _QUERIES, maxima.size
    bound, candidates, into = bounds[query], held[query], query * limit
    # In the first block, most scores would be candidates without a bound.
    equal = int(first_key == 0 and size > 2 * groups and groups <= _FEW)
    if equal:
        bound = _bound(score, start, size, num, groups, maxima, ranks)
    for offset in range(0, size, _LANES):
        bits = _larger(score, start + offset, bound, equal)
        while bits != 0:
            key = offset + lowest_bit(bits)
            bits &= bits - 1
            top[into + candidates], chosen[into + candidates] = score[start + key], first_key + key
            candidates += 1
            if candidates == limit:
                candidates = _sort(top, chosen, ranks, space, places, query, candidates, num)
                bound, equal = top[into + num - 1], 0
    if candidates > num + _LANES:
        candidates = _sort(top, chosen, ranks, space, places, query, candidates, num)
        bound = top[into + num - 1]
    bounds[query], held[query] = bound, candidates


@compiled
def _best(score, rows, width, size, num, groups, maxima, ranks, top, chosen, places, best, output, slots, first):
    r"""Writes the best keys of some queries, given their scores with all keys, and with NaN up to a multiple of groups."""
    for row in range(rows):
        start, number, bound = row * width, 0, score.dtype.type(-np.inf)
        if size > groups:
            bound = _bound(score, start, size, num, groups, maxima, ranks)
        for offset in range(0, size, _BITS):
            bits = np.int64(0)
            for place in range(0, min(_BITS, size - offset), _LANES):  # fewer ends of loops, which would be hard to predict
                bits |= _larger(score, start + offset + place, bound, 1) << np.int64(place)
            while bits != 0:
                key = offset + lowest_bit(bits)
                bits &= bits - 1
                top[number], chosen[number] = score[start + key], first + key
                number += 1
        _rank(top, 0, number, ranks)
        for place in range(number):  # without a branch on ranks, which would be hard to predict
            places[ranks[place]] = chosen[place]
        for rank in range(min(num, number)):  # fewer where scores are NaN
            best[output + row * slots + rank] = places[rank]


@compiled
def _search(first_panel, last_panel, graph_of, query_of, start, count, q, keys, best, nodes, heads, channels, slots, apart):
    r"""Writes the best keys of the queries in some panels. A panel has up to :obj:`_QUERIES` queries of one graph."""
    most = 1
    for panel in range(first_panel, last_panel):
        most = max(most, count[graph_of[panel]])
    groups = (2 * slots + _GROUPS - 1) // _GROUPS * _GROUPS
    fewer = groups // 2
    width = min(max(min(_KEYS, _NUMBERS // channels), 4 * groups) // groups, (most + groups - 1) // groups) * groups
    limit, scores = 2 * slots + 2 * _LANES, np.empty(_ROWS * width, q.dtype)
    top, chosen = np.empty(_QUERIES * limit + _LANES, q.dtype), np.empty(_QUERIES * limit, np.int32)
    held, bounds = np.empty(_QUERIES, np.int64), np.empty(_QUERIES, q.dtype)
    length = max(limit, groups, width) + _LANES
    ranks, space, places = np.empty(length, np.int32), np.empty(length, q.dtype), np.empty(length, np.int32)
    maxima = np.empty(groups, q.dtype)
    some = maxima[:fewer]
    for head in range(heads):
        for panel in range(first_panel, last_panel):
            graph, begin = graph_of[panel], query_of[panel]
            first, number = start[graph], count[graph]
            queries, num = min(_QUERIES, number - begin), min(slots, number)
            held[:], bounds[:] = 0, -np.inf
            few = number <= min(width, _FEW)
            step, absent = (fewer, np.nan) if few else (groups, -np.inf)  # NaN is never among the best
            for first_key in range(0, number, width):
                columns = min(width, number - first_key)
                filled = min(width, (columns + step - 1) // step * step)
                for row in range(_ROWS):
                    for place in range(row * width + columns, row * width + filled):
                        scores[place] = absent
                for query in range(0, queries, _ROWS):
                    rows, node = min(_ROWS, queries - query), first + begin + query
                    key = head * channels * apart + first + first_key
                    multiply(
                        q, keys, scores,
                        (node * heads + head) * channels, heads * channels, 1, key, apart, 0, width, rows, channels, columns,
                    )  # fmt: skip
                    if few:
                        place = (head * nodes + node) * slots
                        _best(
                            scores, rows, width, filled, num, fewer, some, ranks, top, chosen, places, best, place, slots, first
                        )  # fmt: skip
                        continue
                    for row in range(rows):
                        _keep(
                            top, chosen, held, bounds, maxima, ranks, space, places,
                            query + row, num, scores, row * width, filled, first_key,
                        )  # fmt: skip
            if few:
                continue
            for query in range(queries):
                left = _sort(top, chosen, ranks, space, places, query, held[query], num)
                place = (head * nodes + first + begin + query) * slots
                for rank in range(left):
                    best[place + rank] = first + chosen[query * limit + rank]


def search(q: Tensor, k: Tensor, first: Tensor, count: Tensor, best: Tensor) -> None:
    r"""Writes the best keys of each query. Arguments are those of :func:`~pyg_topomask.ops.topk.searches.search_dense`."""
    heads, nodes, channels = q.shape
    # Rows of keys whose distance is a multiple of a page would share few lines of the cache.
    keys = k.new_empty(heads, channels, -(-nodes // _PAGE) * _PAGE + _LANES)
    keys[..., :nodes] = k.transpose(1, 2)
    query, key, apart = array_of(q.transpose(0, 1)), array_of(keys), keys.size(2)
    start, number = array_of(first), array_of(count)
    output, slots = best.numpy().reshape(-1), best.size(2)
    panels = -(-number // _QUERIES)
    ptr = np.append(0, np.cumsum(panels))
    graph_of = np.repeat(np.arange(len(number)), panels)
    query_of = (np.arange(ptr[-1]) - ptr[graph_of]) * _QUERIES
    pairs = np.append(0, np.cumsum(np.minimum(number[graph_of] - query_of, _QUERIES) * number[graph_of]))

    def run(first_panel: int, last_panel: int) -> None:
        _search(
            first_panel, last_panel, graph_of, query_of, start, number, query, key, output, nodes, heads, channels, slots, apart
        )  # fmt: skip

    in_chunks(run, pairs, heads * channels)
