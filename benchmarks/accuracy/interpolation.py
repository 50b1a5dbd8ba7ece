r"""Tasks that fill in what was not measured: normals of meshes, and the speed of traffic."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import from_scipy_sparse_matrix

from benchmarks.graphs import Splits, in_batches
from pyg_topomask.apps.datasets.public_files import PATCHES, cut_patch, read_mesh

__all__ = ['data_to_interpolate', 'normals_of_meshes', 'speed_of_traffic']

VERTICES, KNOWN = 2000, 0.05
STEPS = (256, 128, 128)


def normals_of_meshes(train: Path, test: Path, seed: int) -> Splits:
    r"""Returns patches of 2,000 vertices of meshes. The normals of 5 % of the vertices are known; those of the others are to be
    predicted. Patches of training and validation come from one mesh, those of the test from another.

    Args:
        train (Path): The mesh of training and validation.
        test (Path): The mesh of the test.
        seed (int): The seed of patches and known vertices.
    """
    generator = np.random.default_rng(seed)
    meshes = [read_mesh(path) for path in (train, train, test)]
    parts: list[list[Data]] = []
    for mesh, count in zip(meshes, PATCHES, strict=True):
        patches = [cut_patch(*mesh, VERTICES, KNOWN, generator) for _ in range(count)]
        for patch in patches:
            patch.mask = ~patch.known
        parts.append(in_batches(patches, 4))
    return parts[0], parts[1], parts[2]


def data_to_interpolate(
    edge_index: Tensor, target: Tensor, known: NDArray[Any], asked: NDArray[Any], features: Tensor | None = None
) -> Data:
    r"""Returns a graph whose features are the targets of known nodes, 0 at all others, and whether a node is known.

    Args:
        edge_index (Tensor): The edges.
        target (Tensor): The targets of all nodes.
        known (numpy.ndarray): Whether a node is known.
        asked (numpy.ndarray): Whether a node counts.
        features (Tensor, optional): What is known of all nodes. (default: :obj:`None`)
    """
    flag = torch.from_numpy(known).float().unsqueeze(1)
    x = [target * flag, flag] if features is None else [target * flag, flag, features]
    return Data(x=torch.cat(x, 1), edge_index=edge_index, y=target, mask=torch.from_numpy(asked))


def speed_of_traffic(path: Path, seed: int) -> Splits:
    r"""Returns the speeds that 207 sensors of a road network measured at one time, a graph for each time. A quarter of the
    sensors is never known, and is asked for in validation and test. In training half of the others is known, and the other half
    asked for. Training, validation and test follow each other in time.

    Args:
        path (Path): The file of speeds and of the weights between sensors.
        seed (int): The seed of sensors and times.
    """
    stored = np.load(path)
    speed, weight = stored['speed'].astype(np.float64), stored['adj']
    edges = csr_array(np.triu(weight + weight.T, 1) > 0)
    edge_index, _ = from_scipy_sparse_matrix((edges + edges.T).astype(np.float64))
    generator = np.random.default_rng(seed)
    hidden = np.zeros(speed.shape[1], dtype=bool)
    hidden[generator.choice(len(hidden), len(hidden) // 4, replace=False)] = True
    bounds = (0, int(0.6 * len(speed)), int(0.8 * len(speed)), len(speed))
    mean, scale = speed[: bounds[1], ~hidden].mean(), speed[: bounds[1], ~hidden].std()
    parts: list[list[Data]] = []
    for number, count in enumerate(STEPS):
        times = generator.choice(np.arange(bounds[number], bounds[number + 1]), count, replace=False)
        graphs = []
        for time in times:
            known = ~hidden & (generator.random(len(hidden)) < 0.5) if number == 0 else ~hidden
            asked = ~hidden & ~known if number == 0 else hidden
            target = torch.from_numpy((speed[time] - mean) / scale).float().unsqueeze(1)
            graphs.append(data_to_interpolate(edge_index, target, known, asked))
        parts.append(in_batches(graphs, 32))
    return parts[0], parts[1], parts[2]
