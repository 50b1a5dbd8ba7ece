r"""Datasets that need no download, and loaders of files without a PyG class."""

from __future__ import annotations

from torch_geometric.data import InMemoryDataset

from pyg_topomask.apps.datasets.digits import DigitsGrid
from pyg_topomask.apps.datasets.induced_cycles import InducedCycles
from pyg_topomask.apps.datasets.majority_trees import MajorityTrees
from pyg_topomask.apps.datasets.meshes import MeshNormals
from pyg_topomask.apps.datasets.motifs import MotifGraphs
from pyg_topomask.apps.datasets.moving_digits import MovingDigits
from pyg_topomask.apps.datasets.particles import ClothRollouts
from pyg_topomask.apps.datasets.peptides import PeptidesFunctional
from pyg_topomask.apps.datasets.pixels import CIFAR10Pixels, MNISTPixels
from pyg_topomask.apps.datasets.point_clouds import SceneBlocks, UrbanObjects
from pyg_topomask.apps.datasets.roads import RoadEccentricity

__all__ = [
    'CIFAR10Pixels',
    'ClothRollouts',
    'DigitsGrid',
    'InducedCycles',
    'MNISTPixels',
    'MajorityTrees',
    'MeshNormals',
    'MotifGraphs',
    'MovingDigits',
    'PeptidesFunctional',
    'RoadEccentricity',
    'SceneBlocks',
    'UrbanObjects',
]

#: Datasets by the name that :obj:`dataset.name` uses with :obj:`dataset.format: topomask`.
DATASETS: dict[str, type[InMemoryDataset]] = {
    'digits': DigitsGrid,
    'mnist-pixels': MNISTPixels,
    'cifar10-pixels': CIFAR10Pixels,
    'urban-objects': UrbanObjects,
    'table-scans': SceneBlocks,
    'peptides-func': PeptidesFunctional,
    'motifs': MotifGraphs,
    'induced-cycles': InducedCycles,
    'majority-trees': MajorityTrees,
    'road-eccentricity': RoadEccentricity,
    'mesh-normals': MeshNormals,
    'moving-digits': MovingDigits,
    'cloth': ClothRollouts,
}
