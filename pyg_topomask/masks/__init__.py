r"""Topological masks, one family a file."""

from pyg_topomask.masks.adjacency import AdjacencyMask
from pyg_topomask.masks.base import HadamardMask, Mask, ScaledMask, SumMask, TransposedMask
from pyg_topomask.masks.dense import DenseMask
from pyg_topomask.masks.grf import GRFMask
from pyg_topomask.masks.low_rank import LowRankMask, PackingMask

__all__ = [
    'AdjacencyMask',
    'DenseMask',
    'GRFMask',
    'HadamardMask',
    'LowRankMask',
    'Mask',
    'PackingMask',
    'ScaledMask',
    'SumMask',
    'TransposedMask',
]
