r"""Where nodes are drawn."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor
from torch_geometric.utils import subgraph

from pyg_topomask.graphs.graph import Graph

# The half angle of the arc on which a sequence is drawn.
_ARC = 0.85 * math.pi
# The most nodes that the Kamada-Kawai layout arranges, which takes cubic time.
_SMALL = 200


def positions(graph: Graph, nodes: Tensor) -> Tensor:
    r"""Returns where to draw nodes of one graph, :obj:`[n, 2]` in float64: on its grid if the data has a :obj:`grid_shape`, at
    its positions :obj:`pos`, or where NetworkX puts them: up to 200 nodes that edges connect by their distances (Kamada-Kawai),
    and others by springs. This is the same in every call.

    Example:
        >>> from torch_geometric.data import Data
        >>> data = Data(num_nodes=4, grid_shape=torch.tensor([[2, 2]]))
        >>> positions(Graph.from_data(data), torch.tensor([0, 1, 2])).tolist()
        [[0.0, 0.0], [1.0, 0.0], [0.0, -1.0]]
    """
    nodes = nodes.cpu()
    if nodes.numel() == 0:
        return torch.empty(0, 2, dtype=torch.float64)
    shapes, pos = graph.get('grid_shape'), graph.get('pos')
    index = int(graph.segments.index[int(nodes[0])])
    shape = shapes[index].tolist() if isinstance(shapes, Tensor) and shapes.dim() == 2 and index < len(shapes) else ()
    if 0 < len(shape) <= 3 and math.prod(shape) == int(graph.segments.sizes[index]):
        return _on_grid(graph.segments.position.cpu()[nodes], shape)
    fits = isinstance(pos, Tensor) and pos.dim() == 2 and pos.size(0) == graph.num_nodes and pos.size(1) > 0
    if fits and bool(pos.isfinite().all()):
        return in_the_plane(pos[nodes.to(pos.device)])
    return _arranged(graph, nodes)


def _on_grid(place: Tensor, shape: list[int]) -> Tensor:
    if len(shape) == 1:
        angle = torch.linspace(-_ARC, _ARC, shape[0], dtype=torch.float64)[place]
        return torch.stack([angle.sin(), angle.cos()], dim=1)
    frame, row, column = torch.unravel_index(place, (1, *shape)[-3:])
    # The frames of a video side by side.
    return torch.stack([column + frame * (shape[-1] + 1), -row], dim=1).double()


def _arranged(graph: Graph, nodes: Tensor) -> Tensor:
    import networkx as nx  # takes a while

    ends, _ = subgraph(nodes, graph.edge_index.long().cpu(), relabel_nodes=True, num_nodes=graph.num_nodes)
    drawn = nx.empty_graph(nodes.numel())
    drawn.add_edges_from(ends.t().tolist())
    by_distance = nodes.numel() <= _SMALL and nx.is_connected(drawn)
    layout = nx.kamada_kawai_layout(drawn) if by_distance else nx.spring_layout(drawn, seed=0)
    return torch.from_numpy(np.array([layout[node] for node in drawn], dtype=np.float64))


def in_the_plane(pos: Tensor) -> Tensor:
    r"""Returns positions in two dimensions, :obj:`[n, 2]` in float64: more dimensions are seen in the plane in which the nodes
    spread most, and one dimension is a line.
    """
    pos = pos.detach().double().cpu()
    if pos.size(1) == 1:
        return torch.cat([pos, torch.zeros_like(pos)], dim=1)
    if pos.size(1) == 2 or pos.size(0) == 0:
        return pos[:, :2]
    centered = pos - pos.mean(0)
    _, _, axes = torch.linalg.svd(centered, full_matrices=False)
    plane = centered @ axes[:2].t()
    return torch.nn.functional.pad(plane, (0, 2 - plane.size(1)))
