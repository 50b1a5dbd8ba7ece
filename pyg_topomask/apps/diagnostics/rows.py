r"""Rows of masks and of linear attention, without the matrices."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.typing import Adj

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks import Mask
from pyg_topomask.nn import MaskedLinearAttention
from pyg_topomask.nn.inputs import as_graph, check_features
from pyg_topomask.nn.linear import input_of
from pyg_topomask.operators.base import MaskOperator
from pyg_topomask.ops.normalize import balanced, inverse_weight


@torch.no_grad()
def mask_rows(mask: Mask, graph: Graph | Data, nodes: int | Sequence[int] | Tensor) -> Tensor:
    r"""Returns rows :math:`M_{ij}` of a mask, by one product of its transpose with unit vectors. The matrix is never formed.

    Args:
        mask (Mask): The mask.
        graph (Graph or torch_geometric.data.Data): The graphs.
        nodes (int, sequence of int or torch.Tensor): The nodes :math:`i`, or a boolean mask of them, :obj:`[N]`.

    Returns:
        torch.Tensor: :obj:`[H, n, N]`.

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


@torch.no_grad()
def attention_rows(
    layer: MaskedLinearAttention,
    nodes: int | Sequence[int] | Tensor,
    x: Tensor,
    edge_index: Adj | None = None,
    edge_weight: Tensor | None = None,
    batch: Tensor | None = None,
    graph: Graph | Data | None = None,
) -> Tensor:
    r"""Returns what nodes attend to in a layer of linear attention, without the :math:`N \times N` matrix:

    .. math::
        a_{ij} = \frac{M_{ij} \, \phi(\mathbf{q}_i)^{\top} \phi(\mathbf{k}_j)}
        {\sum_l M_{il} \, \phi(\mathbf{q}_i)^{\top} \phi(\mathbf{k}_l)}

    Layers with softmax return their coefficients with :obj:`return_attention_weights=True`.

    Args:
        layer (MaskedLinearAttention): The layer, for example a :class:`~pyg_topomask.nn.HopAttention`.
        nodes (int, sequence of int or torch.Tensor): The nodes :math:`i`, or a boolean mask of them, :obj:`[N]`.
        x (torch.Tensor): The input of the layer, :obj:`[N, channels]`.
        edge_index (torch.Tensor or SparseTensor, optional): The edge indices, :obj:`[2, E]`, or :obj:`adj_t`.
            (default: :obj:`None`, those of :obj:`graph`)
        edge_weight (torch.Tensor, optional): The edge weights, :obj:`[E]`. (default: :obj:`None`)
        batch (torch.Tensor, optional): The graph of each node, ascending, :obj:`[N]`. (default: :obj:`None`)
        graph (Graph or torch_geometric.data.Data, optional): Replaces the three arguments above. (default: :obj:`None`)

    Returns:
        torch.Tensor: :obj:`[H, n, N]`. Rows add up to 1, and zero rows to 0.

    Example:
        >>> from pyg_topomask.nn import HopAttention
        >>> layer = HopAttention(8, heads=2)
        >>> attention_rows(layer, 0, torch.randn(3, 8), torch.tensor([[0, 1], [1, 0]])).shape
        torch.Size([2, 1, 3])
    """
    if not isinstance(layer, MaskedLinearAttention):
        raise ArgumentError('layer', type(layer).__name__, 'linear attention under a mask, such as HopAttention')
    check_features(x, *input_of(layer.lin_q))
    graph = as_graph(x, edge_index, edge_weight, batch, graph)
    rows = node_indices(nodes, graph)
    q, k = layer.feature_map(layer.by_head(layer.lin_q(x)), layer.by_head(layer.lin_k(x)), graph.segments)
    q, k, *_ = balanced(q, k, torch.ones_like(q[..., :1]), graph.segments.maximum)
    weight = rows_of(layer.mask(graph), rows) * torch.einsum('nhm,jhm->hnj', q[rows], k)
    return weight * inverse_weight(weight.sum(-1), weight.abs().sum(-1)).unsqueeze(-1)


def rows_of(operator: MaskOperator, nodes: Tensor) -> Tensor:
    r"""Returns rows of a mask, :obj:`[H, n, N]`, for nodes :obj:`[n]`, see :func:`mask_rows`."""
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
