r"""Plots of how well walks estimate a mask."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import breadth_first_order
from torch import Tensor
from torch_geometric.data import Data

from pyg_topomask.checks import check_whole
from pyg_topomask.diagnostics import (
    compare_rows,
    guaranteed_deviation,
    load_constant,
    mask_error,
    measured_entries,
    sparsity_bound,
)
from pyg_topomask.errors import ArgumentError
from pyg_topomask.graph import Graph
from pyg_topomask.masks import GRFMask
from pyg_topomask.viz.figure import new_figure
from pyg_topomask.walks.samplers import SAMPLERS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ['plot_inspection']

# The probability that a plotted bound is exceeded.
_DELTA = 0.05


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

    Returns:
        matplotlib.figure.Figure: The figure, to be saved or displayed.

    Raises:
        ImportError: If Matplotlib is not installed.
        ValueError: If the graph has no nodes, an argument is outside its range, or the mask counts visits.

    Example:
        >>> data = Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=2)
        >>> len(plot_inspection(GRFMask(), data, num_walks=[1, 2]).axes)
        5
    """
    graph = Graph.of(graph)
    check_whole(0, mask.heads - 1, head=head)
    check_whole(1, repeats=repeats)
    for number in num_walks:
        check_whole(1, num_walks=number)
    figure = new_figure(11, 8)
    axes = figure.subplots(2, 2)
    _draw_blocks(figure, axes[0], mask, graph, node, head)
    _draw_errors(axes[1, 0], mask, graph, num_walks, repeats, num_rows, head)
    _draw_entries(axes[1, 1], mask, graph)
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
        image = axis.imshow(block, vmin=-largest if signed else 0.0, vmax=largest, cmap='RdBu_r' if signed else 'viridis')
        axis.set(title=title, xlabel=f'nodes nearest to node {int(nodes[0])}')
    figure.colorbar(image, ax=list(axes), extend='both' if signed else 'max')


def _draw_errors(
    axis: Any, mask: GRFMask, graph: Graph, num_walks: Sequence[int], repeats: int, num_rows: int, head: int
) -> None:
    numbers = [number for number in num_walks if number % 2 == 0 or not SAMPLERS[mask.walk_settings.sampler].antithetic]
    relative, largest = [], []
    for number in numbers:
        errors = []
        for seed in range(repeats):
            walks = torch.Generator(graph.device).manual_seed(seed)
            errors.append(mask_error(_with_walks(mask, number), graph, num_rows, seed, walks))
        relative.append(torch.stack([error.relative[head] for error in errors]).mean().item())
        largest.append(torch.stack([error.max_abs[head] for error in errors]).mean().item())
    axis.plot(numbers, relative, marker='o', label='relative error (Frobenius)')
    axis.plot(numbers, largest, marker='s', label='largest deviation of an entry')
    c = load_constant(mask, graph, walkwise=True)[head]
    if bool(c.isfinite()) and mask.walk_settings.sampler == 'iid':
        bound = [guaranteed_deviation(number, _DELTA, c).item() for number in numbers]
        axis.plot(numbers, bound, 'k--', label='Eq. 11: an entry deviates less (95 %)')
    axis.set(title='error', xlabel='walks per node', xscale='log', yscale='log')
    axis.grid(alpha=0.3)
    axis.legend(fontsize='small')


def _with_walks(mask: GRFMask, num_walks: int) -> GRFMask:
    other = copy.copy(mask)
    other.walk_settings = replace(mask.walk_settings, num_walks=num_walks)
    return other


def _draw_entries(axis: Any, mask: GRFMask, graph: Graph) -> None:
    entries, settings = measured_entries(mask, graph), mask.walk_settings
    for count, name in zip(entries, ('features', 'mask'), strict=True):
        label = f'{name}: {count.double().mean():.1f} on average'
        axis.hist(count.cpu(), bins=min(50, int(count.max())), alpha=0.6, label=label)
    if settings.walk_length is None and not SAMPLERS[settings.sampler].antithetic:
        bound = sparsity_bound(settings.num_walks, settings.p_halt, _DELTA, settings.max_walk_length)
        axis.axvline(bound, color='k', linestyle='--', label='Lemma 3.3, features (95 %)')
    axis.set(title='entries per row', xlabel='entries', ylabel='nodes')
    axis.legend(fontsize='small')
