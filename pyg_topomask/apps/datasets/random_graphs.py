r"""Random graphs with distances as labels, and random trees with the majority in a neighborhood as the label of each node."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from functools import lru_cache
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array, eye_array
from scipy.sparse.csgraph import connected_components, shortest_path
from torch_geometric.data import Data

from pyg_topomask.apps.datasets.bases import GeneratedDataset, Transform, consecutive_splits
from pyg_topomask.errors import ArgumentError
from pyg_topomask.utils.checks import check_choice, check_whole, checked_seed
from pyg_topomask.utils.random import wrapped_seed

Edges = NDArray[np.int64]
Generator = np.random.Generator

PROPERTIES = ('distances', 'eccentricity', 'diameter')


class GraphProperties(GeneratedDataset):
    r"""Graphs whose labels are distances, like those of the `"Principal Neighbourhood Aggregation for Graph Nets"
    <https://arxiv.org/abs/2004.05718>`_ and `"Anti-Symmetric DGN" <https://arxiv.org/abs/2210.09789>`_ papers: in equal shares,
    Erdos-Renyi and Barabasi-Albert graphs, grids, caveman graphs, trees, ladders, lines, stars, caterpillars and lobsters. The
    families are those of the papers, and the generator is our own. Graphs are connected, and their nodes are in random order.

    :obj:`x` of shape :obj:`[N, 2]` marks a random source node, and holds a uniform random number for each node. The labels
    :obj:`y` are numbers: the shortest-path distance from the source to each node (:obj:`[N, 1]`), the eccentricity of each node
    (:obj:`[N, 1]`), or the diameter of the graph (:obj:`[1, 1]`). 72 % of the graphs are for training, 10 % for validation and
    18 % for testing.

    Args:
        property (str): :obj:`"distances"`, :obj:`"eccentricity"` or :obj:`"diameter"`. (default: :obj:`"distances"`)
        num_graphs (int): The number of graphs, from 10. (default: :obj:`1000`)
        least (int): The smallest number of nodes, from 8. (default: :obj:`25`)
        most (int): The largest number of nodes. (default: :obj:`34`)
        families (list of str, optional): Some of :obj:`"Erdos-Renyi"`, :obj:`"Barabasi-Albert"`, :obj:`"grid"`,
            :obj:`"caveman"`, :obj:`"tree"`, :obj:`"ladder"`, :obj:`"line"`, :obj:`"star"`, :obj:`"caterpillar"` and
            :obj:`"lobster"`. (default: :obj:`None`, all)
        seed (int): The seed. (default: :obj:`0`)

    Example:
        >>> dataset = GraphProperties(num_graphs=10)
        >>> dataset[0].x.shape[1], dataset[0].y.shape[1]
        (2, 1)
    """

    def __init__(
        self,
        root: str | None = None,
        split: str | None = None,
        property: str = 'distances',
        num_graphs: int = 1000,
        least: int = 25,
        most: int = 34,
        families: Sequence[str] | None = None,
        seed: int = 0,
        transform: Transform | None = None,
        pre_transform: Transform | None = None,
    ) -> None:
        check_choice(PROPERTIES, property=property)
        check_whole(10, num_graphs=num_graphs)
        check_whole(8, least=least)
        check_whole(least, most=most)
        names = list(FAMILIES if families is None else families)
        if not names or not set(names) <= set(FAMILIES):
            raise ArgumentError('families', families, f'names among {", ".join(FAMILIES)}')
        super().__init__(root, split, transform, pre_transform)
        generator = np.random.default_rng(wrapped_seed(checked_seed(seed=seed)))
        graphs = [_graph(FAMILIES[names[i % len(names)]], property, least, most, generator) for i in range(num_graphs)]
        order = generator.permutation(num_graphs)
        val, test = num_graphs // 10, round(0.18 * num_graphs)
        self.hold([graphs[index] for index in order], consecutive_splits([num_graphs - val - test, val, test]))


def _graph(family: Callable[[int, Generator], Edges], property: str, least: int, most: int, generator: Generator) -> Data:
    size = int(generator.integers(least, most + 1))
    edges = generator.permutation(size)[_connected(family(size, generator), size)]
    both = np.unique(np.concatenate([edges, edges[::-1]], axis=1), axis=1)
    distance = shortest_path(csr_array((np.ones(both.shape[1]), tuple(both)), shape=(size, size)), unweighted=True)
    source = int(generator.integers(size))
    labels = {'distances': distance[source], 'eccentricity': distance.max(1), 'diameter': distance.max(keepdims=True)[0]}
    x = np.stack([np.arange(size) == source, generator.random(size)], axis=1)
    y = torch.from_numpy(labels[property]).float().unsqueeze(1)
    return Data(x=torch.from_numpy(x).float(), edge_index=torch.from_numpy(both), y=y)


def _connected(edges: Edges, size: int) -> Edges:
    r"""Returns edges with one more between each component and the next, if there are several."""
    matrix = csr_array((np.ones(edges.shape[1]), tuple(edges)), shape=(size, size))
    count, labels = connected_components(matrix, directed=False)
    first = np.array([np.flatnonzero(labels == label)[0] for label in range(count)], dtype=np.int64)
    return np.concatenate([edges, np.stack([first[:-1], first[1:]])], axis=1)


def _tree_of(parents: NDArray[np.int64]) -> Edges:
    r"""Returns the edges of a tree from the parents of the nodes 1, 2 and so on."""
    return np.stack([np.arange(1, len(parents) + 1), parents])


def _erdos_renyi(size: int, generator: Generator) -> Edges:
    chosen = np.triu(generator.random((size, size)) < generator.uniform(0.05, 0.4), 1)
    return np.stack(np.nonzero(chosen)).astype(np.int64)


def _barabasi_albert(size: int, generator: Generator) -> Edges:
    new = int(generator.integers(1, 4))
    ends = list(range(new))  # each node as often as it has edges, so that a uniform choice prefers large degrees
    edges = []
    for node in range(new, size):
        chosen = {ends[place] for place in generator.integers(len(ends), size=new)}
        edges += [(node, other) for other in chosen]
        ends += [*chosen, *([node] * len(chosen))]
    return np.array(edges, dtype=np.int64).T


def _mesh(size: int, width: int) -> Edges:
    r"""Returns the edges of a grid that is filled row by row."""
    node = np.arange(size)
    right = node[(node % width < width - 1) & (node + 1 < size)]
    down = node[node + width < size]
    return np.concatenate([np.stack([right, right + 1]), np.stack([down, down + width])], axis=1)


def _caveman(size: int, generator: Generator) -> Edges:
    r"""Returns the edges of cliques, each connected with the next."""
    caves = np.array_split(np.arange(size), max(2, round(size**0.5)))
    inside = [np.stack(np.triu_indices(len(cave), 1)) + cave[0] for cave in caves]
    between = [np.array([[cave[-1]], [after[0]]]) for cave, after in pairwise(caves)]
    return np.concatenate([*inside, *between], axis=1)


def _caterpillar(size: int, generator: Generator) -> Edges:
    spine = int(generator.integers(2, size))
    return _tree_of(np.concatenate([np.arange(spine - 1), generator.integers(spine, size=size - spine)]))


def _lobster(size: int, generator: Generator) -> Edges:
    r"""Returns a caterpillar, to whose legs further nodes are attached."""
    spine = int(generator.integers(2, max(3, size // 2)))
    legs = int(generator.integers(1, size - spine))
    on_spine = generator.integers(spine, size=legs)
    on_legs = generator.integers(spine, spine + legs, size=size - spine - legs)
    return _tree_of(np.concatenate([np.arange(spine - 1), on_spine, on_legs]))


FAMILIES: dict[str, Callable[[int, Generator], Edges]] = {
    'Erdos-Renyi': _erdos_renyi,
    'Barabasi-Albert': _barabasi_albert,
    'grid': lambda size, generator: _mesh(size, max(2, round(size**0.5))),
    'caveman': _caveman,
    'tree': lambda size, generator: _tree_of(generator.integers(np.arange(1, size))),
    'ladder': lambda size, generator: _mesh(size, 2),
    'line': lambda size, generator: _tree_of(np.arange(size - 1)),
    'star': lambda size, generator: _tree_of(np.zeros(size - 1, dtype=np.int64)),
    'caterpillar': _caterpillar,
    'lobster': _lobster,
}


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
        trees = _trees(num_graphs, size, radius, num_keys, wrapped_seed(checked_seed(seed=seed)))
        fifth = num_graphs // 5
        self.hold([copy(tree) for tree in trees], consecutive_splits([num_graphs - 3 * fifth, fifth, 2 * fifth]))


@lru_cache(maxsize=1)  # the trainings of advise have the same trees
def _trees(num_graphs: int, size: int, radius: int, num_keys: int, seed: int) -> list[Data]:
    generator = np.random.default_rng(seed)
    return [_make_graph(size, radius, num_keys, generator) for _ in range(num_graphs)]


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
