r"""Anchors of each graph, and the closest anchor of each node."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from pyg_topomask.graphs.segments import Segments
from pyg_topomask.ops.knn import check_positions
from pyg_topomask.utils.checks import check_whole


class Anchors(NamedTuple):
    r"""Which nodes are anchors, :obj:`[N]`, the nodes that are not, :obj:`[n]`, and the closest anchor of each of these,
    :obj:`[n]`.
    """

    is_anchor: Tensor
    others: Tensor
    closest: Tensor


def farthest_anchors(pos: Tensor, num: int, segments: Segments) -> Anchors:
    r"""Chooses anchors by farthest point sampling in each graph: the first is the node that is farthest from the mean position,
    and each other one is the farthest from the anchors before it. In a tie, it is the first node. In graphs with at most
    :obj:`num` nodes, all nodes are anchors. Time is :math:`O(N \cdot num)`, for all graphs at once.

    Args:
        pos (torch.Tensor): The positions, :obj:`[N, D]`. No gradient flows through the choice.
        num (int): The largest number of anchors of a graph.
        segments (Segments): The division of the nodes into graphs.

    Example:
        >>> farthest_anchors(torch.tensor([[0.0], [1.0], [5.0], [9.0]]), 2, Segments(4))
        Anchors(is_anchor=tensor([ True, False, False,  True]), others=tensor([1, 2]), closest=tensor([0, 3]))
    """
    check_positions(pos)
    check_whole(1, num=num)
    node = torch.arange(pos.size(0), device=pos.device)
    if pos.size(0) == 0:
        return Anchors(node.bool(), node, node)
    pos = pos.detach().double()  # so that sums in another order choose the same nodes
    index = segments.index
    mean = pos.new_zeros(segments.num_graphs, pos.size(1)).index_add(0, index, pos) / segments.sizes.clamp(min=1).unsqueeze(1)
    far = (pos - mean[index]).square().sum(1)
    distance = torch.full_like(far, torch.inf)
    is_anchor, closest = torch.zeros_like(node, dtype=torch.bool), node
    for _ in range(min(num, segments.largest)):
        # Anchors are never chosen again, even if points coincide.
        chosen = _first_largest(far.masked_fill(is_anchor, -1.0), node, segments)[index]
        free = ~is_anchor[chosen]
        from_chosen = (pos - pos[chosen]).square().sum(1)
        closer = free & (from_chosen < distance)
        closest = torch.where(closer, chosen, closest)
        distance = torch.where(closer, from_chosen, distance)
        is_anchor = is_anchor.index_fill(0, chosen, True)
        far = distance
    others = (~is_anchor).nonzero().squeeze(1)
    return Anchors(is_anchor, others, closest[others])


def _first_largest(value: Tensor, node: Tensor, segments: Segments) -> Tensor:
    r"""Returns the first node with the largest value of each graph, :obj:`[B]`, and 0 for empty graphs."""
    if segments.batch is None:
        return value.argmax().unsqueeze(0)
    largest = segments.maximum(value.unsqueeze(1)).squeeze(1)
    candidates = node.masked_fill(value < largest, value.size(0))
    first = node.new_full((segments.num_graphs,), value.size(0)).scatter_reduce(0, segments.index, candidates, 'amin')
    return first.masked_fill(segments.sizes == 0, 0)
