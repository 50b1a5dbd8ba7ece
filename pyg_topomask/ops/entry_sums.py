r"""The sums of linear attention along the entries of a sparse mask, as machine code: of rows, and of columns for the gradients.

All heads of a neighbour are taken together. LLVM makes slow code of loops over 16 channels. This file writes vectors.
Numba keeps the machine code until this file changes: what it is made of has to stand here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

# Bytes of a vector. Processors with shorter ones take several instructions.
_BYTES = 64
# Heads whose scores are summed up together, which takes half of the instructions.
_GROUP = 4
# Sums in any order, as in products of matrices. NaN and infinity stay what they are.
_FLAGS = ('reassoc', 'contract', 'nsz')
_INDEX, _SHORT = ir.IntType(64), ir.IntType(32)


def _index(number: int) -> Any:
    return ir.Constant(_INDEX, number)


class _Writer:
    r"""Writes loops over heads, entries and channels. Numbers of a group of heads are vectors of as many lanes."""

    def __init__(self, context: Any, builder: Any, kinds: Any, arguments: Any) -> None:
        self.context, self.builder = context, builder
        number = kinds[0].dtype
        self.bytes, self.number = number.bitwidth // 8, context.get_value_type(number)
        self.lanes = _BYTES // self.bytes
        #: The arguments: of arrays, pointers to their numbers.
        self.arguments = [
            context.make_array(kind)(context, builder, argument).data if isinstance(kind, types.Array) else argument
            for kind, argument in zip(kinds, arguments, strict=True)
        ]

    def at(self, pointer: Any, *offsets: Any) -> Any:
        for offset in offsets:
            pointer = self.builder.gep(pointer, [offset])
        return pointer

    def times(self, x: Any, y: Any) -> Any:
        return self.builder.mul(x, y)

    def column(self, col: Any, entry: Any) -> Any:
        column = self.builder.load(self.at(col, entry))
        return column if column.type == _INDEX else self.builder.sext(column, _INDEX)

    def for_range(self, start: Any, stop: Any, step: int = 1) -> Any:
        return cgutils.for_range_slice(self.builder, start, stop, _index(step))

    def for_groups(self, heads: Any, body: Callable[[Any, int], None]) -> None:
        r"""Calls :obj:`body` with the first head and the number of heads of each group."""
        grouped = self.builder.and_(heads, _index(-_GROUP))
        for start, stop, number in ((_index(0), grouped, _GROUP), (grouped, heads, 1)):
            with self.for_range(start, stop, number) as (head, _):
                body(head, number)

    def for_channels(self, channels: Any, body: Callable[[Any, Any], None]) -> None:
        r"""Calls :obj:`body` with the first channel of each vector, and with a mask if it is not full."""
        full = self.builder.and_(channels, _index(-self.lanes))
        with self.for_range(_index(0), full, self.lanes) as (channel, _):
            body(channel, None)
        rest = self.builder.sub(channels, full)
        with self.builder.if_then(self.builder.icmp_signed('>', rest, _index(0)), likely=False):
            lanes = ir.Constant(ir.VectorType(_INDEX, self.lanes), list(range(self.lanes)))
            body(full, self.builder.icmp_signed('<', lanes, self.filled(rest, self.lanes)))

    def variables(self, number: int, lanes: int) -> list[Any]:
        r"""Returns vectors of zeros that may change."""
        zero = self.filled(ir.Constant(self.number, 0.0), lanes)
        pointers = [cgutils.alloca_once(self.builder, zero.type) for _ in range(number)]
        for pointer in pointers:
            self.builder.store(zero, pointer)
        return pointers

    def filled(self, number: Any, lanes: int) -> Any:
        undefined = ir.Constant(ir.VectorType(number.type, lanes), ir.Undefined)
        first = self.builder.insert_element(undefined, number, ir.Constant(_SHORT, 0))
        return self.shuffled(first, undefined, [0] * lanes)

    def shuffled(self, x: Any, y: Any, lanes: list[int]) -> Any:
        return self.builder.shuffle_vector(x, y, ir.Constant(ir.VectorType(_SHORT, len(lanes)), lanes))

    def add(self, x: Any, y: Any) -> Any:
        return self.builder.fadd(x, y, flags=_FLAGS)

    def multiply(self, x: Any, y: Any) -> Any:
        return self.builder.fmul(x, y, flags=_FLAGS)

    def accumulate(self, variable: Any, x: Any) -> None:
        self.builder.store(self.add(self.builder.load(variable), x), variable)

    def magnitude(self, x: Any) -> Any:
        name = f'llvm.fabs.v{x.type.count}f{8 * self.bytes}'
        return self.builder.call(
            cgutils.get_or_insert_function(self.builder.module, ir.FunctionType(x.type, [x.type]), name), [x]
        )

    def load(self, pointer: Any, lanes: int, mask: Any = None) -> Any:
        kind = ir.VectorType(self.number, lanes)
        pointer = self.builder.bitcast(pointer, kind.as_pointer())
        if mask is None:
            return self.builder.load(pointer, align=self.bytes)
        absent = ir.Constant(kind, [0.0] * lanes)
        return self._masked('load', kind, [pointer, ir.Constant(_SHORT, self.bytes), mask, absent])

    def store(self, x: Any, pointer: Any, mask: Any = None) -> None:
        pointer = self.builder.bitcast(pointer, x.type.as_pointer())
        if mask is None:
            self.builder.store(x, pointer, align=self.bytes)
        else:
            self._masked('store', ir.VoidType(), [x, pointer, ir.Constant(_SHORT, self.bytes), mask])

    def _masked(self, name: str, result: Any, arguments: list[Any]) -> Any:
        kind = ir.FunctionType(result, [argument.type for argument in arguments])
        name = f'llvm.masked.{name}.v{self.lanes}f{8 * self.bytes}.p0'
        return self.builder.call(cgutils.get_or_insert_function(self.builder.module, kind, name), arguments)

    def strided(self, pointer: Any, stride: Any, lanes: int) -> Any:
        r"""Returns a vector of numbers that lie apart."""
        numbers = ir.Constant(ir.VectorType(self.number, lanes), ir.Undefined)
        for lane in range(lanes):
            number = self.builder.load(self.at(pointer, self.times(stride, _index(lane))))
            numbers = self.builder.insert_element(numbers, number, ir.Constant(_SHORT, lane))
        return numbers

    def lane(self, x: Any, lane: int) -> Any:
        return self.builder.extract_element(x, ir.Constant(_SHORT, lane))

    def dots(self, x: Any, y: Any, channels: Any, heads: int) -> Any:
        r"""Returns the products :math:`\mathbf{x}_h^{\top} \mathbf{y}_h` of a group of heads."""
        totals = self.variables(heads, self.lanes)

        def add_products(channel: Any, mask: Any) -> None:
            for head, total in enumerate(totals):
                offset = self.times(channels, _index(head))
                left, right = (self.load(self.at(pointer, offset, channel), self.lanes, mask) for pointer in (x, y))
                self.accumulate(total, self.multiply(left, right))

        self.for_channels(channels, add_products)
        parts, width, count = [self.builder.load(total) for total in totals], self.lanes, self.lanes
        while width > 1:
            width //= 2
            if len(parts) > 1:  # of two vectors one, in which either has half of the lanes
                halves = [[lane for lane in range(2 * count) if (lane & width > 0) == upper] for upper in (False, True)]
                pairs = zip(parts[::2], parts[1::2], strict=True)
                parts = [self.add(*(self.shuffled(*pair, half) for half in halves)) for pair in pairs]
            else:
                (part,) = parts
                parts = [self.add(part, self.shuffled(part, part, [lane ^ width for lane in range(count)]))]
        # Where halves of halves end up depends on the order of the shuffles.
        return self.shuffled(parts[0], parts[0], _places(self.lanes, heads))


def _places(lanes: int, heads: int) -> list[int]:
    r"""Returns the lanes at which :meth:`_Writer.dots` leaves the sums of the heads."""
    parts, width = [[head] * lanes for head in range(heads)], lanes
    while len(parts) > 1:
        width //= 2
        both = [(a + b) for a, b in zip(parts[::2], parts[1::2], strict=True)]
        parts = [[part[lane] for lane in range(2 * lanes) if lane & width == 0] for part in both]
    return [parts[0].index(head) for head in range(heads)]


@intrinsic
def _weigh(
    typing: Any, q: Any, k: Any, mask: Any, weight: Any, denominator: Any, magnitude: Any, col: Any, i: Any, start: Any,
    stop: Any, heads: Any, features: Any, stride: Any,
) -> Any:  # fmt: skip
    r"""Writes the weights of the entries of a row, :obj:`[stop - start, heads]`, their sums, and those of their magnitudes."""
    signature = types.void(q, k, mask, weight, denominator, magnitude, col, *(types.int64,) * 6)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        write = _Writer(context, builder, signature.args, arguments)
        q, k, mask, weight, denominator, magnitude, col, i, start, stop, heads, features, stride = write.arguments
        pitch = write.times(heads, features)
        query = write.at(q, write.times(i, pitch))

        def weigh(head: Any, number: int) -> None:
            offset, factors = write.times(head, features), write.at(mask, write.times(head, stride))
            total, size = write.variables(2, number)
            with write.for_range(start, stop) as (entry, _):
                key = write.at(k, write.times(write.column(col, entry), pitch), offset)
                score = write.dots(write.at(query, offset), key, features, number)
                factor = write.strided(write.at(factors, entry), stride, number)
                product = write.multiply(score, factor)
                write.accumulate(total, product)
                write.accumulate(size, write.magnitude(product))
                write.store(product, write.at(weight, write.times(builder.sub(entry, start), heads), head))
            write.store(builder.load(total), write.at(denominator, head))
            write.store(builder.load(size), write.at(magnitude, head))

        write.for_groups(heads, weigh)
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def _differentiate(
    typing: Any, q: Any, k: Any, upstream: Any, v: Any, shift: Any, mask: Any, grad_mask: Any, pairs: Any, col: Any, i: Any,
    base: Any, start: Any, stop: Any, heads: Any, features: Any, channels: Any, stride: Any, learned: Any,
) -> Any:  # fmt: skip
    r"""Writes the weights of the entries of a row and the gradients of their scores, :obj:`[nnz, 2, heads]` from entry
    :obj:`base`, and adds to those of the mask.
    """
    signature = types.void(q, k, upstream, v, shift, mask, grad_mask, pairs, col, *(types.int64,) * 8, types.boolean)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        write = _Writer(context, builder, signature.args, arguments)
        q, k, upstream, v, shift, mask, grad_mask, pairs, col, i, base, start, stop, heads, *rest = write.arguments
        features, channels, stride, learned = rest
        widths = [(features, q, k), (channels, upstream, v)]

        def differentiate(head: Any, number: int) -> None:
            shifts = write.load(write.at(shift, write.times(i, heads), head), number)
            with write.for_range(start, stop) as (entry, _):
                column, products = write.column(col, entry), []
                for width, left, right in widths:
                    pitch, offset = write.times(heads, width), write.times(head, width)
                    x, y = write.at(left, write.times(i, pitch), offset), write.at(right, write.times(column, pitch), offset)
                    products.append(write.dots(x, y, width, number))
                score, change = products[0], write.add(products[1], shifts)
                place = builder.add(write.times(head, stride), entry)
                factor = write.strided(write.at(mask, place), stride, number)
                target = write.at(pairs, write.times(builder.sub(entry, base), write.times(heads, _index(2))), head)
                write.store(write.multiply(score, factor), target)
                write.store(write.multiply(change, factor), write.at(target, heads))
                with builder.if_then(learned):
                    product = write.multiply(score, change)
                    for lane in range(number):  # one after the other: heads may share a number
                        address = write.at(grad_mask, place, write.times(stride, _index(lane)))
                        builder.store(write.add(builder.load(address), write.lane(product, lane)), address)

        write.for_groups(heads, differentiate)
        return context.get_dummy_value()

    return signature, generate


def _gatherer(placed: bool) -> Any:
    @intrinsic
    def gather(
        typing: Any, weight: Any, x: Any, out: Any, col: Any, place: Any, i: Any, start: Any, stop: Any, heads: Any,
        channels: Any, first: Any, stride: Any,
    ) -> Any:  # fmt: skip
        signature = types.void(weight, x, out, col, place, *(types.int64,) * 7)

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            write = _Writer(context, builder, signature.args, arguments)
            weight, x, out, col, place, i, start, stop, heads, channels, first, stride = write.arguments
            pitch = write.times(heads, channels)

            def gather(head: Any, number: int) -> None:
                offset = write.times(head, channels)
                target = write.at(out, write.times(i, pitch), offset)

                def total(channel: Any, mask: Any) -> None:
                    totals = write.variables(number, write.lanes)
                    with write.for_range(start, stop) as (entry, _):
                        at = write.column(place, entry) if placed else builder.sub(entry, start)
                        weights = write.at(weight, write.times(at, stride), first, head)
                        row = write.at(x, write.times(write.column(col, entry), pitch), offset, channel)
                        for lane, each in enumerate(totals):
                            factor = write.filled(builder.load(write.at(weights, _index(lane))), write.lanes)
                            value = write.load(write.at(row, write.times(channels, _index(lane))), write.lanes, mask)
                            write.accumulate(each, write.multiply(factor, value))
                    for lane, each in enumerate(totals):
                        write.store(builder.load(each), write.at(target, write.times(channels, _index(lane)), channel), mask)

                write.for_channels(channels, total)

            write.for_groups(heads, gather)
            return context.get_dummy_value()

        return signature, generate

    return gather


# Sums of the rows of a matrix over the entries of a row: sum_e w_e x_c(e). The weights of the entries come one after the other,
# or lie at places of their own.
_gather, _gather_placed = _gatherer(False), _gatherer(True)
_compile = njit(nogil=True, cache=True, error_model='numpy')


@_compile
def forward_rows(first, last, most, q, k, v, mask, rowptr, col, out, inverse, heads, features, channels, stride):  # type: ignore[no-untyped-def]
    limits = np.finfo(q.dtype)
    rounding, least = q.dtype.type(16) * limits.eps, limits.tiny / limits.eps
    weight, total, size = np.empty(most * heads, q.dtype), np.empty(heads, q.dtype), np.empty(heads, q.dtype)
    for i in range(first, last):
        start, stop = np.int64(rowptr[i]), np.int64(rowptr[i + 1])
        _weigh(q, k, mask, weight, total, size, col, i, start, stop, heads, features, stride)
        _gather(weight, v, out, col, col, i, start, stop, heads, channels, 0, heads)
        for head in range(heads):
            # As inverse_weight.
            empty = abs(total[head]) <= max(rounding * size[head], least)
            scale = q.dtype.type(0) if empty else q.dtype.type(1) / total[head]
            inverse[i * heads + head] = scale
            for place in range((i * heads + head) * channels, (i * heads + head + 1) * channels):
                out[place] *= scale


# The weights of the entries, and the gradients of their scores, lie side by side: the columns find both at one place.
@_compile
def backward_rows(  # type: ignore[no-untyped-def]
    first, last, base, q, k, v, mask, rowptr, col, upstream, shift, pairs, grad_q, grad_mask, heads, features, channels, stride
):
    learned = grad_mask.size > 0
    for i in range(first, last):
        start, stop = np.int64(rowptr[i]), np.int64(rowptr[i + 1])
        _differentiate(
            q,
            k,
            upstream,
            v,
            shift,
            mask,
            grad_mask,
            pairs,
            col,
            i,
            base,
            start,
            stop,
            heads,
            features,
            channels,
            stride,
            learned,
        )
        _gather(pairs, k, grad_q, col, col, i, start, stop, heads, features, (2 * (start - base) + 1) * heads, 2 * heads)


@_compile
def backward_columns(  # type: ignore[no-untyped-def]
    first, last, base, q, rowptr, col, place, upstream, pairs, grad_k, grad_v, heads, features, channels
):
    for j in range(first, last):
        start, stop = np.int64(rowptr[j]), np.int64(rowptr[j + 1])
        _gather_placed(pairs, upstream, grad_v, col, place, j, start, stop, heads, channels, -2 * base * heads, 2 * heads)
        _gather_placed(pairs, q, grad_k, col, place, j, start, stop, heads, features, (1 - 2 * base) * heads, 2 * heads)
