r"""Random trees with the majority in a neighborhood as the label of each node."""

from __future__ import annotations

import numpy as np
import torch
from scipy.sparse import coo_array, csr_array, eye_array
from torch_geometric.data import Data

from pyg_topomask.apps.datasets.bases import GeneratedDataset, Transform, consecutive_splits
from pyg_topomask.utils.checks import check_whole, checked_seed
from pyg_topomask.walks.uniform import wrapped_seed


class MajorityTrees(GeneratedDataset):
    r"""Random trees with red and blue nodes, for node classification. The label of a node is 1 if more nodes are red than blue
    within :obj:`radius` edges, and 0 otherwise. With :obj:`num_keys` above 1, each node has a key and asks for a key, and only
    the nodes with this key count.

    Each label depends on all nodes within the radius, and on no other nodes. A layer of message passing reaches one edge, so
    the task needs as many layers as the radius, or one layer of attention with a mask of this radius. Trees are sampled
    uniformly from all trees with numbered nodes, by their Prüfer codes. Both colors have equal probability. Node features are
    one-hot vectors of the color, blue first, and with keys also of the key and of the requested key. One in five graphs is for
    validation, and two in five are for testing.

    Args:
        num_graphs (int): The number of trees, from 5. (default: :obj:`100`)
        size (int): The number of nodes of a tree, from 3. (default: :obj:`500`)
        radius (int): The number of edges, from 0. (default: :obj:`8`)
        num_keys (int): The number of keys, from 1. (default: :obj:`1`)
        seed (int): The seed. (default: :obj:`0`)

    Example:
        >>> MajorityTrees(num_graphs=5, size=20)[0]
        Data(x=[20, 2], edge_index=[2, 38], y=[20])
        >>> MajorityTrees(num_graphs=5, size=20, num_keys=8)[0]
        Data(x=[20, 18], edge_index=[2, 38], y=[20])
    """

    def __init__(
        self,
        root: str | None = None,
        split: str | None = None,
        num_graphs: int = 100,
        size: int = 500,
        radius: int = 8,
        num_keys: int = 1,
        seed: int = 0,
        transform: Transform | None = None,
        pre_transform: Transform | None = None,
    ) -> None:
        check_whole(5, num_graphs=num_graphs)
        check_whole(3, size=size)
        check_whole(0, radius=radius)
        check_whole(1, num_keys=num_keys)
        super().__init__(root, split, transform, pre_transform)
        generator = np.random.default_rng(wrapped_seed(checked_seed(seed=seed)))
        graphs = [_make_graph(size, radius, num_keys, generator) for _ in range(num_graphs)]
        fifth = num_graphs // 5
        self.hold(graphs, consecutive_splits([num_graphs - 3 * fifth, fifth, 2 * fifth]))


def _make_graph(size: int, radius: int, num_keys: int, generator: np.random.Generator) -> Data:
    from networkx import from_prufer_sequence  # takes a while

    tree = from_prufer_sequence(generator.integers(size, size=size - 2).tolist())
    edges = np.array(tree.edges, dtype=np.int64).T
    matrix = coo_array((np.ones(size - 1), tuple(edges)), shape=(size, size))
    step = csr_array(matrix + matrix.T + eye_array(size))
    red = generator.integers(2, size=size)
    near = csr_array(eye_array(size))
    for _ in range(radius):
        near = ((near @ step) > 0).astype(np.float64)
    features = [np.eye(2)[red]]
    key = asked = np.ones((size, 1))
    if num_keys > 1:
        key, asked = np.eye(num_keys)[generator.integers(num_keys, size=(2, size))]
        features += [key, asked]
    lead = (near @ (key * (2 * red - 1)[:, None]) * asked).sum(1)
    return Data(
        x=torch.from_numpy(np.concatenate(features, 1)).float(),
        edge_index=torch.from_numpy(np.concatenate([edges, edges[::-1]], axis=1)),
        y=torch.from_numpy((lead > 0).astype(np.int64)),
    )
