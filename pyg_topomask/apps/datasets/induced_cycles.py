r"""Random binary trees with one additional edge."""

from __future__ import annotations

import torch
from torch import Tensor

from pyg_topomask.apps.datasets.file_dataset import Transform
from pyg_topomask.apps.datasets.generated_dataset import GeneratedDataset
from pyg_topomask.apps.datasets.motifs import PAIR_SPLITS, make_graph, split_pairs
from pyg_topomask.utils.checks import check_whole, checked_seed


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
