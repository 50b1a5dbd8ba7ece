r"""The attention pattern of BigBird over nodes in their order, as a mask."""

from __future__ import annotations

from collections.abc import Hashable

import torch

from pyg_topomask.graphs.graph import Graph
from pyg_topomask.graphs.sparse_pattern import SparsePattern
from pyg_topomask.masks import Mask
from pyg_topomask.masks.expander import expander_edges
from pyg_topomask.operators.base import MaskOperator
from pyg_topomask.operators.sparse import sparse_operator

__all__ = ['BigBirdMask']


class BigBirdMask(Mask):
    r"""Attention to the nearest nodes by number, to random ones, and to and from the first and last ones of each graph, as in
    `"Big Bird: Transformers for Longer Sequences" <https://arxiv.org/abs/2007.14062>`_ (Sec. 2), by nodes and not by blocks.

    Args:
        window (int): Nodes on each side. (default: :obj:`4`)
        ends (int): Nodes at each end of a graph that are global. (default: :obj:`3`)
        degree (int): Random neighbors of a node, even. (default: :obj:`8`)
    """

    def __init__(self, window: int = 4, ends: int = 3, degree: int = 8) -> None:
        super().__init__()
        self.window, self.ends, self.degree = window, ends, degree

    def settings(self) -> Hashable:
        return type(self).__name__, self.window, self.ends, self.degree

    def prepare(self, graph: Graph, generator: torch.Generator | None = None) -> SparsePattern:
        nodes = torch.arange(graph.num_nodes, device=graph.device).unsqueeze(1)
        segments = graph.segments
        first, last = segments.first.unsqueeze(1), segments.ptr[1:][segments.index].unsqueeze(1) - 1
        near = nodes + torch.arange(-self.window, self.window + 1, device=graph.device)
        slot = torch.arange(self.ends, device=graph.device)
        outer = torch.cat([first + slot, last - slot], dim=1)
        pairs = []
        for col in (near, outer):
            inside = (col >= first) & (col <= last)
            pairs.append(torch.stack([nodes.expand_as(col)[inside], col[inside]]))
        row, col = torch.cat([*pairs, pairs[1].flip(0), expander_edges(graph, self.degree)], dim=1)
        return SparsePattern.from_pairs(row, col, graph.num_nodes, graph.num_nodes)[0]

    def bind(self, graph: Graph, state: SparsePattern) -> MaskOperator:
        return sparse_operator(graph, state, torch.ones(1, state.nnz, device=state.col.device), self.heads)
