r"""The stretch of edges by spanning forests."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.data import Data

from pyg_topomask.graphs.graph import Graph
from pyg_topomask.graphs.tree_state import repeated_edges
from pyg_topomask.masks.tree import TreeMask


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
