r"""Masks given by their factors."""

from __future__ import annotations

from functools import singledispatch

from torch import Tensor

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.graphs.segments import Segments
from pyg_topomask.operators.base import LowRank, MaskOperator


def low_rank_operator(graph: Graph, left: Tensor, right: Tensor) -> MaskOperator:
    r"""Binds a low-rank mask: :math:`\mathbf{M} = \mathbf{A} \mathbf{B}^{\top}` within each graph, and 0 between graphs. A
    product costs :math:`O(N r)`.

    Args:
        graph (Graph): The graphs.
        left (torch.Tensor): :math:`\mathbf{A}`, :obj:`[N, heads, r]`, or :obj:`[N, 1, r]` for all heads. Gradients flow to it.
        right (torch.Tensor): :math:`\mathbf{B}`, with one of these shapes.

    Raises:
        ValueError: If the factors do not fit each other or the nodes.

    Example:
        >>> import torch
        >>> graph = Graph.from_tensors(torch.empty(2, 0, dtype=torch.long), num_nodes=2)
        >>> low_rank_operator(graph, torch.tensor([[[1.0]], [[2.0]]]), torch.tensor([[[3.0]], [[4.0]]])).to_dense()
        tensor([[[3., 4.],
                 [6., 8.]]])
    """
    shapes = tuple(left.shape), tuple(right.shape)
    fit = all(len(shape) == 3 and shape[0] == graph.num_nodes for shape in shapes)
    if not fit or left.size(2) != right.size(2) or len({left.size(1), right.size(1)} - {1}) > 1:
        raise ArgumentError(
            'left, right',
            f'shapes {shapes[0]} and {shapes[1]} for {graph.num_nodes} nodes',
            '[N, heads, r] and [N, 1, r], with equal r',
        )
    return low_rank_within(graph.segments, left, right)


@singledispatch
def low_rank_within(segments: Segments, left: Tensor, right: Tensor) -> MaskOperator:
    r"""Returns the operator with the given factors. Nodes of several processes have another one."""
    heads, cost = max(left.size(1), right.size(1)), segments.num_nodes * left.size(-1)
    return LowRank(left, right, segments.index, segments.ptr, segments=segments, heads=heads, cost=cost)
