r"""Search in one graph after the other as machine code: scores of a few queries, and the ranks of those that may be largest."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from torch import Tensor

from pyg_topomask.ops.numba_backend import array_of, in_blocks
from pyg_topomask.ops.vectors import Writer, compiled, index, lowest_bit, multiply

# The digest of ops/vectors.py, so that Numba compiles this file again if that one changes. A test compares it.
VECTORS = '8d395281b0be'

# Queries whose scores are computed together, and scores that are compared together.
_ROWS, _LANES = 8, 16
# Groups of the scores of a query: so many at least, and twice as many as there are keys to find.
_GROUPS = 32
_INTEGER, _INTEGERS = ir.IntType(32), ir.VectorType(ir.IntType(32), _LANES)


@intrinsic
def _maxima(typing: Any, x: Any, start: Any, size: Any, groups: Any, out: Any) -> Any:
    r"""Writes the maxima of groups. Group i holds the numbers at i, i + groups, i + 2 groups and so on."""
    signature = types.void(x, types.int64, types.int64, types.int64, out)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        write = Writer(context, builder, signature.args, arguments)
        x, start, size, groups, out = write.arguments
        (largest,) = write.variables(1, _LANES)
        with write.for_range(index(0), groups, _LANES) as (group, _):
            builder.store(write.load(write.at(x, start, group), _LANES), largest)
            with cgutils.for_range_slice(builder, builder.add(group, groups), size, groups) as (place, _):
                numbers, before = write.load(write.at(x, start, place), _LANES), builder.load(largest)
                builder.store(builder.select(builder.fcmp_ordered('>', numbers, before), numbers, before), largest)
            write.store(builder.load(largest), write.at(out, group))
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def _rank(typing: Any, x: Any, start: Any, number: Any, out: Any) -> Any:
    r"""Writes how many of some numbers are larger than each of them, or equal and before it."""
    signature = types.void(x, types.int64, types.int64, out)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        write = Writer(context, builder, signature.args, arguments)
        x, start, number, out = write.arguments
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
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def _reached(typing: Any, x: Any, start: Any, bound: Any) -> Any:
    r"""Returns which of a vector of numbers are not below a bound, one bit for each."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        write = Writer(context, builder, signature.args, arguments)
        x, start, bound = write.arguments
        reached = builder.fcmp_ordered('>=', write.load(write.at(x, start), _LANES), write.filled(bound, _LANES))
        return builder.zext(builder.bitcast(reached, ir.IntType(_LANES)), ir.IntType(64))

    return types.int64(x, types.int64, x.dtype), generate


@compiled
def _choose(score, start, size, num, groups, maxima, ranks, chosen):  # type: ignore[no-untyped-def]
    r"""Writes the positions of candidates for the largest scores, and returns their number. At least :obj:`num` scores reach
    the :obj:`num`-th largest of the maxima of groups. Only these are candidates.
    """
    _maxima(score, start, size, groups, maxima)
    _rank(maxima, 0, groups, ranks)
    bound, number, equal = maxima[0], 0, 0
    for group in range(groups):
        if ranks[group] == num - 1:
            bound = maxima[group]
    for place in range(0, size, _LANES):
        bits = _reached(score, start + place, bound)
        while bits != 0:
            position = place + lowest_bit(bits)
            bits &= bits - 1
            if score[start + position] == bound:
                equal += 1
            if equal <= num or score[start + position] > bound:
                chosen[number] = position
                number += 1
    return number


@compiled
def _search(first_graph, last_graph, start, count, q, k, best, nodes, heads, channels, slots, groups):  # type: ignore[no-untyped-def]
    most = 1
    for graph in range(first_graph, last_graph):
        most = max(most, count[graph])
    width = (most + groups - 1) // groups * groups
    keys, scores = np.empty(channels * most, q.dtype), np.empty(_ROWS * width, q.dtype)
    top, ranks, chosen = np.empty(width, q.dtype), np.empty(width, np.int32), np.empty(width, np.int32)
    maxima, ranked = np.empty(groups, q.dtype), np.empty(slots + 1, np.int32)
    for graph in range(first_graph, last_graph):
        first, number = start[graph], count[graph]
        num, size = min(slots, number), (number + groups - 1) // groups * groups
        scores[:] = -np.inf
        for head in range(heads):
            for j in range(number):
                row = ((first + j) * heads + head) * channels
                for channel in range(channels):
                    keys[channel * number + j] = k[row + channel]
            for begin in range(0, number, _ROWS):
                rows = min(_ROWS, number - begin)
                queries = ((first + begin) * heads + head) * channels
                multiply(q, keys, scores, queries, heads * channels, 1, 0, number, 0, size, rows, channels, number)
                for row in range(rows):
                    if size > 2 * groups:
                        candidates = _choose(scores, row * size, size, num, groups, maxima, ranks, chosen)
                        for candidate in range(candidates):
                            top[candidate] = scores[row * size + chosen[candidate]]
                        for candidate in range(candidates, (candidates + _LANES - 1) // _LANES * _LANES):
                            top[candidate] = -np.inf
                        _rank(top, 0, candidates, ranks)
                        for candidate in range(candidates):
                            ranked[min(ranks[candidate], num)] = chosen[candidate]
                    else:
                        _rank(scores, row * size, number, ranks)
                        for candidate in range(number):
                            ranked[min(ranks[candidate], num)] = candidate
                    place = (head * nodes + first + begin + row) * slots
                    for rank in range(num):
                        best[place + rank] = first + ranked[rank]


def search(q: Tensor, k: Tensor, first: Tensor, count: Tensor, best: Tensor) -> None:
    r"""Writes the best keys of each query. Arguments are those of :func:`~pyg_topomask.ops.topk.dense.search`."""
    heads, nodes, channels = q.shape
    query, key = (array_of(x.transpose(0, 1)) for x in (q, k))
    start, number = array_of(first), array_of(count)
    pairs = np.append(0, np.cumsum(number * number))
    found, slots = best.numpy().reshape(-1), best.size(2)
    groups = max(_GROUPS, -(-2 * slots // _LANES) * _LANES)

    def run(first_graph: int, last_graph: int) -> None:
        _search(first_graph, last_graph, start, number, query, key, found, nodes, heads, channels, slots, groups)

    in_blocks(run, pairs, heads * channels)
