r"""Plots of a mask."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor
from torch_geometric.data import Data

from pyg_topomask.apps.diagnostics import mask_rows, weight_by_hops
from pyg_topomask.apps.viz.figure import color_scale, new_figure
from pyg_topomask.apps.viz.neighborhood import neighborhood
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks import Mask
from pyg_topomask.utils.checks import check_whole

if TYPE_CHECKING:
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

    Returns:
        matplotlib.figure.Figure: The figure, to be saved or displayed.

    Raises:
        ImportError: If Matplotlib is not installed.
        ValueError: If the graph has no nodes, or an argument is outside its range.

    Example:
        >>> import torch
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
    largest, signed = float(block.abs().max()) or 1.0, bool((block < 0).any())
    image = left.imshow(block, **color_scale(largest, signed))
    near = f'by distance from node {int(drawn[0])}'
    left.set(title='mask', xlabel=f'nodes j, {near}', ylabel=f'nodes i, {near}')
    figure.colorbar(image, ax=left, label='entry $M_{ij}$')
    right.bar([*map(str, range(max_hops + 1)), 'more'], shares)
    right.set(title='weight by distance', xlabel='hops', ylabel='share of the absolute weight of a row')
    return figure
