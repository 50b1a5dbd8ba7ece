r"""Rows of linear attention."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.typing import Adj

from pyg_topomask.apps.diagnostics.mask_rows import node_indices, rows_of
from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.nn import MaskedLinearAttention
from pyg_topomask.nn.inputs import as_graph, check_features
from pyg_topomask.ops.normalize import inverse_weight
from pyg_topomask.ops.scaling import balanced


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

    Raises:
        ValueError: If there is no such node, :obj:`x` does not fit the layer, or the layer is another.

    Example:
        >>> from pyg_topomask.nn import HopAttention
        >>> layer = HopAttention(8, heads=2)
        >>> attention_rows(layer, 0, torch.randn(3, 8), torch.tensor([[0, 1], [1, 0]])).shape
        torch.Size([2, 1, 3])
    """
    if not isinstance(layer, MaskedLinearAttention):
        raise ArgumentError('layer', type(layer).__name__, 'linear attention under a mask, such as HopAttention')
    check_features(x, layer.lin_q.in_channels, layer.lin_q.weight.dtype)
    graph = as_graph(x, edge_index, edge_weight, batch, graph)
    rows = node_indices(nodes, graph)
    q, k = layer.feature_map(layer.by_head(layer.lin_q(x)), layer.by_head(layer.lin_k(x)), graph.segments)
    q, k, *_ = balanced(q, k, torch.ones_like(q[..., :1]), graph.segments.maximum)
    weight = rows_of(layer.mask(graph), rows) * torch.einsum('nhm,jhm->hnj', q[rows], k)
    return weight * inverse_weight(weight.sum(-1), weight.abs().sum(-1)).unsqueeze(-1)
