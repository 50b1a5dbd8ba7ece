r"""The receptive field of a mask: its weight at each distance."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import dijkstra
from torch import Tensor
from torch_geometric.data import Data

from pyg_topomask.apps.diagnostics.rows import mask_rows, node_indices
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks import Mask
from pyg_topomask.utils.checks import check_whole


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
