r"""Plots of masks: the entries near a node, and one row of each of several masks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch_geometric.data import Data

from pyg_topomask.apps.diagnostics import mask_rows, weight_by_hops
from pyg_topomask.apps.viz.drawing import color_scale, draw_block, draw_edges, neighborhood, new_figure
from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks import Mask
from pyg_topomask.utils.checks import check_shape, check_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PathCollection
    from matplotlib.figure import Figure


def plot_mask(
    mask: Mask, graph: Graph | Data, node: int | None = None, max_hops: int = 4, nodes: Tensor | None = None, head: int = 0
) -> Figure:
    r"""Plots the entries of a mask in the neighborhood of a node, and the distribution of its weight over distances, see
    :func:`~pyg_topomask.apps.diagnostics.weight_by_hops`.

    Args:
        mask (Mask): The mask.
        graph (Graph or torch_geometric.data.Data): The graphs.
        node (int, optional): The node whose neighborhood is shown. (default: :obj:`None`, one of the largest degree)
        max_hops (int): The largest distance to distinguish. (default: :obj:`4`)
        nodes (torch.Tensor, optional): The rows to average distances over. (default: :obj:`None`, the plotted rows)
        head (int): The head to plot. (default: :obj:`0`)

    Raises:
        ValueError: If the graph has no nodes, or an argument is outside its range.

    Example:
        >>> from pyg_topomask.masks import PowerSeriesMask
        >>> figure = plot_mask(PowerSeriesMask(), Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=2))
        >>> [axis.get_title() for axis in figure.axes[:2]]
        ['mask', 'weight by distance']
    """
    graph = Graph.of(graph)
    drawn = neighborhood(graph, node).to(graph.device)
    rows = mask_rows(mask, graph, drawn)
    check_whole(0, rows.size(0) - 1, head=head)
    averaged = (drawn, rows) if nodes is None else (nodes, None)
    shares = weight_by_hops(mask, graph, max_hops, *averaged)[head].cpu()
    figure = new_figure(11, 4)
    left, right = figure.subplots(1, 2)
    block = rows[head][:, drawn].cpu()
    image = draw_block(left, block, int(drawn[0]), 'mask', float(block.abs().max()) or 1.0, bool((block < 0).any()))
    figure.colorbar(image, ax=left, label='entry $M_{ij}$')
    right.bar([*map(str, range(max_hops + 1)), 'more'], shares)
    right.set(title='weight by distance', xlabel='hops', ylabel='share of the absolute weight of a row')
    return figure


def plot_mask_rows(
    masks: Mapping[str, Mask], graph: Graph | Data, node: int, pos: Tensor, columns: int = 3, head: int = 0
) -> Figure:
    r"""Plots one row of each mask on the nodes of the graph: the factors of the node's attention scores. Colors are relative
    to the largest off-diagonal entry of the row. Red entries are negative, hollow nodes have the entry 0, and the star is the
    node itself.

    Args:
        masks (dict of str to Mask): The masks, with the titles of their panels as keys.
        graph (Graph or torch_geometric.data.Data): The graphs.
        node (int): The node :math:`i` of the row :math:`M_{ij}`.
        pos (torch.Tensor): The positions of the nodes, :obj:`[N, 2]`.
        columns (int): The number of panels per row. (default: :obj:`3`)
        head (int): The head to plot. (default: :obj:`0`)

    Raises:
        ValueError: If there is no mask, no node, no such node or head, or :obj:`pos` has the wrong shape or is not finite.

    Example:
        >>> from pyg_topomask.masks import AdjacencyMask, PackingMask
        >>> data = Data(edge_index=torch.tensor([[0, 1], [1, 2]]), num_nodes=3)
        >>> masks = {'neighbors': AdjacencyMask(), 'all': PackingMask()}
        >>> [axis.get_title() for axis in plot_mask_rows(masks, data, node=0, pos=torch.rand(3, 2)).axes[:2]]
        ['neighbors', 'all']
    """
    graph = Graph.of(graph)
    if not isinstance(masks, Mapping):
        raise ArgumentError('masks', type(masks).__name__, 'masks by title in a dictionary')
    if not masks:
        raise ArgumentError('masks', 'none', 'one or more')
    if graph.num_nodes == 0:
        raise ArgumentError('graph', 'a graph without nodes', 'graphs with nodes')
    check_whole(0, graph.num_nodes - 1, node=node)
    check_whole(1, columns=columns)
    check_shape((graph.num_nodes, 2), pos=pos)
    if not bool(pos.isfinite().all()):
        raise ArgumentError('pos', 'NaN or infinite numbers', 'finite positions')
    rows = {title: mask_rows(mask, graph, node)[:, 0] for title, mask in masks.items()}
    check_whole(0, min(map(len, rows.values())) - 1, head=head)
    across, down = min(columns, len(rows)), -(-len(rows) // columns)
    width, height = (pos.amax(0) - pos.amin(0)).clamp(min=1e-6).tolist()
    figure = new_figure(3 * across + 0.7, (3 * min(max(height / width, 0.2), 2.0) + 0.25) * down)
    place = pos.detach().double().cpu()
    colored = {}
    for index, (title, row) in enumerate(rows.items()):
        axis = figure.add_subplot(down, across, index + 1)
        nodes = _draw_row(axis, row[head].double().cpu(), node, place, graph.edge_index.cpu())
        colored[nodes.get_cmap().name] = nodes
        axis.set_title(title, fontsize='medium')
    panels = list(figure.axes)
    for nodes in colored.values():
        figure.colorbar(nodes, ax=panels, label='entry / largest other than that of the star', shrink=0.9)
    return figure


def _draw_row(axis: Axes, row: Tensor, node: int, pos: Tensor, edge_index: Tensor) -> PathCollection:
    x, y = pos.unbind(1)
    elsewhere = torch.arange(row.numel()) != node
    largest = float(row[elsewhere].abs().max()) if bool(elsewhere.any()) else 0.0
    signed = bool((row[elsewhere] < 0).any())
    draw_edges(axis, pos, edge_index, colors='0.55', linewidths=0.8, zorder=1)
    empty = elsewhere & (row == 0)
    axis.scatter(x[empty], y[empty], s=22, facecolors='white', edgecolors='0.7', linewidths=0.8, zorder=2)
    # Plot the largest entries on top of others.
    seen = (elsewhere & (row != 0)).nonzero().squeeze(1)
    seen = seen[row[seen].abs().argsort()]
    colors = {'c': row[seen] / (largest or 1.0), **color_scale(1.0, signed)}
    nodes = axis.scatter(x[seen], y[seen], s=34, edgecolors='0.4', linewidths=0.6, zorder=3, **colors)
    axis.scatter(x[node], y[node], s=110, marker='*', color='C3', edgecolors='black', linewidths=0.5, zorder=4)
    axis.set_aspect('equal', adjustable='datalim')
    axis.set_axis_off()
    return nodes
