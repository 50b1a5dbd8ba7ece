r"""Road networks with the eccentricity of intersections as labels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra
from torch import Tensor
from torch_geometric.data import Data

from pyg_topomask.apps.datasets.bases import SPLITS, FileDataset, Transform
from pyg_topomask.utils.checks import check_choice, check_file_name, check_whole, checked_seed

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
