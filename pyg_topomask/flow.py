r"""The direction of attention along edges, in the terms of PyG."""

from __future__ import annotations

from torch import Tensor

from pyg_topomask.errors import ArgumentError

FLOWS = ('source_to_target', 'target_to_source')


def check_flow(flow: str) -> None:
    r"""Raises a :class:`ValueError` unless this is one of PyG's two directions of message passing."""
    if flow not in FLOWS:
        raise ArgumentError('flow', repr(flow), '"source_to_target" and "target_to_source"')


def row_and_col(edge_index: Tensor, flow: str) -> tuple[Tensor, Tensor]:
    r"""Returns the row and the column of each edge in the adjacency matrix, whose row :math:`i` holds the nodes that node
    :math:`i` attends to: for :obj:`"source_to_target"` the target and the source of the edge, as messages flow in PyG, and for
    :obj:`"target_to_source"` the source and the target. The same exchange makes edges of rows and columns.

    Args:
        edge_index (torch.Tensor): The edge indices, :obj:`[2, E]`.
        flow (str): The direction of attention.

    Raises:
        ValueError: If the flow is unknown.

    Example:
        >>> import torch
        >>> row_and_col(torch.tensor([[0], [1]]), 'source_to_target')
        (tensor([1]), tensor([0]))
    """
    check_flow(flow)
    source, target = edge_index
    return (target, source) if flow == 'source_to_target' else (source, target)
