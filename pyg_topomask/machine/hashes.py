r"""The hashes of the edges of each graph of a batch, as machine code: one pass, which takes no longer than reading them."""

from __future__ import annotations

import numpy as np
from torch import Tensor

from pyg_topomask.machine.compiled import compiled
from pyg_topomask.machine.threads import Array, array_of


@compiled
def _hash(source, target, graph, ptr, out):  # type: ignore[no-untyped-def]
    golden, first, second = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
    for index in range(len(out)):
        out[index, 0], out[index, 1], out[index, 2] = ptr[index + 1] - ptr[index], 0, 0
    for edge in range(len(source)):
        index = graph[source[edge]]
        x = np.uint64(((source[edge] - ptr[index]) << 32) ^ (target[edge] - ptr[index])) + golden
        x = (x ^ (x >> np.uint64(30))) * first
        x = (x ^ (x >> np.uint64(27))) * second
        out[index, 1] += 1
        out[index, 2] += np.int64(x ^ (x >> np.uint64(31)))


def edge_hashes(edge_index: Tensor, graph: Tensor, ptr: Tensor) -> Array:
    r"""Returns :attr:`pyg_topomask.graphs.Graph.structure`.

    Args:
        edge_index (torch.Tensor): The edges, :obj:`[2, E]`.
        graph (torch.Tensor): The graph of each node, :obj:`[N]`.
        ptr (torch.Tensor): The first node of each graph, and the number of nodes, :obj:`[B + 1]`.
    """
    source, target = edge_index.long().contiguous().numpy()
    out = np.empty((len(ptr) - 1, 3), np.int64)
    _hash(source, target, array_of(graph), array_of(ptr), out)
    return out
