r"""PyG transforms that build graphs from positions and images, and that store precomputed data of masks."""

from pyg_topomask.transforms.add_graph_random_features import AddGraphRandomFeatures
from pyg_topomask.transforms.add_random_walk_kernel import AddRandomWalkKernel
from pyg_topomask.transforms.add_svd_encoding import AddSVDEncoding
from pyg_topomask.transforms.forest import AddForest
from pyg_topomask.transforms.grid import AddGridShape, ToGridGraph
from pyg_topomask.transforms.knn_graph import KNNGraph
from pyg_topomask.transforms.normals import AddNormals
from pyg_topomask.transforms.sampling import FarthestSampling, RandomSampling
from pyg_topomask.transforms.spanning_forest import AddSpanningForest

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
    'RandomSampling',
    'ToGridGraph',
]
