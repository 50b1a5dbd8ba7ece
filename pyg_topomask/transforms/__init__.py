r"""PyG transforms that store what masks prepare."""

from pyg_topomask.transforms.add_graph_random_features import AddGraphRandomFeatures

__all__ = ['AddGraphRandomFeatures']
