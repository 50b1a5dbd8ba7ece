r"""Pictures of masks and of attention, and an interactive page of masks. They need the extra :obj:`viz`.

Each plot returns a figure of Matplotlib, to be saved or displayed. Without Matplotlib, it raises an :class:`ImportError`.
"""

from pyg_topomask.apps.viz.attention_plots import (
    plot_attention_degrees,
    plot_attention_graphs,
    plot_cumulative_attention,
    plot_distance_to_full_attention,
)
from pyg_topomask.apps.viz.explore import explore
from pyg_topomask.apps.viz.mask_plots import plot_inspection, plot_mask, plot_mask_rows

__all__ = [
    'explore',
    'plot_attention_degrees',
    'plot_attention_graphs',
    'plot_cumulative_attention',
    'plot_distance_to_full_attention',
    'plot_inspection',
    'plot_mask',
    'plot_mask_rows',
]
