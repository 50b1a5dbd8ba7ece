r"""Rows of masks and of linear attention, without the matrices, the weight of a mask at each distance, and stretch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import dijkstra
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.typing import Adj

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.graphs.tree_state import repeated_edges
from pyg_topomask.masks import Mask
from pyg_topomask.masks.tree import TreeMask
from pyg_topomask.nn import MaskedLinearAttention
from pyg_topomask.nn.inputs import as_graph, check_features, input_of
from pyg_topomask.operators.base import MaskOperator
from pyg_topomask.ops.normalize import balanced, inverse_weight
from pyg_topomask.utils.checks import check_whole


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
        x (torch.Tensor): The input of the layer, :obj:`[N, channels]`. The arguments that follow are those of
            :meth:`MaskedLinearAttention.forward <pyg_topomask.nn.MaskedLinearAttention.forward>`.

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
    weight = rows_of(layer.mask_for(x, graph), rows) * torch.einsum('nhm,jhm->hnj', q[rows], k)
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


def weight_by_hops(
    mask: Mask,
    graph: Graph | Data,
    max_hops: int = 4,
    nodes: int | Sequence[int] | Tensor | None = None,
    rows: Tensor | None = None,
    flow: str | None = None,
) -> Tensor:
    r"""Returns the share of the absolute weight :math:`\sum_j |M_{ij}|` of a row at each distance from node :math:`i`, averaged
    over all rows with nonzero weight.

    Args:
        mask (Mask): The mask.
        graph (Graph or torch_geometric.data.Data): The graphs.
        max_hops (int): The largest distance to distinguish. (default: :obj:`4`)
        nodes (int, sequence of int or torch.Tensor, optional): The nodes :math:`i`, or a boolean mask of them.
            (default: :obj:`None`, all, which takes :math:`O(H N^2)` memory)
        rows (torch.Tensor, optional): Their rows, if :func:`mask_rows` has already computed them. (default: :obj:`None`)
        flow (str, optional): The direction of hops: with :obj:`"source_to_target"`, as in PyG, from :math:`i` to :math:`j` if
            there is an edge :math:`(j, i)`; with :obj:`"target_to_source"`, along the edges.
            (default: :obj:`None`, the direction of the mask, or :obj:`"source_to_target"` if it has none)

    Returns:
        torch.Tensor: :obj:`[H, max_hops + 2]`: at 0 to :obj:`max_hops` hops, and then at larger distances or unreachable.

    Example:
        >>> from pyg_topomask.masks import PackingMask
        >>> path = Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=2)
        >>> weight_by_hops(PackingMask(), path, max_hops=1)
        tensor([[0.5000, 0.5000, 0.0000]])
    """
    check_whole(0, max_hops=max_hops)
    graph = Graph.of(graph)
    nodes = torch.arange(graph.num_nodes, device=graph.device) if nodes is None else node_indices(nodes, graph)
    rows = mask_rows(mask, graph, nodes) if rows is None else rows
    shares = shares_by_hops(rows, hop_distances(graph, nodes, max_hops, flow or attention_flow(mask)), max_hops)
    counted = (shares.sum(2) > 0).sum(1, keepdim=True).clamp(min=1)
    return shares.sum(1) / counted


def attention_flow(mask: Mask) -> str:
    r"""Returns the direction of attention along edges, :obj:`"source_to_target"` for a mask without one."""
    return getattr(mask, 'flow', None) or 'source_to_target'


def hop_distances(graph: Graph, nodes: Tensor, max_hops: int, flow: str) -> Tensor:
    r"""Returns the number of hops from nodes to all nodes, :obj:`[n, N]`, and :obj:`max_hops + 1` for those farther or out of
    reach, see :func:`weight_by_hops`.
    """
    row, col = (end.cpu().numpy() for end in graph.row_and_col(flow))
    adjacency = coo_matrix((np.ones(len(row)), (row, col)), shape=(graph.num_nodes,) * 2).tocsr()
    distance = np.empty((0, graph.num_nodes))
    if nodes.numel() > 0:
        distance = dijkstra(adjacency, unweighted=True, indices=nodes.cpu().numpy(), limit=max_hops)
    return torch.from_numpy(np.minimum(distance, max_hops + 1)).long().to(graph.device)


def shares_by_hops(rows: Tensor, hops: Tensor, max_hops: int) -> Tensor:
    r"""Returns the shares of the absolute weight of each row :obj:`[H, n, N]` at each distance, :obj:`[H, n, max_hops + 2]`,
    and zeros for a row without weight. The distances :obj:`[n, N]` are those of :func:`hop_distances`.
    """
    weight = rows.abs()
    sums = weight.new_zeros(*weight.shape[:2], max_hops + 2).scatter_add(2, hops.expand_as(weight), weight)
    total = sums.sum(2, keepdim=True)
    return torch.where(total > 0, sums / total, 0.0)


def edge_stretch(graph: Graph | Data) -> Tensor:
    r"""Returns the distance between the ends of each edge in each stored forest, divided by the length of the edge. The mean
    over the edges is the mean stretch of a forest. It is 1 for self-loops and edges of length 0.

    Args:
        graph (Graph or torch_geometric.data.Data): Graphs with forests that
            :class:`~pyg_topomask.transforms.AddSpanningForest` has stored, or without cycles.

    Returns:
        torch.Tensor: :obj:`[num_trees, E]`, in float64.

    Example:
        >>> from pyg_topomask.transforms import AddSpanningForest
        >>> triangle = Data(edge_index=torch.tensor([[0, 1, 2], [1, 2, 0]]), num_nodes=3)
        >>> edge_stretch(AddSpanningForest()(triangle)).sort().values
        tensor([[1., 1., 2.]], dtype=torch.float64)
    """
    graph = Graph.of(graph)
    state = TreeMask().prepare(graph)
    length, weight = (tensor.detach().double().cpu() for tensor in (state.length, graph.weight.repeat(state.num_trees)))
    source, target = repeated_edges(graph, state.num_trees).cpu().numpy()
    stretch = state.forest.stretch(length.numpy(), source, target, weight.numpy())
    return torch.from_numpy(stretch).view(state.num_trees, graph.num_edges).to(graph.device)
