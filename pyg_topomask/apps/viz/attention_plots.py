r"""Plots of attention, as in the thesis "Bringing k-MIP Attention to Graph Transformers" (Sec. 6.7, 6.8)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from pyg_topomask.apps.diagnostics.attention_statistics import attention_degrees
from pyg_topomask.apps.viz.drawing import draw_edges, in_the_plane, new_figure
from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.utils.checks import check_shape, check_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot_attention_graphs(
    attention: Sequence[tuple[Tensor, Tensor]], pos: Tensor, edge_index: Tensor | None = None, max_edges: int = 5000
) -> Figure:
    r"""Plots the attention graph of each head (columns) of each layer (rows) at the positions of the nodes, as in Fig. 6.9 of
    the thesis. The opacity of an edge is its coefficient relative to the largest one of its head. The color of a node is its
    out-degree, see :func:`~pyg_topomask.apps.diagnostics.attention_degrees`.

    Args:
        attention (sequence of (torch.Tensor, torch.Tensor)): The result of
            :obj:`return_attention_weights` for each layer: the pairs :obj:`(j, i)`, :obj:`[2, nnz]`, and the coefficients,
            :obj:`[nnz, H]`.
        pos (torch.Tensor): The positions of the nodes, :obj:`[N, 2]`. Positions with more dimensions are projected to their
            first two principal components, and positions with one dimension are on a line.
        edge_index (torch.Tensor, optional): The edges of the input graph, plotted in a row above. (default: :obj:`None`)
        max_edges (int): The number of edges to plot per head, those with the largest coefficients. (default: :obj:`5000`)

    Raises:
        ValueError: If the tensors do not fit each other, or there is no layer or no head.

    Example:
        >>> layer = torch.tensor([[0, 1, 1], [0, 0, 1]]), torch.tensor([[0.7], [0.3], [1.0]])
        >>> figure = plot_attention_graphs([layer, layer], pos=torch.tensor([[0.0, 0.0], [1.0, 1.0]]))
    """
    if len(attention) == 0 or any(alpha.dim() != 2 or alpha.size(1) == 0 for _, alpha in attention):
        shapes = [tuple(alpha.shape) for _, alpha in attention]
        raise ArgumentError('attention', f'coefficients of shapes {shapes}', 'one or more of [nnz, heads]')
    check_shape(('N', 'dimensions'), pos=pos)
    if pos.size(1) == 0 or not bool(pos.isfinite().all()):
        given = 'no dimension' if pos.size(1) == 0 else 'NaN or infinite numbers'
        raise ArgumentError('pos', given, 'finite positions in one or more dimensions')
    if edge_index is not None:
        edge_index = Graph.from_tensors(edge_index, pos.size(0)).edge_index
    check_whole(1, max_edges=max_edges)
    degrees = [attention_degrees(*layer, num_nodes=pos.size(0)) for layer in attention]
    attention = [(pairs, alpha.detach()) for pairs, alpha in attention]
    place = in_the_plane(pos)
    above = int(edge_index is not None)
    rows, columns = above + len(attention), max(alpha.size(1) for _, alpha in attention)
    figure = new_figure(2.2 * columns + 1, 2.2 * rows)
    axes = figure.subplots(rows, columns, squeeze=False)
    for axis in axes.flat:
        axis.set_axis_off()
    size = max(1.0, min(12.0, 2000 / max(pos.size(0), 1)))
    if edge_index is not None:
        axis = axes[0, 0]
        opacity = torch.full((edge_index.size(1),), 0.5, device=edge_index.device)
        _draw_largest(axis, place, edge_index, opacity, max_edges)
        axis.scatter(*place.t(), s=size, color='black')
        axis.set_title('input graph', fontsize='small')
    for layer, ((pairs, alpha), degree) in enumerate(zip(attention, degrees, strict=True)):
        most = max(int(degree.max()) if degree.numel() > 0 else 0, 1)
        for head in range(alpha.size(1)):
            axis = axes[above + layer, head]
            largest = float(alpha[:, head].abs().max()) if alpha.size(0) > 0 else 1.0
            _draw_largest(axis, place, pairs, alpha[:, head].abs() / (largest or 1.0), max_edges)
            # Few nodes receive much attention. They are plotted on top.
            order = degree[:, head].argsort().cpu()
            color = degree[order.to(degree.device), head].cpu()
            points = axis.scatter(*place[order].t(), s=size, c=color, cmap='viridis', vmin=0, vmax=most, zorder=2)
            axis.set_title(f'layer {layer + 1}, head {head + 1}', fontsize='small')
        figure.colorbar(points, ax=list(axes[above + layer]), label='out-degree', shrink=0.8)
    return figure


def _draw_largest(axis: Any, place: Tensor, edge_index: Tensor, opacity: Tensor, max_edges: int) -> None:
    chosen = ((opacity > 0) & (edge_index[0] != edge_index[1])).nonzero().squeeze(1)
    chosen = chosen[opacity[chosen].argsort(descending=True, stable=True)[:max_edges]]
    if chosen.numel() > 0:
        alpha = opacity[chosen].cpu().double().numpy()
        draw_edges(axis, place, edge_index[:, chosen].cpu(), colors='black', alpha=alpha, linewidths=0.6)


def plot_attention_degrees(degrees: Sequence[Tensor], bins: int = 20) -> Figure:
    r"""Plots, for each layer, the distribution of out-degrees in the attention graphs, over nodes and over edges, as in
    Fig. 6.10 of the thesis.

    Args:
        degrees (sequence of torch.Tensor): The out-degrees of the nodes of one or more graphs for each layer,
            :obj:`[N, H]`, see :func:`~pyg_topomask.apps.diagnostics.attention_degrees`.
        bins (int): The largest number of bins. (default: :obj:`20`)

    Raises:
        ValueError: If there is no layer, a tensor has the wrong shape, or :obj:`bins` is below 1.

    Example:
        >>> len(plot_attention_degrees([torch.tensor([[3, 0], [1, 1]])]).axes)
        2
    """
    if len(degrees) == 0 or any(degree.dim() != 2 for degree in degrees):
        raise ArgumentError('degrees', f'shapes {[tuple(degree.shape) for degree in degrees]}', 'one or more of [N, heads]')
    check_whole(1, bins=bins)
    figure = new_figure(8, 2.4 * len(degrees))
    axes = figure.subplots(len(degrees), 2, squeeze=False, sharex='row')
    for layer, degree in enumerate(degrees):
        values = degree.detach().flatten().cpu().double()
        most = int(values.max()) if values.numel() > 0 else 0
        width = -(-(most + 1) // bins)  # integers, because otherwise bins would contain different numbers of degrees
        edges = torch.arange(0, most + 1 + width, width) - 0.5
        left, right = axes[layer]
        left.hist(values.numpy(), bins=edges.numpy())
        left.set(title=f'layer {layer + 1}: nodes', ylabel='nodes')
        right.hist(values.numpy(), bins=edges.numpy(), weights=values.numpy(), color='C1')
        right.set(title=f'layer {layer + 1}: edges from nodes of that degree', ylabel='edges')
    for axis in axes[-1]:
        axis.set_xlabel('out-degree in the attention graph')
    return figure


def plot_cumulative_attention(ks: Sequence[int], cumulative: Sequence[Tensor]) -> Figure:
    r"""Plots the total weight of the :math:`k` largest coefficients of a node, one curve per layer with mean and standard
    deviation over heads, as in Fig. 6.7 of the thesis.

    Args:
        ks (sequence of int): The numbers :math:`k`.
        cumulative (sequence of torch.Tensor): The result of
            :func:`~pyg_topomask.apps.diagnostics.cumulative_attention` or
            :func:`~pyg_topomask.apps.diagnostics.cumulative_full_attention` for each layer, :obj:`[len(ks), H]`. The columns
            of several graphs may be concatenated.

    Raises:
        ValueError: If there is no layer, or a tensor does not fit the numbers.

    Example:
        >>> figure = plot_cumulative_attention([1, 2], [torch.tensor([[0.6, 0.7], [1.0, 1.0]])])
    """
    figure = _plot_curves(ks, cumulative, 'cumulative')
    figure.axes[0].set(ylabel='weight of the k largest coefficients', ylim=(0, 1.02))
    return figure


def plot_distance_to_full_attention(ks: Sequence[int], distance: Sequence[Tensor]) -> Figure:
    r"""Plots the distance between attention to the best :math:`k` keys and full attention, as :func:`plot_cumulative_attention`
    plots weights, and as in Fig. 6.6 of the thesis.

    Args:
        ks (sequence of int): The numbers :math:`k`.
        distance (sequence of torch.Tensor): The result of
            :func:`~pyg_topomask.apps.diagnostics.distance_to_full_attention` for each layer, :obj:`[len(ks), H]`.

    Example:
        >>> figure = plot_distance_to_full_attention([1, 2], [torch.tensor([[0.3, 0.1], [0.0, 0.0]])])
    """
    figure = _plot_curves(ks, distance, 'distance')
    figure.axes[0].set(ylabel='L2 distance to full attention')
    figure.axes[0].set_ylim(bottom=0)
    return figure


def _plot_curves(ks: Sequence[int], curves: Sequence[Tensor], name: str) -> Figure:
    if len(curves) == 0 or any(curve.dim() != 2 or curve.size(0) != len(ks) or curve.size(1) == 0 for curve in curves):
        shapes = [tuple(curve.shape) for curve in curves]
        raise ArgumentError(name, f'shapes {shapes}', f'one or more of [{len(ks)}, heads], for as many numbers k')
    figure = new_figure(6, 4)
    axis = figure.subplots()
    for layer, curve in enumerate(curves):
        values = curve.detach().double().cpu()
        mean, deviation = values.mean(1), values.std(1, correction=0)
        (line,) = axis.plot(ks, mean.numpy(), marker='o', markersize=3, label=f'layer {layer + 1}')
        axis.fill_between(ks, (mean - deviation).numpy(), (mean + deviation).numpy(), alpha=0.2, color=line.get_color())
    axis.set(xlabel='k', xscale='log')
    axis.grid(alpha=0.3)
    figure.legend(fontsize='small', loc='outside right upper')
    return figure
