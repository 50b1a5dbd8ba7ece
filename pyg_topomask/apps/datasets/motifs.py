r"""Random graphs with or without a motif, and random binary trees with one additional edge."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.data import Data

from pyg_topomask.apps.datasets.bases import SPLITS, GeneratedDataset, Transform
from pyg_topomask.utils.checks import check_choice, check_probability, check_whole, checked_seed

PAIR_SPLITS = SPLITS[:2]


def _cycle(size: int, first: int = 0) -> list[tuple[int, int]]:
    return [(first + node, first + (node + 1) % size) for node in range(size)]


def _ladder(rungs: int) -> list[tuple[int, int]]:
    sides = [(rungs * side + rung, rungs * side + rung + 1) for side in range(2) for rung in range(rungs - 1)]
    return sides + [(rung, rungs + rung) for rung in range(rungs)]


#: The edges of the five motifs of Fig. 5: three triangles whose last corners form a fourth, a cycle of 10 nodes, a grid of
#: 3 x 3 nodes, a ladder of 5 rungs, and one whose ends meet.
MOTIFS = {
    'caveman': [*_cycle(3), *_cycle(3, 3), *_cycle(3, 6), (2, 5), (5, 8), (2, 8)],
    'circle': _cycle(10),
    'grid': [(3 * i + j, 3 * i + j + 1) for i in range(3) for j in range(2)] + [(node, node + 3) for node in range(6)],
    'ladder': _ladder(5),
    'circular_ladder': [*_ladder(5), (0, 4), (5, 9)],
}


class MotifGraphs(GeneratedDataset):
    r"""Erdős-Rényi graphs connected to a motif, or to a random graph of the same size, for graph classification, from
    `"From block-Toeplitz matrices to differential equations on graphs" <https://arxiv.org/abs/2107.07999>`_ (Sec. 5.1.1,
    App. A.2), with the motifs and the probability :obj:`connect` of the authors' code.

    Each pair of a positive and a negative example shares its large graph, which has the motif's average degree. The small
    graph of the negative one has as many nodes and edges as the motif, and does not contain it. A node of the large graph and a
    node of the small graph are connected with probability :obj:`connect`. The label says which graph was planted. By chance, a
    motif, especially a circle, may also occur elsewhere in a graph of either class. Node features are the five largest
    degrees of a node's neighbors, in descending order, 0 for missing ones. The nodes of the large graph come first. A random
    quarter of the pairs is for validation.

    Args:
        motif (str): :obj:`"caveman"`, :obj:`"circle"`, :obj:`"grid"`, :obj:`"ladder"` or :obj:`"circular_ladder"`.
            (default: :obj:`"caveman"`)
        num_pairs (int): The number of positive and of negative examples. (default: :obj:`2048`)
        size (int): The number of nodes of the large graphs. (default: :obj:`100`)
        connect (float): The probability of an edge between the two graphs. (default: :obj:`0.004`)
        seed (int): The seed. (default: :obj:`0`)

    Example:
        >>> MotifGraphs(motif='grid', num_pairs=2)[0].num_nodes
        109
    """

    splits = PAIR_SPLITS

    def __init__(
        self,
        root: str | None = None,
        motif: str = 'caveman',
        split: str | None = None,
        num_pairs: int = 2048,
        size: int = 100,
        connect: float = 0.004,
        seed: int = 0,
        transform: Transform | None = None,
        pre_transform: Transform | None = None,
    ) -> None:
        check_choice(MOTIFS, motif=motif)
        check_whole(2, num_pairs=num_pairs)
        seed = checked_seed(seed=seed)
        check_probability(connect=connect)
        edges = torch.tensor(MOTIFS[motif]).t()
        nodes = int(edges.max()) + 1
        check_whole(nodes, size=size)
        super().__init__(root, split, transform, pre_transform)
        generator = torch.Generator().manual_seed(seed)
        negatives = _look_alikes(edges, nodes, num_pairs, generator)
        graphs: list[Data] = []
        for negative in negatives:
            large = _random_edges(size, round(size * edges.size(1) / nodes), generator)
            for label, small in enumerate((negative, edges)):
                across = (torch.rand(size, nodes, generator=generator) < connect).nonzero().t()
                joined = torch.cat([large, small + size, across + torch.tensor([[0], [size]])], dim=1)
                graphs.append(make_graph(joined, size + nodes, label))
        splits = split_pairs(num_pairs, generator)
        self.hold(graphs, splits)


def neighbor_degrees(edge_index: Tensor, num_nodes: int) -> Tensor:
    r"""Returns the five largest degrees of each node's neighbors, in descending order, 0 for missing ones, :obj:`[N, 5]`, given
    edges in both directions.

    Example:
        >>> neighbor_degrees(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), num_nodes=3)
        tensor([[2., 0., 0., 0., 0.],
                [1., 1., 0., 0., 0.],
                [2., 0., 0., 0., 0.]])
    """
    degree = torch.bincount(edge_index[0], minlength=num_nodes)
    source, target = edge_index[:, (edge_index[0] * (num_nodes + 1) - degree[edge_index[1]]).argsort()]
    rank = torch.arange(source.numel()) - (degree.cumsum(0) - degree)[source]
    shown = rank < 5
    features = torch.zeros(num_nodes, 5)
    features[source[shown], rank[shown]] = degree[target[shown]].float()
    return features


def make_graph(edges: Tensor, num_nodes: int, label: int) -> Data:
    r"""Creates an example from edges given in one direction."""
    edge_index = torch.cat([edges, edges.flip(0)], dim=1)
    return Data(x=neighbor_degrees(edge_index, num_nodes), edge_index=edge_index, y=torch.tensor([label]))


def split_pairs(num_pairs: int, generator: torch.Generator) -> dict[str, Tensor]:
    r"""Splits pairs of examples, which stay together, three quarters for training and one for validation."""
    order = torch.randperm(num_pairs, generator=generator)
    cut = max(1, num_pairs // 4)
    splits = zip(PAIR_SPLITS, (order[cut:], order[:cut]), strict=True)
    return {name: (2 * pairs.sort().values.unsqueeze(1) + torch.arange(2)).flatten() for name, pairs in splits}


def _random_edges(num_nodes: int, num_edges: int, generator: torch.Generator) -> Tensor:
    r"""Samples a uniformly random set of distinct edges, :obj:`[2, num_edges]`."""
    pairs = torch.triu_indices(num_nodes, num_nodes, offset=1)
    return pairs[:, torch.randperm(pairs.size(1), generator=generator)[:num_edges]]


def _look_alikes(motif: Tensor, nodes: int, count: int, generator: torch.Generator) -> list[Tensor]:
    r"""Samples random graphs with as many nodes and edges as the motif that are not the motif."""
    drawn = [motif]
    look_alikes: list[Tensor] = []
    while len(look_alikes) < count:
        drawn[1:] = [_random_edges(nodes, motif.size(1), generator) for _ in range(count)]
        edges = torch.stack(drawn)
        adjacency = torch.zeros(len(drawn), nodes, nodes, dtype=torch.float64)
        graph = torch.arange(len(drawn)).unsqueeze(1)
        adjacency[graph, edges[:, 0], edges[:, 1]] = adjacency[graph, edges[:, 1], edges[:, 0]] = 1.0
        power, walks = adjacency, []
        for _ in range(nodes):
            walks.append(power.diagonal(dim1=1, dim2=2).sum(1))
            power = power @ adjacency
        # Equal graphs have equal numbers of closed walks of every length; these are integers below 2^53.
        closed = torch.stack(walks, dim=1)
        look_alikes += list(edges[(closed != closed[0]).any(1)])
    return look_alikes[:count]


class InducedCycles(GeneratedDataset):
    r"""Random binary trees with one additional edge, which closes an induced cycle, for graph classification, from `"From
    block-Toeplitz matrices to differential equations on graphs" <https://arxiv.org/abs/2107.07999>`_ (Sec. 5.1.2).

    Trees grow node by node, and each node is a child of a random node with fewer than two children. In the positive example of
    a tree, the edge connects two nodes at the largest distance :math:`P`, and closes a cycle of :math:`P + 1` nodes. In the
    negative example, it connects two nodes that are neither neighbors nor at the largest distance, and closes a shorter cycle.
    Node features are those of :class:`~pyg_topomask.apps.datasets.motifs.MotifGraphs`. A random quarter of the trees is for
    validation.

    Args:
        num_pairs (int): The number of trees. Each tree gives two examples. (default: :obj:`2048`)
        size (int): The number of nodes of a tree, from 5. (default: :obj:`50`)
        seed (int): The seed. (default: :obj:`0`)

    Example:
        >>> InducedCycles(num_pairs=2, size=10)[0].num_edges
        20
    """

    splits = PAIR_SPLITS

    def __init__(
        self,
        root: str | None = None,
        split: str | None = None,
        num_pairs: int = 2048,
        size: int = 50,
        seed: int = 0,
        transform: Transform | None = None,
        pre_transform: Transform | None = None,
    ) -> None:
        check_whole(2, num_pairs=num_pairs)
        check_whole(5, size=size)
        seed = checked_seed(seed=seed)
        super().__init__(root, split, transform, pre_transform)
        generator = torch.Generator().manual_seed(seed)
        parent, distance = _trees(num_pairs, size, generator)
        diameter = distance.amax((1, 2), keepdim=True)
        # With at least 5 nodes, the diameter is at least 3, so such pairs exist.
        farthest = _choose(distance == diameter, generator)
        nearer = _choose((distance > 1) & (distance < diameter), generator)
        splits = split_pairs(num_pairs, generator)
        edges = torch.stack([parent[:, 1:], torch.arange(1, size).expand(num_pairs, -1)], dim=1)
        graphs = [
            make_graph(torch.cat([tree, ends[index].unsqueeze(1)], dim=1), size, label)
            for index, tree in enumerate(edges)
            for label, ends in enumerate((nearer, farthest))
        ]
        self.hold(graphs, splits)


def _trees(count: int, size: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    r"""Grows binary trees; returns the parents, :obj:`[count, size]`, and the distances, :obj:`[count, size, size]`."""
    tree = torch.arange(count)
    parent = torch.zeros(count, size, dtype=torch.long)
    children = torch.zeros(count, size, dtype=torch.long)
    distance = torch.zeros(count, size, size, dtype=torch.long)
    for node in range(1, size):
        above = torch.multinomial((children[:, :node] < 2).float(), 1, generator=generator).squeeze(1)
        parent[:, node] = above
        children[tree, above] += 1
        distance[:, node, :node] = distance[:, :node, node] = distance[tree, above, :node] + 1
    return parent, distance


def _choose(allowed: Tensor, generator: torch.Generator) -> Tensor:
    r"""Samples one of the allowed pairs of nodes of each tree, :obj:`[count, 2]`."""
    size = allowed.size(1)
    place = torch.multinomial(allowed.flatten(1).float(), 1, generator=generator).squeeze(1)
    return torch.stack([torch.div(place, size, rounding_mode='floor'), place % size], dim=1)
