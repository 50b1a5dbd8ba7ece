"""Sampled features of walks, and their loads as matrices."""

import numpy as np
import torch
from graphs import GRAPHS
from numpy.typing import NDArray

from pyg_topomask.graphs.graph import Graph
from pyg_topomask.walks import WalkSettings
from pyg_topomask.walks.features import WalkFeatures
from pyg_topomask.walks.walk import sample_ensembles

MODULATION = torch.tensor([[1.0, 0.5, 0.3, -0.2], [-0.5, 2.0, 0.0, 1.0]], dtype=torch.float64)


def walks(name: str = 'directed') -> tuple[WalkFeatures, WalkFeatures]:
    """Those of queries and of keys."""
    return sample_ensembles(Graph.from_data(GRAPHS[name]()), WalkSettings(4, 0.3, 3, independent_ensembles=True), seed=0)


def load_matrices(features: WalkFeatures) -> NDArray[np.float64]:
    """P_l as matrices; entries must be distinct."""
    loads = np.zeros((features.max_walk_length + 1, features.num_nodes, features.num_nodes))
    loads[features.length.numpy(), features.start.numpy(), features.visited.numpy()] = features.load.numpy()
    return loads


def modulated(features: WalkFeatures, modulation: torch.Tensor = MODULATION) -> NDArray[np.float64]:
    return np.einsum('hl,lij->hij', modulation.numpy(), load_matrices(features))
