r"""The meetings of walks, compiled with Numba: a table per start node replaces sorting all meetings."""

from __future__ import annotations

import numpy as np
from numba import njit

from pyg_topomask.ops.numba_backend import Array


@njit(nogil=True, cache=True, error_model='numpy')
def _meet(  # type: ignore[no-untyped-def]
    first, last, rowptr, visited, length, load, by_node, other_start, other_length, other_load, kind, kinds, width, nodes, most,
    rows, cols, counts, combinations, loads,
):  # fmt: skip
    slot, met = np.full(nodes, -1, np.int32), np.empty(most, np.int32)
    present, sums = np.empty(most, np.int64), np.empty(most * kinds, load.dtype)
    pairs = used = 0
    for i in range(first, last):
        number, low, high = 0, nodes, -1
        for visit in range(rowptr[i], rowptr[i + 1]):
            node, of_hops = visited[visit], length[visit] * width
            for meeting in range(by_node[node], by_node[node + 1]):
                j = other_start[meeting]
                if slot[j] < 0:
                    slot[j], met[number], present[number] = number, j, 0
                    sums[number * kinds : (number + 1) * kinds] = 0
                    number, low, high = number + 1, min(low, j), max(high, j)
                place, combination = slot[j], kind[of_hops + other_length[meeting]]
                sums[place * kinds + combination] += load[visit] * other_load[meeting]
                present[place] |= np.int64(1) << np.int64(combination)
        # In order: sort few distant nodes, and scan otherwise.
        dense = high - low < 16 * number
        if not dense:
            met[:number].sort()
        for candidate in range(low if dense else 0, high + 1 if dense else number):
            j = candidate if dense else met[candidate]
            place = slot[j]
            if place < 0:
                continue
            slot[j] = -1
            before = used
            for combination in range(kinds):
                if present[place] >> np.int64(combination) & 1:
                    combinations[used], loads[used] = combination, sums[place * kinds + combination]
                    used += 1
            rows[pairs], cols[pairs], counts[pairs] = i, j, used - before
            pairs += 1
    return pairs, used


def meet(
    nodes: range, rowptr: Array, query: tuple[Array, ...], by_node: Array, key: tuple[Array, ...], kind: Array
) -> tuple[Array, ...]:
    r"""Returns the pairs of start nodes whose walks meet, in ascending order: rows, columns, and the number of kinds of
    meetings per pair, followed by the kinds and their loads, pair by pair.

    Args:
        nodes (range): The start nodes of the queries.
        rowptr (numpy.ndarray): The first visit of each of them.
        query (tuple of numpy.ndarray): The visited nodes, hops and loads of these visits.
        by_node (numpy.ndarray): The first visit of the keys' walks to each node.
        key (tuple of numpy.ndarray): The start nodes, hops and loads of these visits.
        kind (numpy.ndarray): The kind of a meeting, indexed by the hops of the query's and the key's walk.
    """
    visits = rowptr[nodes.start : nodes.stop + 1]
    meetings = np.append(0, np.diff(by_node)[query[0][visits[0] : visits[-1]]].cumsum())
    room, size, kinds = int(meetings[-1]), len(rowptr) - 1, int(kind.max()) + 1
    most = int(min(np.diff(meetings[visits - visits[0]]).max(initial=0), size))
    columns = [*(np.empty(room, np.int32) for _ in range(4)), np.empty(room, query[2].dtype)]
    tables = *query, by_node, *key, kind.ravel()
    pairs, used = _meet(nodes.start, nodes.stop, rowptr, *tables, kinds, kind.shape[1], size, most, *columns)
    return tuple(column[: pairs if place < 3 else used].copy() for place, column in enumerate(columns))
