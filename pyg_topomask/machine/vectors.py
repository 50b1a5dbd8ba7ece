r"""Vectors in machine code: a writer of loops over them, and the product of small matrices.

LLVM makes slow code of loops over 16 channels. This file writes vectors. Loops in plain Numba took 2.5 to 4.0 times as long in
prepared blocks, and 2.1 to 5.8 times in masks of low rank (128 graphs of 30 nodes, 16 features and channels, 4 heads, Zen 5).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from pyg_topomask.machine.compiled import ANY_ORDER

# Bytes of a vector. Processors with shorter ones take several instructions.
_BYTES = 64
# Heads whose scores are summed up together, which takes half of the instructions.
_GROUP = 4
# Rows of a product of matrices that are computed together.
_ROWS = (8, 4, 1)
# Entries between the one that is read and the one whose memory is asked for.
_AHEAD = 24
_INDEX, _SHORT = ir.IntType(64), ir.IntType(32)


def index(number: int) -> Any:
    return ir.Constant(_INDEX, number)


class Writer:
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
        return cgutils.for_range_slice(self.builder, start, stop, index(step))

    def rows(self, pointer: Any, width: Any, number: int) -> list[Any]:
        r"""Returns where the rows of a matrix begin."""
        return [self.at(pointer, self.times(width, index(row))) for row in range(number)]

    def for_groups(self, count: Any, body: Callable[[Any, int], None], sizes: tuple[int, ...] = (_GROUP, 2, 1)) -> None:
        r"""Calls :obj:`body` with the first item and the number of items of each group."""
        start: Any = index(0)
        for number in sizes:
            stop = self.builder.and_(count, index(-number))
            with self.for_range(start, stop, number) as (item, _):
                body(item, number)
            start = stop

    def for_channels(self, channels: Any, body: Callable[[Any, Any], None]) -> None:
        r"""Calls :obj:`body` with the first channel of each vector, and with a mask if it is not full."""
        # Most heads have one vector of channels. A loop over one vector takes longer than its body.
        with self.builder.if_else(self.builder.icmp_signed('==', channels, index(self.lanes))) as (one, several):
            with one:
                body(index(0), None)
            with several:
                full = self.builder.and_(channels, index(-self.lanes))
                with self.for_range(index(0), full, self.lanes) as (channel, _):
                    body(channel, None)
                rest = self.builder.sub(channels, full)
                with self.builder.if_then(self.builder.icmp_signed('>', rest, index(0))):
                    lanes = ir.Constant(ir.VectorType(_INDEX, self.lanes), list(range(self.lanes)))
                    body(full, self.builder.icmp_signed('<', lanes, self.filled(rest, self.lanes)))

    def for_wide(self, channels: Any, body: Callable[[list[Any], Any], None]) -> None:
        r"""Calls :obj:`body` with the first channels of four vectors, and then of one, with a mask if it is not full."""
        wide = self.builder.and_(channels, index(-_GROUP * self.lanes))
        with self.for_range(index(0), wide, _GROUP * self.lanes) as (channel, _):
            body([self.builder.add(channel, index(self.lanes * vector)) for vector in range(_GROUP)], None)
        self.for_channels(self.builder.sub(channels, wide), lambda channel, mask: body([self.builder.add(wide, channel)], mask))

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
        return self.builder.fadd(x, y, flags=ANY_ORDER)

    def multiply(self, x: Any, y: Any) -> Any:
        return self.builder.fmul(x, y, flags=ANY_ORDER)

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

    def ahead(self, entry: Any, final: Any) -> Any:
        r"""Returns the entry whose memory is asked for at an entry, some entries further on."""
        ahead = self.builder.add(entry, index(_AHEAD))
        return self.builder.select(self.builder.icmp_signed('<', ahead, final), ahead, final)

    def prefetch(self, pointer: Any) -> None:
        r"""Asks for the memory that a later step reads, whose address the processor does not foresee."""
        byte = self.builder.bitcast(pointer, ir.IntType(8).as_pointer())
        kind = ir.FunctionType(ir.VoidType(), [byte.type, _SHORT, _SHORT, _SHORT])
        hints = [ir.Constant(_SHORT, hint) for hint in (0, 3, 1)]  # a read of data that stay in the nearest cache
        self.builder.call(cgutils.get_or_insert_function(self.builder.module, kind, 'llvm.prefetch.p0'), [byte, *hints])

    def strided(self, pointer: Any, stride: Any, lanes: int) -> Any:
        r"""Returns a vector of numbers that lie apart."""
        numbers = ir.Constant(ir.VectorType(self.number, lanes), ir.Undefined)
        for lane in range(lanes):
            number = self.builder.load(self.at(pointer, self.times(stride, index(lane))))
            numbers = self.builder.insert_element(numbers, number, ir.Constant(_SHORT, lane))
        return numbers

    def lane(self, x: Any, lane: int) -> Any:
        return self.builder.extract_element(x, ir.Constant(_SHORT, lane))

    def total(self, x: Any) -> Any:
        r"""Returns the sum of the lanes of a vector."""
        name = f'llvm.vector.reduce.fadd.v{x.type.count}f{8 * self.bytes}'
        kind, zero = ir.FunctionType(self.number, [self.number, x.type]), ir.Constant(self.number, -0.0)
        function = cgutils.get_or_insert_function(self.builder.module, kind, name)
        return self.builder.call(function, [zero, x], fastmath=ANY_ORDER)

    def dots(self, left: list[Any], right: list[Any], channels: Any) -> Any:
        r"""Returns the products :math:`\mathbf{x}_h^{\top} \mathbf{y}_h` of 1 or 4 pairs, as a vector."""
        totals = self.variables(len(left), self.lanes)

        def add_products(channel: Any, mask: Any) -> None:
            for total, *pair in zip(totals, left, right, strict=True):
                self.accumulate(total, self.multiply(*(self.load(self.at(x, channel), self.lanes, mask) for x in pair)))

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
        return self.shuffled(parts[0], parts[0], _places(self.lanes, len(left)))


def _places(lanes: int, heads: int) -> list[int]:
    r"""Returns the lanes at which :meth:`Writer.dots` leaves the sums of the heads."""
    parts, width = [[head] * lanes for head in range(heads)], lanes
    while len(parts) > 1:
        width //= 2
        both = [(a + b) for a, b in zip(parts[::2], parts[1::2], strict=True)]
        parts = [[part[lane] for lane in range(2 * lanes) if lane & width == 0] for part in both]
    return [parts[0].index(head) for head in range(heads)]


def written(body: Callable[..., Any], returns: Any = types.void, **settings: bool) -> Any:
    r"""Returns a function of machine code, given one that writes it with a :class:`Writer`. That gets a pointer to the numbers
    of each array, all integers with 64 bits, and settings that differ between versions of the code.
    """
    parameters = list(inspect.signature(body).parameters.values())

    def typed(typing: Any, *kinds: Any) -> Any:
        given = (types.int64 if isinstance(kind, types.Integer) else kind for kind in kinds)

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            write = Writer(context, builder, signature.args, arguments)
            result = body(write, *write.arguments, **settings)
            return context.get_dummy_value() if returns == types.void else result

        return returns(*given), generate

    typed.__name__ = body.__name__
    typed.__signature__ = inspect.Signature(parameters[: len(parameters) - len(settings)])  # type: ignore[attr-defined]
    return intrinsic(typed)


def _multiply(write, a, b, out, a_start, a_row, a_col, b_start, b_row, out_start, out_row, rows, inner, columns, add):
    left, right, target = write.at(a, a_start), write.at(b, b_start), write.at(out, out_start)

    def of_columns(column: Any, mask: Any) -> None:
        def of_rows(first: Any, number: int) -> None:
            factors = write.rows(write.at(left, write.times(first, a_row)), a_row, number)
            places = write.rows(write.at(target, write.times(first, out_row), column), out_row, number)
            totals = write.variables(number, write.lanes)
            if add:
                for total, place in zip(totals, places, strict=True):
                    write.builder.store(write.load(place, write.lanes, mask), total)
            with write.for_range(index(0), inner) as (step, _):
                vector = write.load(write.at(right, write.times(step, b_row), column), write.lanes, mask)
                offset = write.times(step, a_col)
                for total, factor in zip(totals, factors, strict=True):
                    number_of_row = write.filled(write.builder.load(write.at(factor, offset)), write.lanes)
                    write.accumulate(total, write.multiply(number_of_row, vector))
            for total, place in zip(totals, places, strict=True):
                write.store(write.builder.load(total), place, mask)

        write.for_groups(rows, of_rows, _ROWS)

    write.for_channels(columns, of_columns)


@written
def dot_rows(write, x, y, out, x_start, x_row, y_start, y_row, out_start, out_row, rows, columns):
    r"""Writes the products of the rows of two matrices."""

    def of_rows(first: Any, number: int) -> None:
        starts = [(x, x_start, x_row), (y, y_start, y_row), (out, out_start, out_row)]
        left, right, target = (
            write.rows(write.at(pointer, start, write.times(first, row)), row, number) for pointer, start, row in starts
        )
        products = write.dots(left, right, columns)
        for lane, place in enumerate(target):
            write.builder.store(write.lane(products, lane), place)

    write.for_groups(rows, of_rows)


# The product of a matrix of any strides with one whose rows are contiguous, in place of the output or added to it.
multiply, multiply_add = written(_multiply, add=False), written(_multiply, add=True)
