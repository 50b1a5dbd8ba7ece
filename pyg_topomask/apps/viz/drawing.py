r"""What the pictures share: figures, colors, edges and blocks of entries, the nodes near a node, and where nodes are drawn."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy.sparse.csgraph import breadth_first_order
from torch import Tensor
from torch_geometric.utils import subgraph, to_scipy_sparse_matrix

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.utils.checks import check_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage


def new_figure(width: float, height: float) -> Figure:
    r"""Returns an empty figure, of a width and a height in inches. Raises an :class:`ImportError` without Matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError('pictures need Matplotlib: install pyg_topomask with its extra [viz]') from error
    # Not with pyplot, which would keep the figure and select a GUI backend.
    return Figure(figsize=(width, height), layout='constrained')


def color_scale(largest: float, signed: bool) -> dict[str, Any]:
    r"""Returns the colors of entries as arguments of Matplotlib: dark is large, and red is negative."""
    return {'cmap': 'RdBu' if signed else 'YlGnBu', 'vmin': -largest if signed else 0.0, 'vmax': largest}


def legend_above(axis: Axes) -> None:
    r"""Puts the legend of a chart between its title and its data."""
    legend = axis.legend(fontsize='small', loc='lower center', bbox_to_anchor=(0.5, 1.0), frameon=False)
    # The title is above the legend.
    axis.set_title(axis.get_title(), pad=6 + 14 * len(legend.get_texts()))


def draw_block(axis: Axes, block: Tensor, node: int, title: str, largest: float, signed: bool) -> AxesImage:
    r"""Draws the entries between the nodes near a node, see :func:`color_scale`."""
    near = f'by distance from node {node}'
    axis.set(title=title, xlabel=f'nodes j, {near}', ylabel=f'nodes i, {near}')
    return axis.imshow(block, **color_scale(largest, signed))


def draw_edges(axis: Axes, pos: Tensor, edge_index: Tensor, **style: Any) -> None:
    r"""Draws edges as lines between the positions of their ends, both on the CPU."""
    from matplotlib.collections import LineCollection

    axis.add_collection(LineCollection(list(pos[edge_index.long().t()].numpy()), **style))


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
