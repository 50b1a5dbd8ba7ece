r"""The base class of feature maps."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor

from pyg_topomask.graphs.segments import Segments
from pyg_topomask.utils.checks import check_size

__all__ = ['FeatureMap']


class FeatureMap(torch.nn.Module, ABC):
    r"""A map :math:`\phi : \mathbb{R}^d \to \mathbb{R}^m`. The attention score is :math:`\phi(\mathbf{q})^{\top}
    \phi(\mathbf{k})`.

    Args:
        channels (int): The channels :math:`d` of a head.
    """

    #: Whether the features of a node depend on the other nodes of its graph beyond a factor that attention cancels.
    reads_all_nodes = False

    def __init__(self, channels: int) -> None:
        super().__init__()
        check_size(channels=channels)
        self.channels = channels

    @abstractmethod
    def forward(self, q: Tensor, k: Tensor, segments: Segments | None = None) -> tuple[Tensor, Tensor]:
        r"""Maps queries and keys.

        Args:
            q (torch.Tensor): Queries, :obj:`[N, H, d]`. On one graph, there may be fewer queries than keys.
            k (torch.Tensor): Keys, :obj:`[N, H, d]`.
            segments (Segments, optional): The division of the nodes into graphs. (default: :obj:`None`, one graph)

        Returns:
            tuple of torch.Tensor: Their features, :obj:`[N, H, m]` each.
        """

    def reset_parameters(self) -> None:
        r"""Resets parameters and redraws random projections."""

    def redraw(self, generator: torch.Generator | None = None) -> None:
        r"""Draws new random projections, as Performers do during training. Maps without projections do not change.

        Args:
            generator (torch.Generator, optional): The source of random numbers, on any device. (default: :obj:`None`)
        """

    def extra_repr(self) -> str:
        return str(self.channels)


def graph_max(x: Tensor, segments: Segments | None) -> Tensor:
    r"""The largest entry of each graph and head, at each of its nodes, for :obj:`x` of shape :obj:`[N, H]`."""
    if x.numel() == 0:
        return x
    return x.amax(0, keepdim=True).expand_as(x) if segments is None else segments.maximum(x)
