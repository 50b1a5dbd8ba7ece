r"""Topological masks, one family per file."""

from pyg_topomask.masks.adjacency import AdjacencyMask
from pyg_topomask.masks.base.mask import HadamardMask, Mask, MultiHeadMask, ScaledMask, SumMask, TransposedMask
from pyg_topomask.masks.base.series import convolve, deconvolve, kernel_series, modulation
from pyg_topomask.masks.bigbird import BigBirdMask
from pyg_topomask.masks.causal import CausalMask
from pyg_topomask.masks.dense import DenseMask
from pyg_topomask.masks.expander import ExpanderMask
from pyg_topomask.masks.grf import GRFMask
from pyg_topomask.masks.heat_kernel import HeatKernelMask
from pyg_topomask.masks.hop import HopMask
from pyg_topomask.masks.hypercube import HypercubeMask
from pyg_topomask.masks.low_rank import LearnedFeaturesMask, LowRankMask, PackingMask, PaddingMask, StochasticRPEMask
from pyg_topomask.masks.power_series import PowerSeriesMask
from pyg_topomask.masks.rwgnk import RWGNKMask
from pyg_topomask.masks.sin_degree import SinDegreeMask
from pyg_topomask.masks.toeplitz import ToeplitzMask
from pyg_topomask.masks.tree import TreeMask
from pyg_topomask.operators.base import low_rank_operator
from pyg_topomask.operators.sparse import sparse_operator

__all__ = [
    'AdjacencyMask',
    'BigBirdMask',
    'CausalMask',
    'DenseMask',
    'ExpanderMask',
    'GRFMask',
    'HadamardMask',
    'HeatKernelMask',
    'HopMask',
    'HypercubeMask',
    'LearnedFeaturesMask',
    'LowRankMask',
    'Mask',
    'MultiHeadMask',
    'PackingMask',
    'PaddingMask',
    'PowerSeriesMask',
    'RWGNKMask',
    'ScaledMask',
    'SinDegreeMask',
    'StochasticRPEMask',
    'SumMask',
    'ToeplitzMask',
    'TransposedMask',
    'TreeMask',
    'convolve',
    'deconvolve',
    'kernel_series',
    'low_rank_operator',
    'modulation',
    'sparse_operator',
]
