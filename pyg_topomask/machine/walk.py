r"""Random walks compiled with Numba, with the same walks and features as the tensor version."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate, pairwise

import numpy as np
import torch
from torch import Tensor

from pyg_topomask.errors import ArgumentError
from pyg_topomask.machine.compiled import compiled, copy, sort, splitmix
from pyg_topomask.machine.threads import in_threads
from pyg_topomask.utils.random import APART

# The number of visits up to which one thread is used, and the number of chunks per thread otherwise. Threads of torch spin for
# a while after an operation. A thread that starts late therefore processes fewer chunks.
_ALONE, _SHARES = 2**20, 4
# Up to this size, comparing all pairs is faster than sorting.
_FEW = 768

_SHIFT11 = np.uint64(11)
_ZERO, _ONE, _TWO, _THREE = (np.uint64(number) for number in range(4))


@compiled
def _number(key, stream):
    return np.float64(np.int64(splitmix(key + np.uint64(stream)) >> _SHIFT11)) * 2.0**-53


@compiled(inline=True)
def _sort(keys, ranked, size):
    if size > _FEW:
        copy(keys, 0, ranked, 0, size)
        sort(ranked, ranked, size)
        return
    for item in range(size):
        key, rank = keys[item], 0
        for other in range(size):
            rank += keys[other] < key
        ranked[np.uint64(rank)] = key


@compiled
def _hops(key, survival, second):
    longest, made = np.uint64(len(survival) - 1), _ZERO
    if survival[longest] == 1.0:
        return np.int64(longest)
    u = _number(key, 0)
    if second:
        u = 1.0 - 2.0**-53 - u
    while made < longest and survival[made + _ONE] > u:
        made += _ONE
    return np.int64(made)


@compiled
def _antithetic_hops(counter, offset, halting):
    pair, made = splitmix(np.uint64(counter - (counter & 1)) + offset), 0
    while made < len(halting):
        u = _number(pair, -(made + 1)) + 0.5 * (counter & 1)
        if u - np.floor(u) < halting[made]:
            break
        made += 1
    return made


@compiled
def _search(cumulative, row, degree, target):
    low, high = row, row + degree - 1
    while low < high:
        middle = (low + high) >> 1
        if cumulative[middle] > target:
            high = middle
        else:
            low = middle + 1
    return low - row


@compiled
def _repel(step, going, key, position, degree, choice, members, numbers, order):
    num_walks = len(key)
    for walker in range(num_walks):
        if going[walker]:
            choice[walker] = np.int64(_number(key[walker], step) * degree[walker])
    for walker in range(num_walks):
        if not going[walker]:
            continue
        count, width = 0, degree[walker]
        for other in range(walker, num_walks):
            if going[other] and position[other] == position[walker]:
                members[count] = other
                count += 1
                going[other] = False
        for begin in range(0, count, width):
            block = members[begin : min(begin + width, count)]
            if 2 * len(block) >= width:
                for edge in range(width):
                    numbers[edge], order[edge] = _number(key[block[0]], step - (edge + 1) * APART), edge
                sort(numbers, order, width)
                for rank in range(len(block)):
                    choice[block[rank]] = order[rank]
            else:
                _redraw(step, key, width, choice, block)


@compiled
def _redraw(step, key, width, choice, block):
    settled = np.ones(len(block), np.bool_)
    for rank in range(len(block)):
        for other in range(rank):
            if choice[block[other]] == choice[block[rank]]:
                settled[rank] = False
    attempt = 0
    while not settled.all():
        attempt += 1
        again = ~settled
        for rank in range(len(block)):
            if again[rank]:
                walker = block[rank]
                choice[walker] = np.int64(_number(key[walker], step + attempt * APART) * width)
        for rank in range(len(block)):
            if again[rank]:
                settled[rank] = True
                for other in range(len(block)):
                    earlier = other < rank if again[other] else True
                    if earlier and choice[block[other]] == choice[block[rank]]:
                        settled[rank] = False


@compiled(inline=True)
def _merge(node, size, bits, places, keys, ranked, values, used, starts, visited, lengths, loads):
    _sort(keys, ranked, size)
    last = np.int64(-1)
    for rank in range(size):
        visit, load = ranked[rank] >> places, values[np.uint64(ranked[rank] & ((1 << places) - 1))]
        if visit == last:
            loads[used - _ONE] += load
            continue
        last = visit
        starts[used], visited[used], lengths[used], loads[used] = node, visit >> bits, visit & ((1 << bits) - 1), load
        used += _ONE
    return used


@compiled
def _walk(
    begin, end, base, num_walks, first, edges, factor, local_id, survival, halting, coupled, ratio, cumulative, going,
    ranked, offset, bits, places, opening, room, starts, visited, lengths, loads, crossed,
):  # fmt: skip
    # If halting, ratio or cumulative is empty, there are no antithetic lengths, importance weights or weighted transitions. If
    # going or ranked is None, Numba compiles a version without repelling walkers or merging. Where visits are not merged,
    # crossed may get twice the edge before each of them, and one more if the walker goes on.
    antithetic, importance, weighted = len(halting) > 0, len(ratio) > 0, len(cumulative) > 0
    most_visits = 1 + num_walks * (len(survival) - 1)
    keys = np.empty(0 if ranked is None else most_visits, np.int64)
    values = np.empty(0 if ranked is None else most_visits, factor.dtype)
    key = np.empty(num_walks, np.uint64)
    hops = np.empty(num_walks, np.int64)
    position = np.empty(num_walks, np.int64)
    row = np.empty(num_walks, np.int64)
    degree = np.empty(num_walks, np.int64)
    load = np.empty(num_walks, factor.dtype)
    choice = np.empty(num_walks, np.int64)
    members = np.empty(num_walks, np.int64)
    numbers, order = np.empty(2 * num_walks, np.float64), np.empty(2 * num_walks, np.int64)
    used = np.uint64(opening)  # unsigned, as below, so that Numba need not handle negative indices
    for place_of_start in range(begin, end):
        node = base + place_of_start
        if np.int64(used) - opening + most_visits > room:
            return -1
        if ranked is None:
            starts[used], visited[used], lengths[used], loads[used] = node, node, 0, 1
            used += _ONE
        else:
            keys[0], values[0] = np.int64(node) << (bits + places), 1
        size, most = 1, 0
        for walker in range(num_walks):
            counter = local_id[place_of_start] * num_walks + walker
            key[walker] = splitmix(np.uint64(counter) + offset)
            if not antithetic:
                second = counter & coupled
                hops[walker] = _hops(splitmix(np.uint64(counter - second) + offset), survival, second)
            else:
                hops[walker] = _antithetic_hops(counter, offset, halting)
            most = max(most, hops[walker])
            position[walker] = node
            row[walker] = first[node, 0]
            degree[walker] = first[node, 1]
            load[walker] = 1.0 / num_walks
            if degree[walker] == 0:
                hops[walker] = 0
        # One step for all walkers of a node, so that their memory accesses overlap.
        for step in range(1, most + 1):
            if going is not None:
                for walker in range(num_walks):
                    going[walker] = hops[walker] >= step
                _repel(step, going, key, position, degree, choice, members, numbers, order)
            for number in range(num_walks):
                walker = np.uint64(number)
                if hops[walker] < step:
                    continue
                if going is not None:
                    hop = choice[walker]
                elif not weighted:
                    hop = np.int64(_number(key[walker], step) * degree[walker])
                else:
                    hop = _search(cumulative, row[walker], degree[walker], position[walker] + _number(key[walker], step))
                taken = np.uint64(row[walker] + hop) << _TWO
                carried, reached = load[walker], edges[taken]
                if importance:
                    carried = carried * factor[taken | _THREE] * ratio[np.uint64(step - 1)]
                    load[walker] = carried
                if going is not None or weighted:
                    position[walker] = reached
                row[walker] = edges[taken | _ONE]
                degree[walker] = edges[taken | _TWO]
                if degree[walker] == 0:
                    hops[walker] = step
                if ranked is None:
                    starts[used], visited[used], lengths[used], loads[used] = node, reached, step, carried
                    if crossed is not None:
                        crossed[used] = np.int64(taken >> _ONE) | np.int64(hops[walker] > step)
                    used += _ONE
                else:
                    place = np.uint64(size)
                    keys[place], values[place] = (np.int64(reached) << bits | step) << places | size, carried
                    size += 1
        if ranked is not None:
            used = _merge(node, size, bits, places, keys, ranked, values, used, starts, visited, lengths, loads)
    return np.int64(used) - opening


def walk(
    nodes: range,
    position: Tensor,
    transitions: tuple[Tensor, Tensor, Tensor, Tensor | None],
    num_walks: int,
    survival: Tensor,
    offset: int,
    antithetic: bool,
    coupled: bool,
    repelling: bool,
    importance: bool,
    merge: bool = True,
) -> tuple[Tensor, ...]:
    r"""Samples walks on the CPU from a range of nodes, given the position of each in its graph, the fields :obj:`first` and
    :obj:`edges` of :class:`~pyg_topomask.walks.steps.Transitions`, the bits of :obj:`edges` as factors, and :obj:`cumulative`.
    :obj:`offset` is what the seed adds to the counters. The second walker of a pair halts at other times if they are
    :obj:`antithetic`, and is long where the first is short if they are :obj:`coupled`. Returns start, visited node, hops and
    load of each visit. With :obj:`merge`, visits to the same node after the same number of hops are added up, and sorted.
    Otherwise, also returns twice the edge before each visit, plus one if the walker goes on.
    Raises an error if node, hops and index of a visit do not fit into 63 bits.
    """
    first, edges, factor, targets = transitions
    longest = survival.numel() - 1
    width = 1 + num_walks * longest
    bits, places = longest.bit_length(), width.bit_length()
    num_nodes = first.size(0)
    if num_nodes.bit_length() + bits + places > 63:
        raise ArgumentError(
            'num_walks',
            f'{num_walks} of up to {longest} hops from {num_nodes} nodes',
            'numbers with fewer than 2**63 nodes times hops times visits of a node',
        )
    index = np.int32 if first.dtype == torch.int32 else np.int64
    # Four consecutive numbers per edge: Numba multiplies for two indices, and shifts for one.
    tables = [tensor.contiguous().numpy() for tensor in (first, edges.flatten(), factor.flatten(), position)]
    probability, tiny = survival.numpy(), torch.finfo(survival.dtype).tiny
    halting = (1.0 - survival[1:] / survival[:-1].clamp(min=tiny)).numpy() if antithetic else probability[:0]
    ratio = (survival[:-1] / survival[1:]).to(factor.dtype).numpy() if importance else tables[2][:0]
    cumulative = np.empty(0) if targets is None else targets.contiguous().numpy()
    counters = np.uint64(offset & ((1 << 64) - 1))

    num_shares = _SHARES * torch.get_num_threads() if len(nodes) * width > _ALONE else 1
    shares = list(pairwise(len(nodes) * share // num_shares for share in range(num_shares + 1)))

    def fill(room: Sequence[int]) -> tuple[list[np.ndarray], list[int]]:
        def run(share: tuple[int, int], opening: int, space: int) -> int:
            going = np.empty(num_walks, np.bool_) if repelling else None
            ranked = np.empty(width, np.int64) if merge else None
            ways = probability, halting, int(coupled), ratio, cumulative, going, ranked, counters
            filled = [*columns, None] if merge else columns
            return int(_walk(*share, nodes.start, num_walks, *tables, *ways, bits, places, opening, space, *filled))

        dtypes = [index, index, index, tables[2].dtype] + ([] if merge else [np.int64])
        columns = [np.empty(sum(room), dtype) for dtype in dtypes]
        return columns, in_threads(run, shares, accumulate(room[:-1], initial=0), room)

    # Every chunk has room for the likely number of visits plus those of one node, or for the largest possible number.
    sizes = [end - begin for begin, end in shares]
    room = [min(size * width, size + _likely(size * num_walks, probability) + width) for size in sizes]
    columns, used = fill(room)
    if min(used) < 0:
        room = [size * width for size in sizes]
        columns, used = fill(room)
    return tuple(map(torch.from_numpy, _close_gaps(columns, room, used)))


def _close_gaps(columns: list[np.ndarray], room: Sequence[int], used: Sequence[int]) -> list[np.ndarray]:
    r"""Moves written parts of columns to the front. Copies a column that would keep more than twice its memory."""
    *sources, size = accumulate(room, initial=0)
    *targets, total = accumulate(used, initial=0)
    for column in columns:
        for source, target, size_used in zip(sources, targets, used, strict=True):
            if source != target:
                column[target : target + size_used] = column[source : source + size_used]
    return [column[:total].copy() if 2 * total < size else column[:total] for column in columns]


def _likely(num_walks: int, survival: np.ndarray) -> int:
    r"""Returns the mean number of hops plus six standard deviations. Walks exceed it with a probability of about 1e-9."""
    hops = np.arange(1, len(survival))
    mean, square = float(survival[1:].sum()), float(((2 * hops - 1) * survival[1:]).sum())
    return math.ceil(num_walks * mean + 6 * math.sqrt(num_walks * max(0.0, square - mean**2)))
