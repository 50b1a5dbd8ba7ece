r"""The nodes near a node."""

from __future__ import annotations

import torch
from scipy.sparse.csgraph import breadth_first_order
from torch import Tensor
from torch_geometric.utils import to_scipy_sparse_matrix

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.utils.checks import check_whole


def neighborhood(graph: Graph, node: int | None = None, size: int = 100) -> Tensor:
    r"""Returns the :obj:`size` nodes nearest to a node, or all that can be reached if there are fewer, in the order of a
    breadth-first search along the edges in either direction. It starts at the node, or else at the first one of the largest
    degree.

    Example:
        >>> neighborhood(Graph.from_tensors(torch.tensor([[0, 1], [1, 2]]), num_nodes=4), node=2)
        tensor([2, 1, 0])
    """
    if graph.num_nodes == 0:
        raise ArgumentError('graph', 'a graph without nodes', 'graphs with nodes')
    if node is None:
        node = int(torch.bincount(graph.edge_index.flatten().long(), minlength=graph.num_nodes).argmax())
    check_whole(0, graph.num_nodes - 1, node=node)
    check_whole(1, size=size)
    adjacency = to_scipy_sparse_matrix(graph.edge_index.long(), num_nodes=graph.num_nodes).tocsr()
    order = breadth_first_order(adjacency, node, directed=False, return_predecessors=False)
    return torch.from_numpy(order[:size].copy()).long()
