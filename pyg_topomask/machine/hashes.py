r"""The hashes of the edges of each graph of a batch, as machine code: one pass, which takes no longer than reading them."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from pyg_topomask.machine.compiled import compiled
from pyg_topomask.machine.threads import array_of
from pyg_topomask.machine.walk import splitmix


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
    r"""Returns :attr:`pyg_topomask.graphs.Graph.fingerprint`, or :attr:`structure` without weights.

    Args:
        edge_index (torch.Tensor): The edges, :obj:`[2, E]`.
        weight (torch.Tensor, optional): Their weights in float32, :obj:`[E]`.
        graph (torch.Tensor): The graph of each node, :obj:`[N]`.
        ptr (torch.Tensor): The first node of each graph, and the number of nodes, :obj:`[B + 1]`.
    """
    source, target = edge_index.long().contiguous().numpy()
    out = np.empty((len(ptr) - 1, 3), np.int64)
    weights = None if weight is None else array_of(weight)
    _hash(source, target, weights, None if weights is None else weights.view(np.int32), array_of(graph), array_of(ptr), out)
    return torch.from_numpy(out)
