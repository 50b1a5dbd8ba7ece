r"""Feature maps of linear attention, applied to queries and keys."""

from pyg_topomask.feature_maps.dense_exponential import DenseExponentialFeatures
from pyg_topomask.feature_maps.elementwise import EluFeatures, FocusedFeatures, IdentityFeatures, ReLUFeatures, SquareFeatures
from pyg_topomask.feature_maps.feature_map import FeatureMap
from pyg_topomask.feature_maps.random_features import FavorFeatures, FourierFeatures, PositiveFeatures, SimplexFeatures

__all__ = [
    'DenseExponentialFeatures',
    'EluFeatures',
    'FavorFeatures',
    'FeatureMap',
    'FocusedFeatures',
    'FourierFeatures',
    'IdentityFeatures',
    'PositiveFeatures',
    'ReLUFeatures',
    'SimplexFeatures',
    'SquareFeatures',
]
