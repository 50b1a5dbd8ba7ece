r"""Topological masks, one family a file."""

from pyg_topomask.masks.adjacency import AdjacencyMask
from pyg_topomask.masks.base import HadamardMask, Mask, ScaledMask, SumMask, TransposedMask
from pyg_topomask.masks.dense import DenseMask
from pyg_topomask.masks.grf import GRFMask
from pyg_topomask.masks.low_rank import LearnedFeaturesMask, LowRankMask, PackingMask
from pyg_topomask.masks.modulation import KERNELS, convolve, deconvolve, kernel_series, modulation
from pyg_topomask.masks.power_series import PowerSeriesMask

__all__ = [
    'KERNELS',
    'AdjacencyMask',
    'DenseMask',
    'GRFMask',
    'HadamardMask',
    'LearnedFeaturesMask',
    'LowRankMask',
    'Mask',
    'PackingMask',
    'PowerSeriesMask',
    'ScaledMask',
    'SumMask',
    'TransposedMask',
    'convolve',
    'deconvolve',
    'kernel_series',
    'modulation',
]
