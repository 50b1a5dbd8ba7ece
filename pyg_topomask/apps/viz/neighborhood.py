r"""The nodes near a node."""

from __future__ import annotations

import torch
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import breadth_first_order
from torch import Tensor

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.utils.checks import check_whole


def neighborhood(graph: Graph, node: int | None = None, size: int = 100) -> Tensor:
    r"""Returns the nodes nearest to a node, the node itself first, in the order of a breadth-first search along the edges in
    either direction.

    Args:
        graph (Graph): The graphs.
        node (int, optional): The node. (default: :obj:`None`, the first one of the largest degree)
        size (int): The number of nodes, or all that can be reached if there are fewer. (default: :obj:`100`)

    Returns:
        torch.Tensor: :obj:`[at most size]`.

    Raises:
        ValueError: If there is no such node.

    Example:
        >>> neighborhood(Graph.from_tensors(torch.tensor([[0, 1], [1, 2]]), num_nodes=4), node=2)
        tensor([2, 1, 0])
    """
    row, col = graph.edge_index.long().cpu().numpy()
    if graph.num_nodes == 0:
        raise ArgumentError('graph', 'a graph without nodes', 'graphs with nodes')
    if node is None:
        node = int(torch.bincount(graph.edge_index.flatten().long(), minlength=graph.num_nodes).argmax())
    check_whole(0, graph.num_nodes - 1, node=node)
    check_whole(1, size=size)
    adjacency = coo_matrix(([1.0] * len(row), (row, col)), shape=(graph.num_nodes,) * 2)
    order = breadth_first_order(adjacency.tocsr(), node, directed=False, return_predecessors=False)
    return torch.from_numpy(order[:size].copy()).long()
