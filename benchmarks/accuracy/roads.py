r"""Tasks on road networks: eccentricity, and the volume of traffic from few counters."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import numpy as np
import torch
from torch_geometric.data import Data
from torch_geometric.utils import from_scipy_sparse_matrix

from benchmarks.accuracy.interpolation import data_to_interpolate
from benchmarks.graphs import Splits
from pyg_topomask.apps.datasets import RoadEccentricity
from pyg_topomask.apps.datasets.public_files import read_roads

__all__ = ['eccentricity_on_roads', 'volume_on_roads']

COUNTERS, EXAMPLES = 0.1, 32


def eccentricity_on_roads(path: Path) -> Data:
    r"""Returns the road network of a file, see :class:`~pyg_topomask.apps.datasets.RoadEccentricity`. Its classes are
    computed once.

    Args:
        path (Path): The file of nodes and links.
    """
    root = Path(tempfile.gettempdir()) / 'topomask_roads'
    root.mkdir(exist_ok=True)
    if not (root / path.name).is_file():
        shutil.copy(path, root)
    data: Data = RoadEccentricity(str(root), name=path.stem)[0]
    return Data(x=data.x, edge_index=data.edge_index, y=data.y)


def volume_on_roads(path: Path, seed: int) -> Splits:
    r"""Returns a road network in which the volume of traffic is known at 10 % of the intersections.

    It is asked for at another 10 % in validation, and at the rest in the test. Training asks for that of a random half of the
    counters from the other half. The volume of an intersection is the logarithm of the sum over its links.

    Args:
        path (Path): The file of nodes, links and volumes.
        seed (int): The seed of the counters.
    """
    matrix, x, volume = read_roads(path)
    generator = np.random.default_rng(seed)
    place = np.empty(len(x))
    place[generator.permutation(len(x))] = np.arange(len(x)) / len(x)
    counter = place < COUNTERS
    target = torch.from_numpy((volume - volume[counter].mean()) / volume[counter].std()).float().unsqueeze(1)
    features = torch.from_numpy(x).float()
    halves = [counter & (generator.random(len(x)) < 0.5) for _ in range(EXAMPLES)]
    asked = [(half, counter & ~half) for half in halves]
    asked += [(counter, (place >= COUNTERS) & (place < 2 * COUNTERS)), (counter, place >= 2 * COUNTERS)]
    edge_index, _ = from_scipy_sparse_matrix(matrix)
    *first, second, third = (data_to_interpolate(edge_index, target, *pair, features) for pair in asked)
    return first, [second], [third]
