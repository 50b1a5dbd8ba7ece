r"""Eccentricity on a road network, by the recipe of `"Towards Quantifying Long-Range Interactions in Graph Machine Learning: a
Large Graph Dataset and a Measurement" <https://arxiv.org/abs/2503.09008>`_.
"""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path

import numpy as np
import torch
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra
from torch_geometric.data import Data

__all__ = ['eccentricity_on_roads']

HOPS = 16
CLASSES = 10


def eccentricity_on_roads(path: Path) -> Data:
    r"""Returns a road network whose classes are the deciles of the eccentricity of each crossing: the length of the longest of
    the shortest ways to the crossings within 16 edges. Roads lead both ways. The features of a crossing are its degree, and the
    means of the logarithms of what is known of its roads, without coordinates.

    Args:
        path (Path): The file of nodes and links.
    """
    stored = np.load(path, allow_pickle=True)
    edges, links = stored['edges'], stored['links']
    size = len(stored['pos'])
    columns = list(stored['link_columns'])
    length = links[:, columns.index('length')] + 1e-3
    matrix = csr_array((length, (edges[:, 0], edges[:, 1])), shape=(size, size))
    matrix = matrix.maximum(matrix.T)
    eccentricity = _eccentricity(matrix)
    bounds = np.quantile(eccentricity, np.linspace(0, 1, CLASSES + 1)[1:-1])
    coo = matrix.tocoo()
    degree = np.bincount(coo.row, minlength=size)
    features = [np.log1p(degree)]
    for name in ('capacity', 'length', 'free_flow_time', 'speed', 'lanes'):
        values = np.log1p(np.abs(links[:, columns.index(name)]))
        total = np.bincount(edges[:, 0], values, size) + np.bincount(edges[:, 1], values, size)
        count = np.bincount(edges[:, 0], minlength=size) + np.bincount(edges[:, 1], minlength=size)
        features.append(total / np.maximum(count, 1))
    x = np.stack(features, 1)
    x = (x - x.mean(0)) / (x.std(0) + 1e-6)
    return Data(
        x=torch.from_numpy(x).float(),
        edge_index=torch.from_numpy(np.stack([coo.row, coo.col])).long(),
        y=torch.from_numpy(np.searchsorted(bounds, eccentricity, side='right')).long(),
    )


def _eccentricity(matrix: csr_array) -> np.ndarray:
    digest = hashlib.sha256(matrix.data.tobytes() + matrix.indices.tobytes()).hexdigest()[:16]
    path = Path(tempfile.gettempdir()) / f'topomask_eccentricity_{digest}.npy'
    if path.is_file():
        stored: np.ndarray = np.load(path)
        return stored
    result = np.zeros(matrix.shape[0])
    neighbors = np.split(matrix.indices, matrix.indptr[1:-1])
    for node in range(matrix.shape[0]):
        reached, frontier = {node}, [node]
        for _ in range(HOPS):
            frontier = list({int(next) for last in frontier for next in neighbors[last]} - reached)
            reached.update(frontier)
        nodes = np.fromiter(reached, dtype=np.int64)
        result[node] = dijkstra(matrix[nodes][:, nodes], indices=int(np.flatnonzero(nodes == node)[0])).max()
    np.save(path, result)
    return result
