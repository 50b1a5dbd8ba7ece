r"""What decides which masks can matter on a data set, and the models that are trained: without a mask and with one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
import yaml  # type: ignore[import-untyped]
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components, dijkstra
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.graphgym.config import cfg
from torch_geometric.utils import remove_self_loops

from pyg_topomask.graphgym.names.attentions import attention_options
from pyg_topomask.graphgym.names.networks import split_layer_type
from pyg_topomask.graphs.graph import Graph

#: The most graphs that are looked at, and about the most distances that are computed in all of them.
GRAPHS, DISTANCES = 64, 2**22
#: The largest number of hops whose neighborhoods are counted.
HOPS = 16


@dataclass(frozen=True)
class GraphProfile:
    r"""Measurements of the graphs of a data set, the distances on a sample of its graphs and nodes."""

    graphs: int
    nodes: int  # the median number of nodes of a graph
    largest: int  # the largest number of nodes
    degree: float  # the number of edges, in both directions, over the number of nodes
    one_way: float  # the share of edges without an edge in the opposite direction, of those between different nodes
    weighted: bool  # whether the edges have weights that differ
    symmetric: bool  # whether both directions have equal weights
    forest: bool  # whether no graph has a cycle
    grid: bool  # whether the graphs have positions on a grid, see AddGridShape
    within: tuple[float, ...]  # the mean number of nodes from which at most k edges lead to a node, for k from 0 to 16
    reaching: float  # the mean number of nodes from which any number of edges leads to a node
    farthest: int  # the largest distance that was seen
    equal_labels: float | None = None  # the share of edges between nodes of equal class, of classes of nodes
    by_chance: float | None = None  # this share between random nodes
    majority: float | None = None  # the share of the most frequent class

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
    counts = torch.tensor(counts_of_classes(known)).double() if classes and labels else None
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


def counts_of_classes(labels: Sequence[Tensor]) -> list[int]:
    r"""Returns how many labels of each class there are, of those that are not NaN."""
    each = torch.cat([y.flatten() for y in labels])
    counts: list[int] = each[~each.isnan()].unique(return_counts=True)[1].tolist()
    return counts


def _labeled(graph: Data) -> Tensor:
    r"""Returns the nodes of any split, or else all: others may have no label."""
    masks = [graph[name] for name in ('train_mask', 'val_mask', 'test_mask') if name in graph]
    return torch.stack(masks).any(0) if masks else torch.ones(graph.num_nodes or 0, dtype=torch.bool)


def _equal(graph: Data) -> Tensor:
    r"""Returns whether the ends of each edge between nodes with labels have equal labels."""
    row, col = remove_self_loops(graph.edge_index[:, _labeled(graph)[graph.edge_index].all(0)])[0]
    return graph.y[row] == graph.y[col]


#: The most nodes of a graph on which attention between all pairs is tried.
PAIRS = 256
#: The largest mean number of nodes within the hops of a mask, and the most hops.
BALL, MOST_HOPS = 64, 8
#: The most edges of a node along which powers are computed.
DEGREE = 32
#: The most masks that are tried.
MASKS = 3


@dataclass(frozen=True)
class Candidate:
    r"""A model: its name, the options that make it, whether its attention has a mask, and a reason to try the mask."""

    name: str
    options: tuple[str, ...]
    masked: bool
    why: str = ''

    @property
    def folder(self) -> str:
        r"""The name of the folder of its trainings."""
        return self.name.replace('+', '-').replace(', ', '-').replace(' ', '-')


@dataclass(frozen=True)
class _Word:
    r"""A word of a mask, with options that fit the graphs and the transforms that it needs."""

    word: str
    why: str
    options: dict[str, object] = field(default_factory=dict)
    transforms: tuple[str, ...] = ()


def candidates(profile: GraphProfile) -> tuple[list[Candidate], list[str]]:
    r"""Returns the models for graphs of a profile, around the network of the global configuration, and the reasons why
    attentions are left out. Options of a mask that the configuration states are kept.
    """
    local, given = split_layer_type(cfg.gt.layer_type)
    if local == 'None':
        local = 'GINE' if cfg.dataset.edge_encoder else 'SAGE'
    layers = str(2 * int(cfg.gt.layers))
    plain = [f'{local}+{word}' for word in ('None', 'Linear', *['Transformer'] * (profile.largest <= PAIRS))]
    models = [Candidate(name, ('gt.layer_type', name), masked=False) for name in plain]
    models.insert(1, Candidate(f'{plain[0]}, {layers} layers', ('gt.layer_type', plain[0], 'gt.layers', layers), masked=False))
    words, left_out = _fitting(profile)
    tried = [(f'{local}+{word.word}', word, word.why) for word in words[:MASKS]]
    tried.append((f'None+{words[0].word}', words[0], 'the same mask without message passing'))
    models += [Candidate(name, ('gt.layer_type', name, *_options(word)), True, why) for name, word, why in tried]
    if given not in ('None', 'Transformer') and f'{local}+{given}' not in [model.name for model in models]:
        left_out.append(f'{given} of gt.layer_type, because other masks come first')
    return models, left_out


def _fitting(profile: GraphProfile) -> tuple[list[_Word], list[str]]:
    words, left_out = list(_words(profile)), []
    if profile.within[1] > BALL:
        left_out.append(f'Hop, because a node has {profile.within[1] - 1:.0f} neighbors')
    if profile.degree > DEGREE:
        left_out.append(f'PowerSeries, because a product goes along {profile.degree:.0f} edges a node')
    if not profile.forest:
        left_out.append('Tree, because there are cycles')
    if profile.largest > PAIRS:
        left_out.append(f'Transformer (all pairs), because a graph has more than {PAIRS} nodes')
    return words, left_out


def _words(profile: GraphProfile) -> Iterator[_Word]:
    near = [hops for hops in range(1, MOST_HOPS + 1) if profile.within[hops] <= BALL and hops <= profile.farthest]
    hops = max(near, default=1)
    if near:
        hops = _stated('Hop', 'max_hops', hops)
        pairs = f'{profile.within[min(hops, len(profile.within) - 1)]:.0f} pairs a node'
        yield _Word('Hop', f'any function of the distance within {_count(hops, "hop")}, {pairs}', {'max_hops': hops})
    if profile.grid:
        yield _Word('Toeplitz', 'any function of the offset on the grid, O(N log N)')
    if profile.forest and not profile.directed:
        yield _Word('Tree', 'the distance in trees, at any range, O(N log^2 N)', {'kind': 'distance'}, ('AddForest',))
    if profile.degree <= DEGREE:
        order = _stated('PowerSeries', 'order', min(hops, 4))
        why = f'{"weighted " * profile.weighted}walks, {_count(order, "product")} along {profile.degree:.1f} edges a node'
        yield _Word('PowerSeries', why, {'order': order})
    if profile.degree <= 8 and profile.farthest >= 10:
        kind = {} if profile.symmetric else {'kind': 'random_walk_laplacian'}
        yield _Word('HeatKernel', 'a smooth range for each head, 10 to 20 products', {'tolerance': 1e-3, **kind})
    walks = 'AsymmetricGRF' if profile.directed else 'GRF'
    yield _Word(walks, 'random walks, at a cost that does not depend on edges', {}, ('AddGraphRandomFeatures',))


def _stated(word: str, option: str, fitting: int) -> int:
    r"""Returns an option of a mask that the configuration states, or else the value that fits."""
    value = cfg.topomask[word][option]
    return fitting if value == attention_options(word)[option] else int(value)


def _options(word: _Word) -> list[str]:
    defaults, options = attention_options(word.word), []
    for key, value in word.options.items():
        if cfg.topomask[word.word][key] == defaults[key]:  # otherwise, that of the configuration
            options += [f'topomask.{word.word}.{key}', str(value)]
    transforms = list(cfg.topomask.transforms or [])
    present = [next(iter(entry)) if isinstance(entry, dict) else entry for entry in transforms]
    if missing := [name for name in word.transforms if name not in present]:
        listed = yaml.safe_dump([*transforms, *missing], default_flow_style=True, width=2**20).strip()
        options += ['topomask.transforms', listed]
    return options


def _count(number: int, noun: str) -> str:
    return f'{number} {noun}{"s" * (number != 1)}'
