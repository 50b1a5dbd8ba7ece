r"""PyG transforms that build graphs from positions and images, and that store precomputed data of masks.

An argument outside its range, and data that a transform does not take, raise an :class:`~pyg_topomask.errors.ArgumentError`.
Only :class:`AddSVDEncoding` takes heterogeneous data, and only :class:`KNNGraph` and :class:`AddNormals` take a batch.

Every transform also takes a list of graphs and returns a list, with the numbers of one graph at a time.
:class:`AddGraphRandomFeatures`, :class:`AddRandomWalkKernel` and :class:`AddSVDEncoding` then treat many small graphs at once,
several times as fast.

Transforms that store walks, forests or encodings need :obj:`edge_index` or :obj:`adj_t`.
"""

from pyg_topomask.transforms.add_svd_encoding import AddSVDEncoding
from pyg_topomask.transforms.geometry import AddGridShape, AddNormals, FarthestSampling, KNNGraph, RandomSampling, ToGridGraph
from pyg_topomask.transforms.precomputed import (
    AddForest,
    AddGraphRandomFeatures,
    AddRandomWalkKernel,
    AddSpanningForest,
    PrepareMasks,
)

__all__ = [
    'AddForest',
    'AddGraphRandomFeatures',
    'AddGridShape',
    'AddNormals',
    'AddRandomWalkKernel',
    'AddSVDEncoding',
    'AddSpanningForest',
    'FarthestSampling',
    'KNNGraph',
    'PrepareMasks',
    'RandomSampling',
    'ToGridGraph',
]
