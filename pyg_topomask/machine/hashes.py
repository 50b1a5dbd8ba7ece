r"""Hashes as machine code: of integers, and of the edges of each graph of a batch."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from pyg_topomask.machine.compiled import compiled
from pyg_topomask.machine.threads import array_of

_SHIFT30, _SHIFT27, _SHIFT31 = (np.uint64(bits) for bits in (30, 27, 31))
_GOLDEN, _FIRST, _SECOND = (np.uint64(number) for number in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))


@compiled
def splitmix(x):  # type: ignore[no-untyped-def]
    r"""Hashes an unsigned integer, as :func:`pyg_topomask.utils.splitmix.splitmix`."""
    x += _GOLDEN
    x = (x ^ (x >> _SHIFT30)) * _FIRST
    x = (x ^ (x >> _SHIFT27)) * _SECOND
    return x ^ (x >> _SHIFT31)


@compiled
def _hash(source, target, weight, bits, graph, ptr, out):  # type: ignore[no-untyped-def]
    for index in range(len(out)):
        out[index, 0], out[index, 1], out[index, 2] = ptr[index + 1] - ptr[index], 0, 0
    for edge in range(len(source)):
        index = graph[source[edge]]
        x = ((source[edge] - ptr[index]) << 32) ^ (target[edge] - ptr[index])
        if weight is not None and weight[edge] != 1:
            x = np.int64(splitmix(np.uint64(x))) ^ np.int64(bits[edge])
        out[index, 1] += 1
        out[index, 2] += np.int64(splitmix(np.uint64(x)))


def edge_hashes(edge_index: Tensor, weight: Tensor | None, graph: Tensor, ptr: Tensor) -> Tensor:
    r"""Returns :attr:`pyg_topomask.graphs.Graph.fingerprint`, or :attr:`structure` without weights. Weights are in float32."""
    source, target = edge_index.long().contiguous().numpy()
    out = np.empty((len(ptr) - 1, 3), np.int64)
    weights = None if weight is None else array_of(weight)
    _hash(source, target, weights, None if weights is None else weights.view(np.int32), array_of(graph), array_of(ptr), out)
    return torch.from_numpy(out)
