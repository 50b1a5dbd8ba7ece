r"""The two passes over trees as machine code, where Numba is installed."""

from __future__ import annotations

import torch
from numba import njit
from torch import Tensor

__all__ = ['sweep']

_compile = njit(nogil=True, cache=True, error_model='numpy')


@_compile
def _sweep(parent, decay, gain, inside, product):  # type: ignore[no-untyped-def]
    size, heads, channels = inside.shape
    for node in range(size - 1, -1, -1):
        above = parent[node]
        if above != node:
            for head in range(heads):
                factor = decay[node, head]
                for channel in range(channels):
                    inside[above, head, channel] += factor * inside[node, head, channel]
    for node in range(size):
        above = parent[node]
        for head in range(heads):
            factor, own = decay[node, head], gain[node, head]
            for channel in range(channels):
                if above == node:
                    product[node, head, channel] = inside[node, head, channel]
                else:
                    product[node, head, channel] = factor * product[above, head, channel] + own * inside[node, head, channel]


def sweep(x: Tensor, decay: Tensor, gain: Tensor, parent: Tensor) -> tuple[Tensor, Tensor]:
    r"""Returns the sums over the subtree and over the tree of each node, on the CPU. Parents must come before their children.

    Args:
        x (torch.Tensor): The terms, :obj:`[N, H, c]`, which the sums over subtrees overwrite.
        decay (torch.Tensor): The factor of the edge from each node to its parent, :obj:`[N, H, 1]`.
        gain (torch.Tensor): The share of the subtree in the sum over the tree, :obj:`[N, H, 1]`.
        parent (torch.Tensor): The parent of each node; of a root, itself, :obj:`[N]`.
    """
    product = torch.empty_like(x)
    _sweep(parent.numpy(), *(own.squeeze(-1).numpy() for own in (decay, gain)), x.numpy(), product.numpy())
    return x, product
