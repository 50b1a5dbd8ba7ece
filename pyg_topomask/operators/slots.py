r"""Some positions in every graph of a batch, at which rows of masks are formed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from pyg_topomask.graphs.segments import SegmentGroup

__all__ = ['Slots']


@dataclass(frozen=True)
class Slots:
    r"""The nodes at the positions from :obj:`start` to before :obj:`stop` in each graph.

    Args:
        position (torch.Tensor): The position of each node in its graph, :obj:`[N]`.
        groups (sequence of SegmentGroup): All graphs, padded to common sizes.
        start (int): The first position.
        stop (int): The position after the last.
    """

    position: Tensor
    groups: Sequence[SegmentGroup]
    start: int
    stop: int

    @property
    def range(self) -> Tensor:
        r"""The positions, :obj:`[S]`."""
        return torch.arange(self.start, self.stop, device=self.position.device)

    def units(self, dtype: torch.dtype) -> Tensor:
        r"""Returns whether each node is at each of the positions, as numbers, :obj:`[N, S]`."""
        return (self.position.unsqueeze(1) == self.range).to(dtype)

    @property
    def nodes(self) -> Tensor:
        r"""The node at each position in the graph of each node, :obj:`[N, S]`; any node beyond the graph."""
        first = torch.arange(self.position.numel(), device=self.position.device) - self.position
        return (first.unsqueeze(1) + self.range).clamp_(max=self.position.numel() - 1)

    def repeated(self, times: int) -> Slots:
        r"""Returns the same positions in several copies of the graphs, the first copy first, without groups."""
        return Slots(self.position.repeat(times), (), self.start, self.stop)
