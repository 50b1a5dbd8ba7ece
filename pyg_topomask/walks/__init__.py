r"""Random walks and the sparse features that they make."""

from pyg_topomask.walks.features import PairLoads, WalkFeatures
from pyg_topomask.walks.lengths import geometric_survival
from pyg_topomask.walks.sampler import SAMPLERS, IIDSampler, sample_walks
from pyg_topomask.walks.settings import WalkSettings
from pyg_topomask.walks.uniform import counter_uniform, generator_uniform

__all__ = [
    'SAMPLERS',
    'IIDSampler',
    'PairLoads',
    'WalkFeatures',
    'WalkSettings',
    'counter_uniform',
    'generator_uniform',
    'geometric_survival',
    'sample_walks',
]
