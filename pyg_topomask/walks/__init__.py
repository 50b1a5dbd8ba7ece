r"""Random walks and their sparse features."""

from pyg_topomask.walks.settings import FixedLength, GeometricLength, PoissonLength, SurvivalLength, WalkLength, WalkSettings
from pyg_topomask.walks.walk import RandomWalks, sample_random_walks, sample_walks

__all__ = [
    'FixedLength',
    'GeometricLength',
    'PoissonLength',
    'RandomWalks',
    'SurvivalLength',
    'WalkLength',
    'WalkSettings',
    'sample_random_walks',
    'sample_walks',
]
