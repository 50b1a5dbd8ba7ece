r"""The two passes over trees as machine code, where Numba is installed."""

from __future__ import annotations

import torch
from numba import njit
from torch import Tensor

from pyg_topomask.ops.numba_backend import in_threads

__all__ = ['sweep']

_compile = njit(nogil=True, cache=True, error_model='numpy')
# Numbers that one thread sums alone.
_ALONE = 2**16


@_compile
def _sweep(parent, decay, gain, inside, product, head, sums):  # type: ignore[no-untyped-def]
    size, channels = sums.shape
    for node in range(size):
        for channel in range(channels):
            sums[node, channel] = inside[node, head, channel]
    for node in range(size - 1, -1, -1):
        above, factor = parent[node], decay[node, head]
        if above != node:
            for channel in range(channels):
                sums[above, channel] += factor * sums[node, channel]
    # Going down, the sums over subtrees become those over trees.
    for node in range(size):
        above, factor, own = parent[node], decay[node, head], gain[node, head]
        for channel in range(channels):
            inside[node, head, channel] = sums[node, channel]
            if above != node:
                sums[node, channel] = factor * sums[above, channel] + own * sums[node, channel]
            product[node, head, channel] = sums[node, channel]


def sweep(x: Tensor, decay: Tensor, gain: Tensor, parent: Tensor) -> tuple[Tensor, Tensor]:
    r"""Returns the sums over the subtree and over the tree of each node, on the CPU. Parents must come before their children.

    Args:
        x (torch.Tensor): The terms, :obj:`[N, H, c]`, which the sums over subtrees overwrite.
        decay (torch.Tensor): The factor of the edge from each node to its parent, in float64, :obj:`[N, H, 1]`.
        gain (torch.Tensor): The share of the subtree in the sum over the tree, :obj:`[N, H, 1]`.
        parent (torch.Tensor): The parent of each node; of a root, itself, :obj:`[N]`.
    """
    product = torch.empty_like(x)
    num_nodes, heads, channels = x.shape
    given = [own.numpy() for own in (parent, decay.squeeze(-1), gain.squeeze(-1), x, product)]

    def work(head: int) -> None:
        # In float64: along a path rounding would add up.
        sums = torch.empty(num_nodes, channels, dtype=torch.float64)
        _sweep(*given, head, sums.numpy())

    if x.numel() > _ALONE:
        in_threads(work, range(heads))
    else:
        for head in range(heads):
            work(head)
    return x, product
