r"""Linear attention under functions of the distance in trees, as machine code.

The products of features and values go through the trees a few features at a time: once from the leaves to the roots, which adds
up subtrees, and once back. Sums are in float64, because those along long paths and those with differences would lose digits.

Loops in plain Numba, with passes joined, took 1.0 to 1.5 times as long on 128 trees of 30 nodes, and 1.3 to 1.6 times on one of
20,000; the same passes as here took 1.4 to 1.5 times as long on one of 100,000 (16 features and channels, 4 heads, Zen 5).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from pyg_topomask.graphs.tree_state import TreeFactors
from pyg_topomask.machine.compiled import compiled
from pyg_topomask.machine.threads import Array, array_of, in_threads
from pyg_topomask.machine.vectors import dot_rows, multiply, multiply_add, written

T = TypeVar('T')

# Numbers of products that stay in cache, and of those of large trees; features of the latter; nodes of small trees together.
_NEAR, _FAR, _FEATURES, _NODES = 2**14, 2**23, 4, 256
# Sums over subtrees that are kept at a time.
_MOST = 2**26
# Columns of a plain product that go through the trees together.
_COLUMNS = 64


def _combine(write, x, y, out, alpha, beta, x_start, y_start, out_start, columns, add):
    terms = [(write.filled(alpha, write.lanes), write.at(x, x_start))]
    if add:
        terms.append((write.filled(beta, write.lanes), write.at(y, y_start)))
    target = write.at(out, out_start)

    def of_columns(column: list[Any], mask: Any) -> None:
        for each in column:
            first, *rest = (write.multiply(factor, write.load(write.at(row, each), write.lanes, mask)) for factor, row in terms)
            write.store(write.add(first, *rest) if rest else first, write.at(target, each), mask)

    write.for_wide(columns, of_columns)


# alpha times a row of x, without and with beta times a row of y.
_scaled, _combined = written(_combine, add=False), written(_combine, add=True)


@compiled
def _follow(parent, child, sibling, order, above):
    r"""Writes the nodes tree by tree, each before the nodes below it, and the place of the parent of each."""
    position, place = np.empty(len(parent), np.int64), 0
    for root in range(len(parent)):
        node = root if parent[root] == root else -1
        while node >= 0:
            position[node], order[place] = place, node
            above[place] = position[parent[node]]
            place += 1
            if child[node] >= 0:
                node = child[node]
                continue
            while node != root and sibling[node] < 0:
                node = parent[node]
            node = sibling[node] if node != root else -1


@compiled
def _preorder(parent, order, above):
    r"""Writes the nodes as :func:`_follow` does, the largest subtree below each node last."""
    child, sibling = np.full(len(parent), -1), np.full(len(parent), -1)
    for node in range(len(parent)):
        if parent[node] != node:
            sibling[node], child[parent[node]] = child[parent[node]], node
    _follow(parent, child, sibling, order, above)
    size, largest = np.ones(len(parent), np.int64), np.full(len(parent), -1)
    for i in range(len(parent) - 1, -1, -1):
        node, upper = order[i], order[above[i]]
        if node != upper:
            size[upper] += size[node]
            if largest[upper] < 0 or size[node] > size[largest[upper]]:
                largest[upper] = node
    child[:] = largest
    for node in range(len(parent)):
        upper = parent[node]
        if node == largest[upper]:
            sibling[node] = -1
        elif node != upper:
            sibling[node], child[upper] = child[upper], node
    _follow(parent, child, sibling, order, above)


@compiled
def _layout(above, distances):
    r"""Returns where the sums over the subtree of each node begin, one for each distance up to the height of the subtree; and
    the place of its sums over the tree, which are kept as long as a node below has not been reached.
    """
    nodes = len(above)
    height, child = np.zeros(nodes, np.int64), np.full(nodes, -1)
    start, slot = np.zeros(nodes + 1, np.int64), np.zeros(nodes, np.int64)
    for i in range(nodes - 1, -1, -1):
        if above[i] != i:
            height[above[i]] = max(height[above[i]], height[i] + 1)
            child[above[i]] = max(child[above[i]], i)
    for i in range(nodes):
        start[i + 1] = start[i] + min(height[i], distances - 1) + 1
        if above[i] != i:
            # The last node below takes the other place of the same level.
            slot[i] = slot[above[i]] ^ 1 if child[above[i]] == i else (slot[above[i]] | 1) + 1
    return start, slot


@compiled
def _read(x, order, head, heads, size, out):
    r"""Writes the rows of a head in the order of the trees, in float64."""
    for i in range(len(order)):
        source, target = (order[i] * heads + head) * size, i * size
        for column in range(size):
            out[target + column] = x[source + column]


@compiled
def _write(x, order, head, heads, size, out):
    r"""Writes back what :func:`_read` reads."""
    for i in range(len(order)):
        source, target = i * size, (order[i] * heads + head) * size
        for column in range(size):
            out[target + column] = x[source + column]


@compiled
def _climb(keys, values, decay, above, start, x, begin, width, features, channels, distances):
    r"""Writes the sums over the subtree of each node, of the products of some features and all values. For an exponential
    function, there is one, weighted. Otherwise, there is one for each distance.
    """
    nodes, columns = len(above), width * channels
    x[: start[nodes] * columns] = 0
    for i in range(nodes - 1, -1, -1):
        place, parent = start[i] * columns, start[above[i]] * columns
        multiply_add(keys, values, x, i * features + begin, 1, 0, i * channels, 0, place, channels, width, 1, channels)
        if above[i] != i and distances == 0:
            _combined(x, x, x, decay[i], 1.0, place, parent, parent, columns)
        elif above[i] != i:
            size = min(start[i + 1] - start[i], distances - 1) * columns
            _combined(x, x, x, 1.0, 1.0, place, parent + columns, parent + columns, size)


@compiled
def _pass_down(x, y, place, target, parent, decay, gain, columns):
    r"""Writes the weighted sum over the tree of a node, given that over its subtree, and that over the tree of its parent."""
    if target == parent:  # a root
        _scaled(x, x, y, 1.0, 0.0, place, 0, target, columns)
    else:
        _combined(x, y, y, gain, decay, place, parent, target, columns)


@compiled
def _pass_rings(x, place, count, y, target, parent, f, whole, out, columns):
    r"""Writes the sums over the nodes at each distance from a node, given those inside its subtree, and those at each distance
    from its parent; and their product with the function.
    """
    distances = len(f) - 1
    if target == parent:  # a root
        _scaled(x, x, y, 1.0, 0.0, place, 0, target, count * columns)
        y[target + count * columns : target + distances * columns] = 0
    else:
        # The nodes at a distance are those inside the subtree, and those closer by one to the parent that are not inside.
        inside = (count - 1) * columns
        _scaled(x, x, y, 1.0, 0.0, place, 0, target, columns)
        _combined(x, y, y, 1.0, 1.0, place + columns, parent, target + columns, inside)
        _scaled(y, y, y, 1.0, 0.0, parent + inside, 0, target + columns + inside, (distances - count) * columns)
        if distances > 2:
            closer = min(count, distances - 2) * columns
            _combined(x, y, y, -1.0, 1.0, place, target + 2 * columns, target + 2 * columns, closer)
    multiply(f, y, out, 0, 0, 1, target, columns, 0, 0, 1, distances, columns)
    if f[distances] != 0:
        _combined(whole, out, out, f[distances], 1.0, 0, 0, 0, columns)


@compiled
def _everything(keys, values, above, root, begin, width, features, channels, out):
    r"""Writes the sums over a whole tree."""
    end = root + 1
    while end < len(above) and above[end] != end:
        end += 1
    row = root * channels
    multiply(keys, values, out, root * features + begin, 1, features, row, channels, 0, channels, width, end - root, channels)


@compiled
def _sizes(start, slot, features, channels, distances):
    r"""Returns how many features go through the trees together, and the numbers of the sums over subtrees and trees."""
    nodes, of_trees = len(slot), (slot.max() + 2) * max(1, distances)
    numbers = max(1, channels) * max(start[nodes], of_trees)
    width = max(1, min(features, max(_NEAR // numbers, min(_FAR // numbers, _FEATURES))))
    return width, start[nodes] * width * channels, of_trees * width * channels


@compiled
def _forward(above, decay, gain, f, q, k, v, total, features, channels):
    distances = max(0, len(f) - 1)
    start, slot = _layout(above, max(1, distances))
    width, of_subtrees, of_trees = _sizes(start, slot, features, channels, distances)
    x, y, step = np.empty(of_subtrees), np.empty(of_trees), max(1, distances)
    product, whole = np.empty(width * channels), np.empty(width * channels)
    total[:] = 0
    for begin in range(0, features, width):
        part = min(width, features - begin)
        columns = part * channels
        _climb(k, v, decay, above, start, x, begin, part, features, channels, distances)
        for i in range(len(above)):
            source, target, parent = start[i] * columns, slot[i] * step * columns, slot[above[i]] * step * columns
            if distances > 0:
                if above[i] == i:
                    _everything(k, v, above, i, begin, part, features, channels, whole)
                _pass_rings(x, source, start[i + 1] - start[i], y, target, parent, f, whole, product, columns)
                out, place = product, 0
            else:
                _pass_down(x, y, source, target, parent, decay[i], gain[i], columns)
                out, place = y, target
            score, row = i * features + begin, i * channels
            multiply_add(q, out, total, score, 0, 1, place, channels, row, 0, 1, part, channels)


@compiled
def _backward(above, decay, gain, f, q, k, v, upstream, grad_q, grad_k, grad_v, crossing, grad_f, features, channels):
    distances = max(0, len(f) - 1)
    start, slot = _layout(above, max(1, distances))
    width, of_subtrees, of_trees = _sizes(start, slot, features, channels, distances)
    x, grad_x, y, grad_y = np.empty(of_subtrees), np.empty(of_subtrees), np.empty(of_trees), np.empty(of_trees)
    size, step, dots = width * channels, max(1, distances), np.empty(max(3, distances + 1))
    product, grad_product, given = np.empty(size), np.empty(size), np.empty(size)
    whole, grad_whole = np.empty(size), np.empty(size)
    grad_v[:] = 0
    for begin in range(0, features, width):
        part = min(width, features - begin)
        columns = part * channels
        _climb(k, v, decay, above, start, x, begin, part, features, channels, distances)
        _climb(q, upstream, decay, above, start, grad_x, begin, part, features, channels, distances)
        for i in range(len(above)):
            source, target, parent = start[i] * columns, slot[i] * step * columns, slot[above[i]] * step * columns
            score, row, count = i * features + begin, i * channels, start[i + 1] - start[i]
            if distances > 0:
                if above[i] == i:
                    _everything(k, v, above, i, begin, part, features, channels, whole)
                    _everything(q, upstream, above, i, begin, part, features, channels, grad_whole)
                _pass_rings(x, source, count, y, target, parent, f, whole, product, columns)
                _pass_rings(grad_x, source, count, grad_y, target, parent, f, grad_whole, grad_product, columns)
                if len(grad_f) > 0:
                    multiply(q, upstream, given, score, 1, 0, row, 0, 0, channels, part, 1, channels)
                    dot_rows(y, given, dots, target, columns, 0, 0, 0, 1, distances, columns)
                    dot_rows(whole, given, dots, 0, 0, 0, 0, distances, 1, 1, columns)
                    for distance in range(distances + 1):
                        grad_f[distance] += dots[distance]
                out, grad_out, place = product, grad_product, 0
            else:
                _pass_down(x, y, source, target, parent, decay[i], gain[i], columns)
                _pass_down(grad_x, grad_y, source, target, parent, decay[i], gain[i], columns)
                if len(crossing) > 0 and above[i] != i:
                    # An edge adds its length to the distances of the pairs that it separates: sums over the tree at its upper
                    # end, less what they have of the subtree below it.
                    dot_rows(x, grad_y, dots, source, 0, parent, 0, 0, 1, 1, columns)
                    dot_rows(grad_x, y, dots, source, 0, parent, 0, 1, 1, 1, columns)
                    dot_rows(x, grad_x, dots, source, 0, source, 0, 2, 1, 1, columns)
                    crossing[i] += decay[i] * (dots[0] + dots[1] - 2 * decay[i] * dots[2])
                out, grad_out, place = y, grad_y, target
            dot_rows(out, upstream, grad_q, place, channels, row, 0, score, 1, part, channels)
            dot_rows(grad_out, v, grad_k, place, channels, row, 0, score, 1, part, channels)
            multiply_add(k, grad_out, grad_v, score, 0, 1, place, channels, row, 0, 1, part, channels)


def preorder(parent: Array) -> tuple[Tensor, Tensor]:
    r"""Returns the nodes, parents before children and each subtree at a stretch, and the places of their parents."""
    order, above = np.empty_like(parent), np.empty_like(parent)
    _preorder(parent, order, above)
    return torch.from_numpy(order), torch.from_numpy(above)


def attend_tree(mask: TreeFactors, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    r"""Returns the sums of the values, weighted by scores and mask, :obj:`[N, H, d]`."""
    parts = _parts_of_values(mask, v)
    if len(parts) > 1:
        return torch.cat([attend_tree(mask, q, k, part) for part in parts], 2)
    q, k, v = (x.contiguous() for x in (q, k, v))  # each part of the trees would copy them
    total = v.new_empty(v.shape)

    def run(order: Array, part: tuple[Array, ...], head: int) -> None:
        out = _Rows(total, order, head)
        _forward(*part, *(_Rows(x, order, head).read() for x in (q, k, v)), out.array, q.size(2), v.size(2))
        out.write()

    _in_parts(run, mask, q.size(1))
    return total


def attend_tree_backward(
    mask: TreeFactors, q: Tensor, k: Tensor, v: Tensor, upstream: Tensor, learn: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    r"""Returns the gradients of queries, keys and values, and of what the mask learns, if :obj:`learn`."""
    parts = _parts_of_values(mask, v)
    if len(parts) > 1:
        pairs = zip(parts, upstream.split(parts[0].size(2), 2), strict=True)
        results = [attend_tree_backward(mask, q, k, part, grad, learn) for part, grad in pairs]
        of_q, of_k, of_v, of_mask = zip(*results, strict=True)
        return torch.stack(of_q).sum(0), torch.stack(of_k).sum(0), torch.cat(of_v, 2), torch.stack(of_mask).sum(0)
    of_function = mask.f.size(1) > 0
    q, k, v, upstream = (x.contiguous() for x in (q, k, v, upstream))
    grads = [x.new_empty(x.shape) for x in (q, k, v)]
    crossing = torch.zeros(q.size(0), q.size(1), 1 if learn and not of_function else 0, dtype=torch.float64)

    def run(order: Array, part: tuple[Array, ...], head: int) -> tuple[int, Array]:
        outputs, grad_f = [_Rows(x, order, head) for x in (*grads, crossing)], np.zeros(mask.f.size(1) if learn else 0)
        inputs = (_Rows(x, order, head).read() for x in (q, k, v, upstream))
        _backward(*part, *inputs, *(out.array for out in outputs), grad_f, q.size(2), v.size(2))
        for out in outputs:
            out.write()
        return head, grad_f

    learned = torch.zeros_like(mask.f)
    for head, grad_f in _in_parts(run, mask, q.size(1)):
        if grad_f.size > 0:
            learned[head] += torch.from_numpy(grad_f)
    grad_q, grad_k, grad_v = grads
    return grad_q, grad_k, grad_v, learned if of_function else crossing.squeeze(-1)


def tree_product(mask: TreeFactors, x: Tensor) -> Tensor:
    r"""Returns the product of the mask and :obj:`x`, :obj:`[N, H, c]`."""
    ones = x.new_ones(*x.shape[:2], 1)
    return torch.cat([attend_tree(mask, ones, ones, part) for part in x.split(_COLUMNS, 2)], 2)


def tree_product_backward(mask: TreeFactors, x: Tensor, grad: Tensor, learn: bool) -> tuple[Tensor, Tensor]:
    r"""Returns the gradient of :obj:`x` in :func:`tree_product`, and the last one of :func:`attend_tree_backward`."""
    ones, parts = x.new_ones(*x.shape[:2], 1), zip(x.split(_COLUMNS, 2), grad.split(_COLUMNS, 2), strict=True)
    results = [attend_tree_backward(mask, ones, ones, part, grad_part, learn)[2:] for part, grad_part in parts]
    return torch.cat([grad_x for grad_x, _ in results], 2), torch.stack([learned for _, learned in results]).sum(0)


def _parts_of_values(mask: TreeFactors, v: Tensor) -> tuple[Tensor, ...]:
    r"""Cuts the values so that the sums over subtrees fit in memory, one for each distance on long paths."""
    sums = max(1, int(_layout(mask.above.numpy(), max(1, mask.f.size(1) - 1))[0][-1]))
    return v.split(max(1, _MOST // sums), 2)


class _Rows:
    r"""The rows of a head of :obj:`[N, H, size]` at some nodes, in float64."""

    def __init__(self, x: Tensor, order: Array, head: int) -> None:
        self.whole, self.order, self.position = array_of(x), order, (head, *x.shape[1:])
        self.array = np.zeros(len(order) * x.size(2))

    def read(self) -> Array:
        _read(self.whole, self.order, *self.position, self.array)
        return self.array

    def write(self) -> None:
        _write(self.array, self.order, *self.position, self.whole)


def _in_parts(run: Callable[[Array, tuple[Array, ...], int], T], mask: TreeFactors, heads: int) -> list[T]:
    r"""Calls a function for each head of each large tree, and of small ones taken together."""
    order, above = array_of(mask.order), array_of(mask.above)
    if len(above) == 0:
        return []
    ends = np.append(np.flatnonzero(above == np.arange(len(above)))[1:], len(above))
    group = (ends - 1) // _NODES
    bounds = [0, *ends[np.append(group[1:] > group[:-1], True)].tolist()]

    def run_part(first: int, last: int, head: int) -> T:
        decay, gain = (array_of(factors[head])[first:last] for factors in (mask.decay, mask.gain))
        return run(order[first:last], (above[first:last] - first, decay, gain, array_of(mask.f[head])), head)

    return in_threads(run_part, *zip(*((*part, head) for part in pairwise(bounds) for head in range(heads)), strict=True))
