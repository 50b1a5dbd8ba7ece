r"""An order of the nodes of a large graph in which neighbors are near in memory."""

from __future__ import annotations

import numpy as np
import scipy
import torch
from torch import Tensor

# Nodes from which the features of a graph exceed the cache of a core, in which those of so many neighbors in memory stay.
_LARGE, _NEAR = 2**16, 2**12
# The least share of the edges between distant nodes for which an order is looked for, and what it has to make of them at most.
_FAR, _LEFT = 0.5, 0.5


def near_order(edge_index: Tensor, num_nodes: int) -> Tensor | None:
    r"""Returns the node in each place of the order of reverse Cuthill and McKee, :obj:`[N]`, or :obj:`None` if the graph is
    small, or if few edges come nearer by it.
    """
    if num_nodes < _LARGE or (before := _share_of_far(edge_index)) < _FAR:
        return None
    row, col = edge_index.numpy()
    matrix = scipy.sparse.csr_array((np.ones(row.size, dtype=bool), (row, col)), shape=(num_nodes, num_nodes))
    order = torch.from_numpy(scipy.sparse.csgraph.reverse_cuthill_mckee(matrix).astype(np.int64))
    return order if _share_of_far(inverse(order)[edge_index.long()]) <= _LEFT * before else None


def inverse(order: Tensor) -> Tensor:
    r"""Returns the inverse of a permutation."""
    places = torch.arange(order.numel(), device=order.device, dtype=order.dtype)
    return torch.empty_like(order).index_copy_(0, order.long(), places)


def _share_of_far(edge_index: Tensor) -> float:
    source, target = edge_index
    return float(((source - target).abs() > _NEAR).float().mean()) if source.numel() > 0 else 0.0
