r"""Rows of a mask."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch_geometric.data import Data

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks import Mask
from pyg_topomask.operators.base import MaskOperator


@torch.no_grad()
def mask_rows(mask: Mask, graph: Graph | Data, nodes: int | Sequence[int] | Tensor) -> Tensor:
    r"""Returns rows :math:`M_{ij}` of a mask, by one product of its transpose with unit vectors. The matrix is never formed.

    Args:
        mask (Mask): The mask.
        graph (Graph or torch_geometric.data.Data): The graphs.
        nodes (int, sequence of int or torch.Tensor): The nodes :math:`i`, or a boolean mask of them, :obj:`[N]`.

    Returns:
        torch.Tensor: :obj:`[H, n, N]`.

    Raises:
        ValueError: If :obj:`mask` is no mask, or there is no such node.

    Example:
        >>> from pyg_topomask.masks import AdjacencyMask
        >>> data = Data(edge_index=torch.tensor([[2], [0]]), num_nodes=3)
        >>> mask_rows(AdjacencyMask(self_loop=None), data, 0)
        tensor([[[0., 0., 1.]]])
    """
    if not isinstance(mask, Mask):
        raise ArgumentError('mask', type(mask).__name__, 'a Mask, for example layer.mask')
    graph = Graph.of(graph)
    return rows_of(mask(graph), node_indices(nodes, graph))


def rows_of(operator: MaskOperator, nodes: Tensor) -> Tensor:
    r"""Returns rows of a mask, :obj:`[H, n, N]`, see :func:`mask_rows`.

    Args:
        operator (MaskOperator): The mask.
        nodes (torch.Tensor): The nodes, :obj:`[n]`.
    """
    num_nodes = operator.segments.num_nodes
    unit = torch.zeros(num_nodes, operator.heads, nodes.numel(), dtype=operator.dtype, device=nodes.device)
    unit[nodes, :, torch.arange(nodes.numel(), device=nodes.device)] = 1.0
    return operator.T.matmul(unit).permute(1, 2, 0)


def node_indices(nodes: int | Sequence[int] | Tensor, graph: Graph) -> Tensor:
    r"""Returns nodes as a tensor, :obj:`[n]`, or raises a :class:`ValueError` if there is no such node."""
    size = graph.num_nodes
    whole_numbers = f'whole numbers from 0 to {size - 1}, [n]' if size > 0 else 'no numbers, as the graph has no nodes'
    error = ArgumentError('nodes', nodes, f'{whole_numbers}, and a boolean mask, [{size}]')
    try:
        given: Tensor = torch.atleast_1d(torch.as_tensor(nodes, device=graph.device))
    except (TypeError, ValueError, RuntimeError):  # torch raises the last for None
        raise error from None
    if given.dtype == torch.bool and given.shape == (size,):
        return torch.where(given)[0]
    whole = given.numel() == 0 or not (given.dtype == torch.bool or given.is_floating_point())
    if not whole or given.dim() != 1 or not bool(((given >= 0) & (given < size)).all()):
        raise error
    return given.long()
