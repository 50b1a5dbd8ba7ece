r"""What decides which masks can matter on a data set: sizes, distances, directions, weights and labels of its graphs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components, dijkstra
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import remove_self_loops

from pyg_topomask.graphs.graph import Graph

#: The most graphs that are looked at, and about the most distances that are computed in all of them.
GRAPHS, DISTANCES = 64, 2**22
#: The largest number of hops whose neighborhoods are counted.
HOPS = 16


@dataclass(frozen=True)
class GraphProfile:
    r"""Measurements of the graphs of a data set, the distances on a sample of its graphs and nodes.

    Args:
        graphs (int): The number of graphs.
        nodes (int): The median number of nodes of a graph.
        largest (int): The largest number of nodes.
        degree (float): The number of edges, in both directions, over the number of nodes.
        one_way (float): The share of edges without an edge in the opposite direction, of those between different nodes.
        weighted (bool): Whether the edges have weights that differ.
        forest (bool): Whether no graph has a cycle.
        grid (bool): Whether the graphs have positions on a grid, see :class:`~pyg_topomask.transforms.AddGridShape`.
        within (tuple): The mean number of nodes from which at most :obj:`k` edges lead to a node, for :obj:`k` from 0 to 16.
        reaching (float): The mean number of nodes from which any number of edges leads to a node.
        farthest (int): The largest distance that was seen.
        equal_labels (float, optional): The share of edges between nodes of equal class. :obj:`None` without classes of nodes.
        by_chance (float, optional): This share between random nodes.
        majority (float, optional): The share of the most frequent class.
    """

    graphs: int
    nodes: int
    largest: int
    degree: float
    one_way: float
    weighted: bool
    symmetric: bool
    forest: bool
    grid: bool
    within: tuple[float, ...]
    reaching: float
    farthest: int
    equal_labels: float | None = None
    by_chance: float | None = None
    majority: float | None = None

    @property
    def directed(self) -> bool:
        r"""Whether more than a hundredth of the edges lead one way."""
        return self.one_way > 0.01


def profile(graphs: Sequence[Data], classes: bool) -> GraphProfile:
    r"""Measures graphs, whose labels may be classes."""
    step = max(1, len(graphs) // GRAPHS)
    sample = [graphs[index] for index in range(0, len(graphs), step)][:GRAPHS]
    sizes = np.array([graph.num_nodes for graph in graphs])
    nodes = np.array([graph.num_nodes for graph in sample])
    starts = max(4, DISTANCES // max(1, int(nodes.sum())))
    seen = [_measure(graph, starts) for graph in sample]
    edges = sum(graph.num_edges for graph in sample)
    between = sum(found.edges for found in seen)
    labels = [graph.y for graph in sample if isinstance(graph.get('y'), Tensor)]
    known = [graph.y[_labeled(graph)] if 'train_mask' in graph else graph.y for graph in sample if classes and labels]
    counts = torch.cat([y.flatten() for y in known]).unique(return_counts=True)[1].double() if classes and labels else None
    shares = None if counts is None else counts / counts.sum()
    per_node = shares is not None and all(y.numel() == size for y, size in zip(labels, nodes, strict=True))
    equal = [_equal(graph) for graph in sample] if per_node else []
    return GraphProfile(
        graphs=len(graphs),
        nodes=int(np.median(sizes)),
        largest=int(sizes.max()),
        degree=edges / max(1, int(nodes.sum())),
        one_way=sum(found.one_way for found in seen) / max(1, between),
        weighted=any(found.weighted for found in seen),
        symmetric=all(found.symmetric for found in seen),
        forest=all(found.forest for found in seen),
        grid=all('grid_shape' in graph for graph in sample),
        within=tuple(np.mean([found.within for found in seen], axis=0).tolist()),
        reaching=float(np.mean([found.reaching for found in seen])),
        farthest=max(found.farthest for found in seen),
        equal_labels=sum(int(ends.sum()) for ends in equal) / max(1, sum(map(len, equal))) if per_node else None,
        by_chance=float(shares.square().sum()) if shares is not None and per_node else None,
        majority=None if shares is None else float(shares.max()),
    )


@dataclass(frozen=True)
class _Measured:
    edges: int
    one_way: int
    weighted: bool
    symmetric: bool
    forest: bool
    within: NDArray[np.float64]
    reaching: float
    farthest: int


def _measure(data: Data, starts: int) -> _Measured:
    graph = Graph.from_data(data)
    size = graph.num_nodes
    row, col = (end.cpu().numpy() for end in graph.row_and_col('source_to_target'))
    matrix = csr_array(coo_array((np.ones(len(row)), (row, col)), shape=(size, size)))
    matrix.setdiag(0)
    matrix.eliminate_zeros()
    matrix.data[:] = 1
    one_way = matrix.nnz - int(matrix.multiply(matrix.T).sum())
    components = int(connected_components(matrix, directed=False)[0])
    weight = graph.edge_weight
    weights = np.ones(len(row)) if weight is None else weight.detach().cpu().double().numpy()
    weighted = csr_array(coo_array((weights, (row, col)), shape=(size, size)))
    start = np.random.default_rng(0).permutation(size)[:starts]
    distance = dijkstra(matrix, unweighted=True, indices=start) if size > 0 else np.zeros((1, 1))
    finite = distance[np.isfinite(distance)]
    return _Measured(
        edges=matrix.nnz,
        one_way=one_way,
        weighted=weight is not None and weight.numel() > 0 and bool(weight.min() < weight.max()),
        symmetric=one_way == 0 and abs(weighted - weighted.T).sum() == 0,
        forest=(matrix + matrix.T).nnz == 2 * (size - components),
        within=np.array([(finite <= hops).sum() / max(1, len(start)) for hops in range(HOPS + 1)]),
        reaching=finite.size / max(1, len(start)),
        farthest=int(finite.max()),
    )


def _labeled(graph: Data) -> Tensor:
    r"""Returns the nodes of any split, or else all: others may have no label."""
    masks = [graph[name] for name in ('train_mask', 'val_mask', 'test_mask') if name in graph]
    return torch.stack(masks).any(0) if masks else torch.ones(graph.num_nodes or 0, dtype=torch.bool)


def _equal(graph: Data) -> Tensor:
    r"""Returns whether the ends of each edge between nodes with labels have equal labels."""
    row, col = remove_self_loops(graph.edge_index[:, _labeled(graph)[graph.edge_index].all(0)])[0]
    return graph.y[row] == graph.y[col]
