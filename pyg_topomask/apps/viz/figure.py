r"""What the pictures share: figures, colors, edges and blocks of entries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch import Tensor

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
