r"""The meetings of walks, compiled with Numba: a table per start node replaces sorting all meetings.

As loops over slices of arrays, the sums of blocks took 5.2 times as long on 128 graphs of 23 nodes, and 1.3
times on 16 of 400 (4 walks of 3 hops, Zen 5).
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from pyg_topomask.graphs.sparse_pattern import SparsePattern
from pyg_topomask.machine.compiled import compiled, largest, lowest_bit, sort_reached
from pyg_topomask.machine.patterns import pointers, with_transpose
from pyg_topomask.machine.threads import Array, array_of, arrays_of, in_chunks, pairs_before
from pyg_topomask.machine.vectors import multiply_add


@compiled
def _sort_by_node(start, visited, length, load, ptr, starts, lengths, loads):
    r"""Sorts visits by the visited node."""
    place_of = ptr.copy()
    for visit in range(len(visited)):
        place = place_of[visited[visit]]
        starts[place], lengths[place], loads[place] = start[visit], length[visit], load[visit]
        place_of[visited[visit]] = place + 1


@compiled
def _meet(
    first, last, rowptr, visited, length, load, by_node, other_start, other_length, other_load, kind, kinds, width, nodes, most,
    rows, cols, counts, combinations, loads,
):  # fmt: skip
    # Where combinations is None, Numba compiles a version that writes the loads of all kinds.
    met, bits = np.empty(most + 1, np.int32), np.zeros((nodes >> 6) + 1, np.int64)
    present, sums = np.zeros(nodes, np.int64), np.zeros(nodes * kinds, load.dtype)
    pairs = used = 0
    for i in range(first, last):
        number, low, high = 0, nodes, -1
        for visit in range(rowptr[i], rowptr[i + 1]):
            of_hops, begin, end = length[visit] * width, by_node[visited[visit]], by_node[visited[visit] + 1]
            for meeting in range(begin, end):
                j, combination = other_start[meeting], kind[of_hops + other_length[meeting]]
                # Without a branch on whether the pair is new, which would be hard to predict.
                met[number] = j
                number += present[j] == 0
                present[j] |= np.int64(1) << np.int64(combination)
                bits[j >> 6] |= np.int64(1) << np.int64(j & 63)
                sums[j * kinds + combination] += load[visit] * other_load[meeting]
            if begin < end:
                low, high = min(low, other_start[begin]), max(high, other_start[end - 1])
        sort_reached(met[:number], low, high, bits)
        for j in met[:number]:
            before = used
            if combinations is None:
                for place in range(j * kinds, (j + 1) * kinds):
                    loads[used], sums[place] = sums[place], 0
                    used += 1
            else:
                left = present[j]
                while left != 0:
                    combination = lowest_bit(left)
                    left &= left - 1
                    combinations[used], loads[used] = combination, sums[j * kinds + combination]
                    sums[j * kinds + combination] = 0
                    used += 1
                counts[pairs] = used - before
            rows[pairs], cols[pairs], present[j] = i, j, 0
            pairs += 1
    return pairs, used


@compiled
def _count_met(sampled, rowptr, visited, by_node, other_start, nodes, counts):
    r"""Counts the nodes whose walks meet those of each sampled node."""
    seen = np.full(nodes, -1, np.int32)
    for place in range(len(sampled)):
        counts[place] = 0
        for visit in range(rowptr[sampled[place]], rowptr[sampled[place] + 1]):
            for meeting in range(by_node[visited[visit]], by_node[visited[visit] + 1]):
                j = other_start[meeting]
                counts[place] += seen[j] != place
                seen[j] = place


@compiled
def _add_blocks(
    first_graph, last_graph, ptr, pairs, rowptr, start, visited, length, load, other_rowptr, other_start, other_visited,
    other_length, other_load, hops, out,
):  # fmt: skip
    r"""Adds the products of loads that meet at all pairs of nodes of the same graph, by the sum of their hops: multiples of
    rows of a table of all loads of the keys' walks in a graph.
    """
    most = largest(first_graph, last_graph, ptr)
    table = np.empty((hops + 1) * most * most, load.dtype)
    for graph in range(first_graph, last_graph):
        first, last = ptr[graph], ptr[graph + 1]
        number = last - first
        table[: (hops + 1) * number * number] = 0
        for visit in range(other_rowptr[first], other_rowptr[last]):
            row = other_length[visit] * number + other_visited[visit] - first
            table[row * number + other_start[visit] - first] = other_load[visit]
        for visit in range(rowptr[first], rowptr[last]):
            target = pairs[graph] + (start[visit] - first) * number
            for other in range(hops + 1):
                row, kind = other * number + visited[visit] - first, np.int64(length[visit]) + other
                multiply_add(load, table, out, visit, 0, 0, row * number, 0, kind * pairs[-1] + target, 0, 1, 1, number)


@compiled
def _add_squares(start, visited, length, load, width, out):
    for visit in range(len(load)):
        other = visit
        while other < len(load) and start[other] == start[visit] and visited[other] == visited[visit]:
            product = load[visit] * load[other]
            out[start[visit] * width + length[visit] + length[other]] += product if other == visit else 2 * product
            other += 1


@compiled
def _list_meetings(rowptr, visited, first, starts, perm, of_query, of_key, slot, ptr, cols, place_of, bits):
    r"""Lists the meetings row by row, and the distinct pairs of start nodes, ascending. Returns the number of pairs."""
    meeting = pairs = ptr[0] = 0
    for i in range(len(rowptr) - 1):
        begin, number, low, high = meeting, 0, len(place_of), -1
        for feature in range(rowptr[i], rowptr[i + 1]):
            for other in range(first[visited[feature]], first[visited[feature] + 1]):
                j = starts[other]
                of_query[meeting], of_key[meeting], slot[meeting] = feature, perm[other], j
                meeting += 1
                if place_of[j] < 0:
                    place_of[j], cols[pairs + number] = 0, j
                    bits[j >> 6] |= np.int64(1) << np.int64(j & 63)
                    number, low, high = number + 1, min(low, j), max(high, j)
        met = cols[pairs : pairs + number]
        sort_reached(met, low, high, bits)
        for rank in range(number):
            place_of[met[rank]] = pairs + rank
        for each in range(begin, meeting):
            slot[each] = place_of[slot[each]]
        for j in met:
            place_of[j] = -1
        pairs += number
        ptr[i + 1] = pairs
    return pairs


@compiled
def _add_products(x, y, of_x, of_y, of_sum, width, out):
    for meeting in range(len(of_sum)):
        one, other, target = of_x[meeting] * width, of_y[meeting] * width, of_sum[meeting] * width
        for head in range(width):
            out[target + head] += x[one + head] * y[other + head]


# The start nodes, visited nodes, hops and loads of walks, sorted.
Visits = tuple[Tensor, Tensor, Tensor, Tensor]


def meet(
    query: Visits, key: Visits, num_nodes: int, kind: Array, every: bool, at_a_time: int
) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...], Tensor]:
    r"""Returns the tensors of two :class:`~pyg_topomask.graphs.sparse_pattern.SparsePattern`, of the pairs of start nodes whose
    walks meet and of the kinds of meetings of each pair, and the loads of these meetings. With :obj:`every`, it returns no
    kinds, and the loads of all kinds, :obj:`[pairs, kinds]`. The hops of the query's and the key's walk index the :obj:`kind`
    of a meeting.
    """
    of_queries, rowptr = [array_of(column) for column in query[1:]], array_of(pointers(query[0], num_nodes))
    first, *of_keys = _by_node(key, num_nodes)
    meetings = np.append(0, np.diff(first)[of_queries[0]].cumsum())[rowptr]
    chunk = meetings[1:] // at_a_time
    bounds = [0, *(np.flatnonzero(np.diff(chunk)) + 1).tolist(), num_nodes]
    parts = [_meet_in_rows(*rows, meetings, rowptr, of_queries, first, of_keys, kind, every) for rows in pairwise(bounds)]
    columns = (part[0] if len(part) == 1 else np.concatenate(part) for part in zip(*parts, strict=True))
    row, col, *counted, load = map(torch.from_numpy, columns)
    pattern = pointers(row, num_nodes), col
    if every:
        return pattern, (), load.view(len(row), -1 if len(row) > 0 else int(kind.max()) + 1)
    count, combination = counted
    ends = count.cumsum(0, dtype=torch.int32 if len(load) < 2**31 else torch.int64)
    return pattern, with_transpose(pad(ends, (1, 0)), combination, int(kind.max()) + 1), load


def _meet_in_rows(
    start: int, stop: int, meetings: Array, rowptr: Array, query: list[Array], by_node: Array, key: list[Array], kind: Array,
    every: bool,
) -> tuple[Array, ...]:  # fmt: skip
    size, kinds = len(rowptr) - 1, int(kind.max()) + 1
    of_node = np.minimum(np.diff(meetings[start : stop + 1]), size)
    most, pairs_at_most = int(of_node.max(initial=0)), int(of_node.sum())
    room = pairs_at_most if every else int(meetings[stop] - meetings[start])
    rows, cols = np.empty(pairs_at_most, np.int32), np.empty(pairs_at_most, np.int32)
    counts, combinations = (None, None) if every else (np.empty(pairs_at_most, np.int32), np.empty(room, np.int32))
    loads = np.empty(room * kinds if every else room, query[2].dtype)
    tables = *query, by_node, *key, kind.ravel()
    sizes, columns = (kinds, kind.shape[1], size, most), (rows, cols, counts, combinations, loads)
    pairs, used = _meet(start, stop, rowptr, *tables, *sizes, *columns)
    # What is beyond these numbers was not written, and takes no memory.
    counted = () if counts is None or combinations is None else (counts[:pairs], combinations[:used])
    return rows[:pairs], cols[:pairs], *counted, loads[:used]


def counts_met(query: Visits, key: Visits, num_nodes: int, sampled: Array) -> Array:
    r"""Returns the number of nodes whose walks meet those of each sampled node."""
    rowptr, counts = array_of(pointers(query[0], num_nodes)), np.empty(len(sampled), np.int64)
    _count_met(sampled, rowptr, array_of(query[1]), *_by_node(key, num_nodes)[:2], num_nodes, counts)
    return counts


def blocks_of_sums(query: Visits, key: Visits, hops: int, ptr: Tensor) -> Tensor:
    r"""Returns the products of loads that meet, by the sum of their hops, at all pairs of nodes of the same graph, by row,
    :obj:`[2 * hops + 1, num_pairs]`.
    """
    pairs, num_nodes = pairs_before(ptr), int(ptr[-1])
    out = np.zeros((2 * hops + 1, pairs[-1]), array_of(query[3]).dtype)
    tables: list[Array] = []
    for visits in (query, key):
        tables += [array_of(pointers(visits[0], num_nodes)), *arrays_of(visits)]
    numbers = out.reshape(-1)
    in_chunks(lambda first, last: _add_blocks(first, last, array_of(ptr), pairs, *tables, hops, numbers), pairs, 2 * hops + 1)
    return torch.from_numpy(out)


def squares(visits: Visits, num_nodes: int, hops: int) -> Tensor:
    r"""Returns the products of the loads of each node's visits to the same node, by the sum of their hops,
    :obj:`[num_nodes, 2 * hops + 1]`.
    """
    out = visits[3].new_zeros(num_nodes, 2 * hops + 1)
    _add_squares(*arrays_of(visits), out.size(1), array_of(out))
    return out


def list_meetings(query: SparsePattern, key: SparsePattern) -> tuple[SparsePattern, Tensor, Tensor, Tensor]:
    r"""Returns the meetings of features, given their positions: the positions of the entries, and the entry and the two
    features of each meeting.
    """
    size, columns = int(key.rowptr_t.diff().index_select(0, query.col).sum()), (key.rowptr_t, key.col_t, key.perm_t)
    kind = query.col.dtype if size < 2**31 else torch.int64
    of_query, of_key, slot, cols = torch.empty(4, size, dtype=kind).unbind()
    ptr, place_of = torch.empty(query.num_rows + 1, dtype=kind), torch.full((key.num_rows,), -1, dtype=kind)
    made = of_query, of_key, slot, ptr, cols, place_of, torch.zeros((key.num_rows >> 6) + 1, dtype=torch.long)
    found = _list_meetings(*arrays_of((query.rowptr, query.col, *columns, *made)))
    return SparsePattern(ptr, cols[:found].clone(), num_cols=key.num_rows), slot, of_query, of_key


def add_products(x: Tensor, y: Tensor, of_x: Tensor, of_y: Tensor, of_sum: Tensor, total: Tensor) -> Tensor:
    r"""Adds the products of rows of two matrices, at the places :obj:`of_x` and :obj:`of_y`, to the rows :obj:`of_sum`."""
    _add_products(*arrays_of((x, y, of_x, of_y, of_sum)), total.size(1), array_of(total))
    return total


def _by_node(visits: Visits, num_nodes: int) -> tuple[Array, ...]:
    r"""Returns where the visits to each node begin, and their start nodes, hops and loads."""
    start, visited, length, load = arrays_of(visits)
    ptr, columns = array_of(pointers(visits[1], num_nodes)), [np.empty_like(column) for column in (start, length, load)]
    _sort_by_node(start, visited, length, load, ptr, *columns)
    return ptr, *columns
