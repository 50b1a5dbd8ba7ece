r"""Graphs of a batch side by side, padded in groups of about one size."""

from __future__ import annotations

import torch
from torch import Tensor

from pyg_topomask.ops.padding import next_power_of_two

__all__ = ['Group', 'Groups']


class Group:
    r"""Graphs of about one size side by side, padded to :obj:`width` nodes.

    Args:
        first (torch.Tensor): The first node of each graph, :obj:`[G]`.
        count (torch.Tensor): The number of nodes of each, :obj:`[G]`.
        width (int): The number of slots :math:`n` of each graph.
        num_nodes (int): The number of nodes of the batch :math:`N`.
        device (torch.device): Where the nodes are; the numbers above are on the CPU.
    """

    def __init__(self, first: Tensor, count: Tensor, width: int, num_nodes: int, device: torch.device) -> None:
        slot, count = torch.arange(width), count.unsqueeze(1)
        self.width = width
        self.padding = (slot >= count).to(device)  # [G, n]
        # Padding repeats the last node of its own graph, so that nothing meets what another graph holds.
        self.source = (first.unsqueeze(1) + torch.minimum(slot, count - 1)).flatten().to(device)
        self.target = torch.where(self.padding.flatten(), num_nodes, self.source)

    def take(self, x: Tensor) -> Tensor:
        r"""Returns :obj:`[H, G, n, c]` for :obj:`x` of shape :obj:`[N, H, c]`."""
        found = x.flatten(0, 1).index_select(0, _of_heads(self.source, x))
        return found.view(x.size(1), -1, self.width, x.size(2))

    def put(self, x: Tensor, own: Tensor) -> None:
        r"""Writes :obj:`[H, G, n, c]` to :obj:`x`, :obj:`[N + 1, H, c or more]`, of which the last row takes the padding."""
        x.flatten(0, 1)[:, : own.size(-1)].index_copy_(0, _of_heads(self.target, x), own.flatten(0, 2))


def _of_heads(node: Tensor, x: Tensor) -> Tensor:
    return (node * x.size(1) + torch.arange(x.size(1), device=node.device).unsqueeze(1)).flatten()


class Groups:
    r"""The graphs of a batch in groups of about one size.

    Args:
        batch (torch.Tensor): The graph of each node, :obj:`[N]`.
        num_graphs (int): The number of graphs.
        most (int, optional): The most graphs in a group. (default: :obj:`None`, any number)
    """

    def __init__(self, batch: Tensor, num_graphs: int, most: int | None = None) -> None:
        count = torch.bincount(batch, minlength=num_graphs)
        #: The place of each node in its graph, :obj:`[N]`.
        self.position = torch.arange(batch.numel(), device=batch.device) - (count.cumsum(0) - count)[batch]
        count = count.cpu()  # a GPU is waited for once
        first = count.cumsum(0) - count
        #: The number of nodes of the largest graph, or 1.
        self.largest = int(count.max()) if batch.numel() > 0 else 1
        # Widths of 4, 6, 8, 12, 16, 24 and so on: padding at most half of a graph.
        power = next_power_of_two(count.clamp(min=4))
        width = torch.where(4 * count <= 3 * power, 3 * power // 4, power).clamp(max=self.largest)
        width, first, count = (x[count > 0] for x in (width, first, count))
        self.groups: list[Group] = []
        for own in width.unique().tolist():
            starts, counts = (x[width == own].split(most or num_graphs) for x in (first, count))
            parts = zip(starts, counts, strict=True)
            self.groups += [Group(start, size, own, batch.numel(), batch.device) for start, size in parts]
