r"""Data sets in public files: peptides, meshes with vertex normals, and road networks with eccentricities of intersections."""

from __future__ import annotations

import ast
import csv
import gzip
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import breadth_first_order, connected_components, dijkstra
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import from_scipy_sparse_matrix, from_smiles

from pyg_topomask.apps.datasets.bases import SPLITS, FileDataset, Transform, consecutive_splits
from pyg_topomask.errors import ArgumentError
from pyg_topomask.utils.checks import check_choice, check_file_name, check_probability, check_whole, checked_seed
from pyg_topomask.utils.random import wrapped_seed


class PeptidesFunctional(FileDataset):
    r"""Peptides-func of the `"Long Range Graph Benchmark" <https://arxiv.org/abs/2206.08164>`_: 15,535 peptides as graphs of
    about 151 atoms each. The task is to predict ten functions. The official split has 10,873, 2,331 and 2,331 graphs.

    :func:`torch_geometric.utils.from_smiles`, which needs RDKit, creates the graphs from the original SMILES. :obj:`x` has nine
    and :obj:`edge_attr` has three categorical features, and :obj:`y` has ten binary labels, :obj:`[1, 10]`. The graphs are
    those of the benchmark. Its features come from OGB, and are similar but not identical.

    Args:
        root (str): The folder with :obj:`peptide_multi_class_dataset.csv.gz` and :obj:`splits_random_stratified.npz` (indices
            :obj:`train`, :obj:`val` and :obj:`test`).
    """

    raw_file_names = ['peptide_multi_class_dataset.csv.gz', 'splits_random_stratified.npz']
    stem = 'peptides_functional'
    source = 'https://github.com/vijaydwivedi75/lrgb'

    def read(self) -> tuple[list[Data], dict[str, Tensor]]:
        with np.load(self.raw_paths[1]) as file:
            splits = {name: torch.from_numpy(file[name]).long() for name in SPLITS}
        with gzip.open(self.raw_paths[0], 'rt', newline='') as file:
            graphs = [_graph(row['smiles'], row['labels']) for row in csv.DictReader(file)]
        return graphs, splits


def _graph(smiles: str, labels: str) -> Data:
    try:
        data = from_smiles(smiles)
    except ImportError as error:
        raise ImportError('PeptidesFunctional needs RDKit: install pyg_topomask with its extra [molecules]') from error
    if data.num_nodes == 0:
        raise ArgumentError('smiles', repr(smiles), 'molecules that RDKit can read')
    label = torch.tensor([ast.literal_eval(labels)]).float()
    # As real numbers: transforms append encodings to them.
    return Data(x=data.x.float(), edge_index=data.edge_index, edge_attr=data.edge_attr, y=label)


#: Patches of training, validation and test.
PATCHES = (16, 8, 16)


class MeshNormals(FileDataset):
    r"""Patches of meshes for the interpolation of vertex normals, as in `"Efficient Graph Field Integrators Meet Point Clouds"
    <https://arxiv.org/abs/2302.00942>`_, but with training, and with a different mesh for testing.

    A patch consists of the :obj:`num_nodes` vertices of a mesh with the smallest shortest-path distance to a random vertex. The
    normal of a vertex is the mean of the normals of its faces, weighted by their areas. It is known at random vertices. The 16
    training patches and the 8 validation patches come from one mesh, and the 16 test patches from another.

    - :obj:`x`: the normal if it is known, else 0; and 1 if it is known, else 0; :obj:`[num_nodes, 4]`
    - :obj:`y`: the normal, :obj:`[num_nodes, 3]`
    - :obj:`pos`: the position, :obj:`[num_nodes, 3]`
    - :obj:`known`: whether the normal is known, :obj:`[num_nodes]`

    Args:
        root (str): The folder with the files of both meshes, which have the arrays :obj:`pos` of shape :obj:`[V, 3]` and
            :obj:`face` of shape :obj:`[F, 3]`.
        train (str): The name of the file with the mesh for training and validation, without :obj:`.npz`.
            (default: :obj:`"mesh_bunny"`)
        test (str): The name of the file with the mesh for testing. (default: :obj:`"mesh_armadillo"`)
        num_nodes (int): The number of vertices of a patch, from 2 to those of a component. (default: :obj:`2000`)
        fraction (float): The probability that the normal of a vertex is known. (default: :obj:`0.05`)
        seed (int): The seed of the patches and of the known normals. (default: :obj:`0`)
    """

    source = 'https://github.com/alecjacobson/common-3d-test-models and https://github.com/libigl/libigl-tutorial-data'

    def __init__(
        self,
        root: str,
        split: str | None = None,
        train: str = 'mesh_bunny',
        test: str = 'mesh_armadillo',
        num_nodes: int = 2000,
        fraction: float = 0.05,
        seed: int = 0,
        transform: Transform | None = None,
        pre_transform: Transform | None = None,
    ) -> None:
        check_file_name(train=train, test=test)
        check_whole(2, num_nodes=num_nodes)
        check_probability(fraction=fraction)
        seed = checked_seed(seed=seed)
        self.size, self.fraction, self.seed = num_nodes, fraction, seed
        self.raw_file_names = [f'{train}.npz', f'{test}.npz']
        self.stem = f'{train}_{test}_normals_{num_nodes}_{fraction}_{seed}'
        super().__init__(root, split, transform, pre_transform)

    def read(self) -> tuple[list[Data], dict[str, Tensor]]:
        first, second = (read_mesh(Path(path)) for path in self.raw_paths)
        generator = np.random.default_rng(wrapped_seed(self.seed))
        graphs = [
            cut_patch(*mesh, self.size, self.fraction, generator)
            for mesh, count in zip((first, first, second), PATCHES, strict=True)
            for _ in range(count)
        ]
        return graphs, consecutive_splits(PATCHES)


def read_mesh(path: Path) -> tuple[csr_array, NDArray[Any], NDArray[Any]]:
    r"""Reads a mesh from a file, see :class:`MeshNormals`.

    Returns:
        tuple: The edges as a symmetric matrix :obj:`[V, V]` of zeros and ones, the positions :obj:`[V, 3]`, and the normals
        :obj:`[V, 3]`: the sums of the normals of the faces of a vertex, weighted by area, over their length.
    """
    with np.load(path) as stored:
        position, face = stored['pos'].astype(np.float64), stored['face'].astype(np.int64)
    corners = position[face]
    of_faces = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normal = np.zeros_like(position)
    for corner in range(3):
        np.add.at(normal, face[:, corner], of_faces)
    normal /= np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-12)
    row, col = face[:, [0, 1, 2]].ravel(), face[:, [1, 2, 0]].ravel()
    edges = coo_array((np.ones(len(row)), (row, col)), shape=(len(position),) * 2).tocsr()
    return ((edges + edges.T) > 0).astype(np.float64), position, normal


def cut_patch(
    edges: csr_array,
    position: NDArray[Any],
    normal: NDArray[Any],
    num_nodes: int,
    fraction: float,
    generator: np.random.Generator,
) -> Data:
    r"""Returns :obj:`num_nodes` vertices of a mesh around a random one. A normal is known with probability :obj:`fraction`."""
    largest = int(np.bincount(connected_components(edges)[1]).max())
    if largest < num_nodes:
        raise ArgumentError('num_nodes', num_nodes, f'at most {largest}, the size of the largest component of the mesh')
    nodes = np.empty(0, dtype=np.int64)
    while len(nodes) < num_nodes:
        nodes = breadth_first_order(edges, int(generator.integers(len(normal))), return_predecessors=False)[:num_nodes]
    known = torch.from_numpy(generator.random(num_nodes) < fraction)
    y, flag = torch.from_numpy(normal[nodes]).float(), known.float().unsqueeze(1)
    return Data(
        x=torch.cat([y * flag, flag], 1),
        edge_index=from_scipy_sparse_matrix(edges[nodes][:, nodes])[0],
        y=y,
        pos=torch.from_numpy(position[nodes]).float(),
        known=known,
    )


COLUMNS = ('capacity', 'length', 'free_flow_time', 'speed', 'lanes')


class RoadEccentricity(FileDataset):
    r"""A road network for node classification, constructed as in `"Towards Quantifying Long-Range Interactions in Graph Machine
    Learning: a Large Graph Dataset and a Measurement" <https://arxiv.org/abs/2503.09008>`_.

    The eccentricity of an intersection is the largest shortest-path distance to the intersections within :obj:`hops` edges,
    along paths within this neighborhood. Classes are quantiles of the eccentricity. Roads are undirected. The features of an
    intersection are its degree and the mean logarithms of the attributes of its roads, without coordinates. 10 % of the
    intersections are in :obj:`train_mask`, 10 % in :obj:`val_mask` and 80 % in :obj:`test_mask`. Computing the classes takes
    about a minute for 30,000 intersections, once.

    Args:
        root (str): The folder with :obj:`<name>.npz`, which has the arrays :obj:`edges` of shape :obj:`[E, 2]`, :obj:`links` of
            shape :obj:`[E, C]`, the names :obj:`link_columns` of these columns, among them :obj:`"length"`, and :obj:`pos` of
            shape :obj:`[N, 2]`.
        split (str, optional): Must be :obj:`None`, because the splits are masks of nodes. (default: :obj:`None`)
        name (str): The name of the file. (default: :obj:`"sydney"`)
        hops (int): The number of edges, from 1. (default: :obj:`16`)
        num_classes (int): The number of classes, from 2. (default: :obj:`10`)
        seed (int): The seed of the splits. (default: :obj:`0`)
    """

    source = 'https://github.com/bstabler/TransportationNetworks'

    def __init__(
        self,
        root: str,
        split: str | None = None,
        name: str = 'sydney',
        hops: int = 16,
        num_classes: int = 10,
        seed: int = 0,
        transform: Transform | None = None,
        pre_transform: Transform | None = None,
    ) -> None:
        check_choice((None,), split=split)
        check_file_name(name=name)
        check_whole(1, hops=hops)
        check_whole(2, num_classes=num_classes)
        seed = checked_seed(seed=seed)
        self.hops, self.seed, self.classes = hops, seed, num_classes
        self.raw_file_names = [f'{name}.npz']
        self.stem = f'{name}_eccentricity_{hops}_{num_classes}_{seed}'
        super().__init__(root, None, transform, pre_transform)

    def read(self) -> tuple[list[Data], dict[str, Tensor]]:
        matrix, x, _ = read_roads(Path(self.raw_paths[0]))
        eccentricity = within_hops(matrix, self.hops)
        bounds = np.quantile(eccentricity, np.linspace(0, 1, self.classes + 1)[1:-1])
        row, col = matrix.tocoo().coords
        data = Data(
            x=torch.from_numpy(x).float(),
            edge_index=torch.from_numpy(np.stack([row, col])).long(),
            y=torch.from_numpy(np.searchsorted(bounds, eccentricity, side='right')).long(),
        )
        order = torch.randperm(len(x), generator=torch.Generator().manual_seed(self.seed))
        tenth = len(x) // 10
        for split, nodes in zip(SPLITS, order.split([tenth, tenth, len(x) - 2 * tenth]), strict=True):
            data[f'{split}_mask'] = torch.zeros(len(x), dtype=torch.bool).index_fill(0, nodes, True)
        return [data], {}


def read_roads(path: Path) -> tuple[csr_array, NDArray[Any], NDArray[Any]]:
    r"""Reads a file, see :class:`RoadEccentricity`, which may also contain the traffic volume of each link.

    Returns:
        tuple: The lengths of roads as a symmetric matrix :obj:`[N, N]`, the features of the intersections :obj:`[N, F]` with
            mean 0 and variance 1, and the logarithms of the sums of the volumes of their links :obj:`[N]`, 0 without volumes.
    """
    with np.load(path) as stored:
        edges, links, columns = stored['edges'], stored['links'], stored['link_columns'].tolist()
        size = len(stored['pos'])
        volume = stored['volume'] if 'volume' in stored else np.zeros(len(edges))

    def sums(values: NDArray[Any]) -> NDArray[Any]:
        return np.bincount(edges[:, 0], values, size) + np.bincount(edges[:, 1], values, size)

    # The matrix also stores roads of length 0 as edges. Of parallel roads, the shortest counts.
    ends, length = np.sort(edges, axis=1), links[:, columns.index('length')] + 1e-3
    order = np.lexsort((length, *ends.T))
    ends, first = np.unique(ends[order], axis=0, return_index=True)
    matrix = csr_array((length[order][first], tuple(ends.T)), shape=(size, size))
    matrix = matrix.maximum(matrix.T)
    features = [np.log1p(np.diff(matrix.indptr))]
    count = np.maximum(sums(np.ones(len(edges))), 1)
    features += [sums(np.log1p(np.abs(links[:, columns.index(name)]))) / count for name in COLUMNS if name in columns]
    x = np.stack(features, 1)
    return matrix, (x - x.mean(0)) / (x.std(0) + 1e-6), np.log1p(sums(volume))


def within_hops(matrix: csr_array, hops: int) -> NDArray[Any]:
    r"""Returns the largest shortest-path distance from each node to the nodes within a number of edges, along paths among these
    nodes, for a symmetric matrix :obj:`[N, N]` of lengths of edges.
    """
    result = np.zeros(matrix.shape[0])
    neighbors = np.split(matrix.indices, matrix.indptr[1:-1])
    for node in range(matrix.shape[0]):
        reached, frontier = {node}, [node]
        for _ in range(hops):
            frontier = list({int(next) for last in frontier for next in neighbors[last]} - reached)
            reached.update(frontier)
        nodes = np.fromiter(reached, dtype=np.int64)
        result[node] = dijkstra(matrix[nodes][:, nodes], indices=int(np.flatnonzero(nodes == node)[0])).max()
    return result
