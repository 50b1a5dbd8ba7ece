r"""The direction of attention along edges, as in PyG, and the normalizations of adjacency matrices."""

from __future__ import annotations

from torch import Tensor

from pyg_topomask.errors import ArgumentError
from pyg_topomask.utils.checks import check_choice

FLOWS = ('source_to_target', 'target_to_source')


def check_flow(flow: str) -> None:
    r"""Raises a :class:`ValueError` unless the flow is one of PyG's two directions of message passing."""
    if flow not in FLOWS:
        raise ArgumentError('flow', repr(flow), '"source_to_target" and "target_to_source"')


def row_and_col(edge_index: Tensor, flow: str) -> tuple[Tensor, Tensor]:
    r"""Returns the row and the column of each edge in the adjacency matrix. Row :math:`i` contains the nodes that node
    :math:`i` attends to. With :obj:`"source_to_target"`, as in PyG, the row is the target of the edge and the column its
    source. With :obj:`"target_to_source"`, it is the reverse. The function is its own inverse.

    Example:
        >>> import torch
        >>> row_and_col(torch.tensor([[0], [1]]), 'source_to_target')
        (tensor([1]), tensor([0]))
    """
    check_flow(flow)
    source, target = edge_index
    return (target, source) if flow == 'source_to_target' else (source, target)


#: The normalizations of :meth:`Graph.normalized_weight <pyg_topomask.graphs.Graph.normalized_weight>`.
NORMALIZATIONS = ('sym', 'rw', None)


def check_normalization(normalization: str | None) -> None:
    r"""Raises a :class:`ValueError` unless a graph supports the normalization."""
    check_choice(NORMALIZATIONS, normalization=normalization)


def inverse_degree(degree: Tensor, normalization: str) -> Tensor:
    r"""Returns the inverse of each degree, or its square root for :obj:`"sym"`; 0 if the degree is 0."""
    positive = degree > 0
    safe = degree.masked_fill(~positive, 1.0)
    inverse = safe.reciprocal() if normalization == 'rw' else safe.rsqrt()
    return inverse * positive
