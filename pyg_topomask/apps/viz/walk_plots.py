r"""A plot of how well walks estimate a mask."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch_geometric.data import Data

from pyg_topomask.apps.diagnostics import (
    compare_rows,
    guaranteed_deviation,
    load_constant,
    mask_error,
    measured_entries,
    sparsity_bound,
)
from pyg_topomask.apps.viz.drawing import draw_block, legend_above, neighborhood, new_figure
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks import GRFMask
from pyg_topomask.utils.checks import check_whole
from pyg_topomask.walks.samplers import SAMPLERS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
    rows = [(exact[:, head, nodes], estimate[:, head, nodes]) for _, exact, estimate in compare_rows(mask, graph, nodes)]
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
        measured = []
        for seed in range(repeats):
            walks = torch.Generator(graph.device).manual_seed(seed)
            measured.append(mask_error(_with_walks(mask, number), graph, num_rows, seed, walks))
        relative.append(torch.stack([error.relative[head] for error in measured]).mean().item())
        largest.append(torch.stack([error.max_abs[head] for error in measured]).mean().item())
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    errors, deviations = axes
    errors.plot(numbers, np.array(relative), marker='o')
    errors.set(title='relative error of rows', ylabel='relative error (Frobenius norm)')
    deviations.plot(numbers, np.array(largest), marker='s', color='C1', label='largest that was measured')
    c = load_constant(mask, graph, walkwise=True)[head]
    if bool(c.isfinite()) and mask.walk_settings.sampler == 'iid':
        bound = [guaranteed_deviation(number, _DELTA, c).item() for number in numbers]
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


def _with_walks(mask: GRFMask, num_walks: int) -> GRFMask:
    other = copy.copy(mask)
    other.walk_settings = replace(mask.walk_settings, num_walks=num_walks)
    return other


def _draw_entries(axis: Any, mask: GRFMask, graph: Graph) -> None:
    entries, settings = measured_entries(mask, graph), mask.walk_settings
    for count, name in zip(entries, ('features', 'mask'), strict=True):
        label = f'{name}: {count.double().mean():.1f} on average'
        axis.hist(count.cpu(), bins=min(50, int(count.max())), alpha=0.6, label=label)
    if settings.walk_length is None and not SAMPLERS[settings.sampler].paired:
        bound = sparsity_bound(settings.num_walks, settings.p_halt, _DELTA, settings.max_walk_length)
        axis.axvline(bound, color='k', linestyle='--', label='Lemma 3.3, features (95 %)')
    axis.set(title='entries per row', xlabel='entries of a row', ylabel='number of nodes')
    legend_above(axis)
