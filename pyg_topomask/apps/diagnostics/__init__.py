r"""Diagnostics of graph random features (theoretical bounds and measured errors), of the receptive field of masks, of spanning
forests, and of attention.

All functions raise a :class:`ValueError` if tensors do not fit each other, a node does not exist, a number is outside its
range, or a mask or layer is of another kind. What compares a :class:`~pyg_topomask.masks.GRFMask` with the exact mask also
rejects masks that count visits (:obj:`importance=False`), because these do not estimate a function of :math:`\mathbf{W}`.
"""

from pyg_topomask.apps.diagnostics.attention_statistics import (
    attention_degrees,
    cumulative_attention,
    cumulative_full_attention,
    distance_to_full_attention,
)
from pyg_topomask.apps.diagnostics.bounds import (
    deviation_bound,
    guaranteed_deviation,
    load_constant,
    sparsity_bound,
    suggest_num_walks,
)
from pyg_topomask.apps.diagnostics.color_refinement import color_refinement, wl_equivalent
from pyg_topomask.apps.diagnostics.measured import compare_rows, mask_error, measured_entries
from pyg_topomask.apps.diagnostics.rows import attention_rows, edge_stretch, mask_rows, weight_by_hops

__all__ = [
    'attention_degrees',
    'attention_rows',
    'color_refinement',
    'compare_rows',
    'cumulative_attention',
    'cumulative_full_attention',
    'deviation_bound',
    'distance_to_full_attention',
    'edge_stretch',
    'guaranteed_deviation',
    'load_constant',
    'mask_error',
    'mask_rows',
    'measured_entries',
    'sparsity_bound',
    'suggest_num_walks',
    'weight_by_hops',
    'wl_equivalent',
]
