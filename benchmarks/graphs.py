r"""The graphs that benchmarks run on."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ['random_graph', 'ring']


def ring(size: int) -> Tensor:
    node = torch.arange(size)
    forward = torch.stack([node, (node + 1) % size])
    return torch.cat([forward, forward.flip(0)], dim=1)


def random_graph(size: int, degree: int = 4) -> Tensor:
    r"""Undirected edges with random ends, so that nodes have :obj:`degree` neighbors on average."""
    forward = torch.randint(size, (2, degree * size // 2), generator=torch.Generator().manual_seed(0))
    return torch.cat([forward, forward.flip(0)], dim=1)
