r"""Datasets that need no download, and loaders of files without a PyG class. All have four arguments:

- :obj:`root` (str): The folder with the files. Processed graphs are stored in :obj:`processed` there. Datasets that are
  generated in memory do not use it.
- :obj:`split` (str, optional): If :obj:`"train"`, :obj:`"val"` or :obj:`"test"`, loads only this split. (default: :obj:`None`)
- :obj:`transform` (callable, optional): Called on each graph at every access. (default: :obj:`None`)
- :obj:`pre_transform` (callable, optional): Called on each graph once. (default: :obj:`None`)

They raise a :class:`ValueError` if an argument is outside its range or a split is empty, and a :class:`FileNotFoundError` if a
file is missing. :obj:`split_indices()` returns the indices of the graphs of each split.
"""

from __future__ import annotations

from torch_geometric.data import InMemoryDataset

from pyg_topomask.apps.datasets.graph_file import GraphFile
from pyg_topomask.apps.datasets.graph_formats import load_graph
from pyg_topomask.apps.datasets.images import CIFAR10Pixels, DigitsGrid, MNISTPixels, MovingDigits
from pyg_topomask.apps.datasets.motifs import InducedCycles, MotifGraphs
from pyg_topomask.apps.datasets.particles import ClothRollouts
from pyg_topomask.apps.datasets.point_clouds import SceneBlocks, UrbanObjects
from pyg_topomask.apps.datasets.public_files import MeshNormals, PeptidesFunctional, RoadEccentricity
from pyg_topomask.apps.datasets.random_graphs import GraphProperties, MajorityTrees

__all__ = [
    'CIFAR10Pixels',
    'ClothRollouts',
    'DigitsGrid',
    'GraphFile',
    'GraphProperties',
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
    'load_graph',
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
    'graph-properties': GraphProperties,
    'induced-cycles': InducedCycles,
    'majority-trees': MajorityTrees,
    'road-eccentricity': RoadEccentricity,
    'mesh-normals': MeshNormals,
    'moving-digits': MovingDigits,
    'cloth': ClothRollouts,
    'file': GraphFile,
}
