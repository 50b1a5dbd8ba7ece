r"""Random walks and the sparse features that they make."""

from pyg_topomask.walks.features import PairLoads, WalkFeatures
from pyg_topomask.walks.lengths import FixedLength, GeometricLength, PoissonLength, SurvivalLength, WalkLength
from pyg_topomask.walks.samplers import (
    SAMPLERS,
    AntitheticSampler,
    IIDSampler,
    RepellingAntitheticSampler,
    RepellingSampler,
)
from pyg_topomask.walks.settings import WalkSettings
from pyg_topomask.walks.uniform import counter_uniform
from pyg_topomask.walks.walk import sample_ensembles, sample_walks

__all__ = [
    'SAMPLERS',
    'AntitheticSampler',
    'FixedLength',
    'GeometricLength',
    'IIDSampler',
    'PairLoads',
    'PoissonLength',
    'RepellingAntitheticSampler',
    'RepellingSampler',
    'SurvivalLength',
    'WalkFeatures',
    'WalkLength',
    'WalkSettings',
    'counter_uniform',
    'sample_ensembles',
    'sample_walks',
]
