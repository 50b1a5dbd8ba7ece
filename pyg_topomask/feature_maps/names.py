r"""Feature maps by name."""

from __future__ import annotations

from pyg_topomask.errors import ArgumentError
from pyg_topomask.feature_maps.dense_exponential import DenseExponentialFeatures
from pyg_topomask.feature_maps.elementwise import EluFeatures, FocusedFeatures, IdentityFeatures, ReLUFeatures, SquareFeatures
from pyg_topomask.feature_maps.feature_map import FeatureMap
from pyg_topomask.feature_maps.random_features import (
    FavorFeatures,
    FourierFeatures,
    PositiveFeatures,
    RandomFeatures,
    SimplexFeatures,
)

FEATURE_MAPS: dict[str, type[FeatureMap]] = {
    'relu': ReLUFeatures,
    'elu': EluFeatures,
    'square': SquareFeatures,
    'focused': FocusedFeatures,
    'favor': FavorFeatures,
    'positive': PositiveFeatures,
    'simplex': SimplexFeatures,
    'derf': DenseExponentialFeatures,
    'fourier': FourierFeatures,
    'identity': IdentityFeatures,
}


def feature_map_of_name(name: str, channels: int) -> FeatureMap:
    r"""Returns the feature map with a name in :obj:`FEATURE_MAPS`. The names of random features may include their number, as in
    :obj:`"favor:64"`.

    Example:
        >>> feature_map_of_name('favor:64', 16)
        FavorFeatures(16, num_features=64, orthogonal=True)
    """
    kind, colon, number = name.partition(':')
    random = {key: made for key, made in FEATURE_MAPS.items() if issubclass(made, RandomFeatures)}
    if kind in FEATURE_MAPS and not colon:
        return FEATURE_MAPS[kind](channels)
    if kind in random and number.isdecimal():
        return random[kind](channels, num_features=int(number))
    raise ArgumentError(
        'feature_map',
        repr(name),
        f'{", ".join(FEATURE_MAPS)}, with a number of features as in favor:64 {", ".join(random)}, and FeatureMap modules',
        'MaskedSoftmaxAttention is exact, and attention(word, feature_map="softmax")' if name == 'softmax' else '',
    )
