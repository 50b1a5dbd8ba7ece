r"""Plots of masks: the entries near a node, one row of each of several masks, and how well walks estimate a mask."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from pyg_topomask.apps import diagnostics
from pyg_topomask.apps.viz.drawing import color_scale, draw_block, draw_edges, legend_above, neighborhood, new_figure
from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks import GRFMask, Mask
from pyg_topomask.utils.checks import check_shape, check_whole
from pyg_topomask.walks.steps import SAMPLERS

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
    rows = diagnostics.mask_rows(mask, graph, drawn)
    check_whole(0, rows.size(0) - 1, head=head)
    averaged = (drawn, rows) if nodes is None else (nodes, None)
    shares = diagnostics.weight_by_hops(mask, graph, max_hops, *averaged)[head].cpu()
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
    rows = {title: diagnostics.mask_rows(mask, graph, node)[:, 0] for title, mask in masks.items()}
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


# The probability that a plotted bound is exceeded.
_DELTA = 0.05


def plot_inspection(
    mask: GRFMask,
    graph: Graph | Data,
    node: int | None = None,
    num_walks: Sequence[int] = (1, 2, 4, 8, 16, 32, 64),
    repeats: int = 3,
    num_rows: int = 64,
    head: int = 0,
) -> Figure:
    r"""Plots how well graph random features estimate a mask. The plots show the exact and the estimated entries in the
    neighborhood of a node, the error against the number of walks, and the entries per row. They include the bounds of `"Linear
    Transformer Topological Masking with Graph Random Features" <https://arxiv.org/abs/2410.03462>`_ (Theorem 3.2, Eq. 11, if it
    is finite and walkers are independent, and Lemma 3.3).

    Args:
        mask (GRFMask): The mask.
        graph (Graph or torch_geometric.data.Data): The graphs.
        node (int, optional): The node whose neighborhood is shown. (default: :obj:`None`, one of the largest degree)
        num_walks (sequence of int): The numbers of walks to compare; only even ones for antithetic walkers.
            (default: :obj:`(1, 2, 4, 8, 16, 32, 64)`)
        repeats (int): The number of ensembles of walks for each number of walks. (default: :obj:`3`)
        num_rows (int): The number of rows on which to measure the error. (default: :obj:`64`)
        head (int): The head to plot. (default: :obj:`0`)

    Raises:
        ValueError: If the graph has no nodes, an argument is outside its range, or the mask counts visits.

    Example:
        >>> data = Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=2)
        >>> len(plot_inspection(GRFMask(), data, num_walks=[1, 2]).axes)
        6
    """
    graph = Graph.of(graph)
    check_whole(0, mask.heads - 1, head=head)
    check_whole(1, repeats=repeats)
    for number in num_walks:
        check_whole(1, num_walks=number)
    figure = new_figure(13, 8)
    places = figure.add_gridspec(2, 6)
    blocks = [figure.add_subplot(places[0, 3 * column : 3 * column + 3]) for column in range(2)]
    *errors, entries = (figure.add_subplot(places[1, 2 * column : 2 * column + 2]) for column in range(3))
    _draw_blocks(figure, blocks, mask, graph, node, head)
    _draw_errors(errors, mask, graph, num_walks, repeats, num_rows, head)
    _draw_entries(entries, mask, graph)
    return figure


def _draw_blocks(figure: Any, axes: Any, mask: GRFMask, graph: Graph, node: int | None, head: int) -> None:
    nodes = neighborhood(graph, node)
    rows = [
        (exact[:, head, nodes], estimate[:, head, nodes]) for _, exact, estimate in diagnostics.compare_rows(mask, graph, nodes)
    ]
    blocks = [torch.cat(block).cpu() for block in zip(*rows, strict=True)]
    # The diagonal would make all other entries dark.
    apart = blocks[0] - blocks[0].diagonal().diag()
    largest = float(apart.abs().max()) or float(blocks[0].abs().max()) or 1.0
    signed = min(float(block.min()) for block in blocks) < 0
    titles = ('exact mask', f'estimate, {mask.walk_settings.num_walks} walks')
    for axis, block, title in zip(axes, blocks, titles, strict=True):
        image = draw_block(axis, block, int(nodes[0]), title, largest, signed)
    figure.colorbar(image, ax=axes, extend='both' if signed else 'max', label='entry $M_{ij}$')


def _draw_errors(
    axes: Any, mask: GRFMask, graph: Graph, num_walks: Sequence[int], repeats: int, num_rows: int, head: int
) -> None:
    numbers = [number for number in num_walks if number % 2 == 0 or not SAMPLERS[mask.walk_settings.sampler].paired]
    relative, largest = [], []
    for number in numbers:
        other, measured = copy.copy(mask), []
        other.walk_settings = replace(mask.walk_settings, num_walks=number)
        for seed in range(repeats):
            walks = torch.Generator(graph.device).manual_seed(seed)
            measured.append(diagnostics.mask_error(other, graph, num_rows, seed, walks))
        relative.append(torch.stack([error.relative[head] for error in measured]).mean().item())
        largest.append(torch.stack([error.max_abs[head] for error in measured]).mean().item())
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    errors, deviations = axes
    errors.plot(numbers, np.array(relative), marker='o')
    errors.set(title='relative error of rows', ylabel='relative error (Frobenius norm)')
    deviations.plot(numbers, np.array(largest), marker='s', color='C1', label='largest that was measured')
    c = diagnostics.load_constant(mask, graph, walkwise=True)[head]
    if bool(c.isfinite()) and mask.walk_settings.sampler == 'iid':
        bound = [diagnostics.guaranteed_deviation(number, _DELTA, c).item() for number in numbers]
        deviations.plot(numbers, np.array(bound), 'k--', label='Eq. 11: an entry deviates less (95 %)')
    deviations.set(title='deviation of an entry', ylabel='deviation, in units of the entries')
    legend_above(deviations)
    for axis in axes:
        drawn = any((line.get_ydata() > 0).any() for line in axis.lines)  # a logarithm shows no 0
        axis.set(xlabel='walks per node', xscale='log', yscale='log' if drawn else 'linear')
        axis.set_xticks(numbers, [str(number) for number in numbers])
        axis.set_xticks([], minor=True)
        if drawn:
            axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axis.yaxis.set_major_formatter(StrMethodFormatter('{x:g}'))
            axis.yaxis.set_minor_formatter(NullFormatter())
        axis.grid(alpha=0.3)


def _draw_entries(axis: Any, mask: GRFMask, graph: Graph) -> None:
    entries, settings = diagnostics.measured_entries(mask, graph), mask.walk_settings
    for count, name in zip(entries, ('features', 'mask'), strict=True):
        label = f'{name}: {count.double().mean():.1f} on average'
        axis.hist(count.cpu(), bins=min(50, int(count.max())), alpha=0.6, label=label)
    if settings.walk_length is None and not SAMPLERS[settings.sampler].paired:
        bound = diagnostics.sparsity_bound(settings.num_walks, settings.p_halt, _DELTA, settings.max_walk_length)
        axis.axvline(bound, color='k', linestyle='--', label='Lemma 3.3, features (95 %)')
    axis.set(title='entries per row', xlabel='entries of a row', ylabel='number of nodes')
    legend_above(axis)
