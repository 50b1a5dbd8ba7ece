r"""The edges of a grid."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor


def grid_edges(shape: Sequence[int], device: torch.device | None = None) -> Tensor:
    r"""Returns the edges between neighbors along each dimension of a grid of the given shape, in both directions, sorted by
    source and target. The nodes are in row-major order.

    Example:
        >>> grid_edges((2, 2))
        tensor([[0, 0, 1, 1, 2, 2, 3, 3],
                [1, 2, 0, 3, 0, 3, 1, 2]])
    """
    nodes = torch.arange(math.prod(shape), device=device).view(*shape)
    steps = [
        torch.stack([nodes.narrow(axis, 0, size - 1), nodes.narrow(axis, 1, size - 1)]).flatten(1)
        for axis, size in enumerate(shape)
        if size > 1
    ]
    pairs = torch.cat([nodes.new_empty(2, 0), *steps], dim=1)
    edge_index = torch.cat([pairs, pairs.flip(0)], dim=1)
    return edge_index[:, torch.argsort(edge_index[0] * max(nodes.numel(), 1) + edge_index[1])]
