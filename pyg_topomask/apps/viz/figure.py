r"""Creation of figures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def new_figure(width: float, height: float) -> Figure:
    r"""Returns an empty figure.

    Args:
        width (float): Its width in inches.
        height (float): Its height in inches.

    Raises:
        ImportError: If Matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError('pictures need Matplotlib: install pyg_topomask with its extra [viz]') from error
    # Not with pyplot, which would keep the figure and select a GUI backend.
    return Figure(figsize=(width, height), layout='constrained')


def color_scale(largest: float, signed: bool) -> dict[str, Any]:
    r"""Returns the colors of entries, as arguments of Matplotlib: dark is large, and red is negative.

    Args:
        largest (float): The largest absolute entry that has a separate color.
        signed (bool): Whether there are negative entries.
    """
    return {'cmap': 'RdBu' if signed else 'YlGnBu', 'vmin': -largest if signed else 0.0, 'vmax': largest}
