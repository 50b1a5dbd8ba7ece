r"""PyG transforms: graphs from positions, and what masks prepare, stored on the data."""

from pyg_topomask.transforms.add_graph_random_features import AddGraphRandomFeatures
from pyg_topomask.transforms.knn_graph import KNNGraph

__all__ = ['AddGraphRandomFeatures', 'KNNGraph']
