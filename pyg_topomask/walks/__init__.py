r"""Random walks and their sparse features."""

from pyg_topomask.walks.lengths import FixedLength, GeometricLength, PoissonLength, SurvivalLength, WalkLength
from pyg_topomask.walks.settings import WalkSettings
from pyg_topomask.walks.walk import sample_walks

__all__ = ['FixedLength', 'GeometricLength', 'PoissonLength', 'SurvivalLength', 'WalkLength', 'WalkSettings', 'sample_walks']
