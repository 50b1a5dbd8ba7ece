r"""The attention pattern of BigBird over nodes in their order."""

from __future__ import annotations

from collections.abc import Hashable

import torch

from pyg_topomask.graphs.graph import Graph
from pyg_topomask.graphs.sparse_pattern import SparsePattern
from pyg_topomask.masks.base.mask import Mask
from pyg_topomask.masks.expander import expander_edges
from pyg_topomask.operators.base import MaskOperator
from pyg_topomask.operators.sparse import sparse_operator
from pyg_topomask.utils.checks import check_even, check_size, checked_seed
from pyg_topomask.utils.functorch import is_exporting


class BigBirdMask(Mask):
    r"""Attention to the nearest nodes in their order, to random nodes, and to and from the first and last nodes of each graph,
    from `"Big Bird: Transformers for Longer Sequences" <https://arxiv.org/abs/2007.14062>`_ (Sec. 2), a baseline. With
    :math:`p_i` for the position of node :math:`i` in its graph, which has :math:`n` nodes,

    .. math::
        M_{ij} = \begin{cases} 1 & \text{if } |p_i - p_j| \leq \text{window} \\
        1 & \text{if } p_i \text{ or } p_j \text{ is less than ends, or at least } n - \text{ends} \\
        1 & \text{if a random edge joins } i \text{ and } j \\
        0 & \text{otherwise} \end{cases}

    The mask depends on the order of the nodes and ignores edges. The random edges are those of a regular graph, as in
    :class:`~pyg_topomask.masks.ExpanderMask`, where the paper draws keys for each query. The pattern is one of nodes, as in the
    equations of the paper. Its code, and GraphGPS's, round it to blocks. A product takes
    :math:`O(N (\text{window} + \text{ends} + \text{degree}))`.

    Args:
        heads (int): The number of heads. (default: :obj:`1`)
        window (int): The nodes before and after a node that it attends to, at least 0. (default: :obj:`4`)
        ends (int): The nodes at each end of a graph that attend to all nodes and that all nodes attend to, at least 0.
            (default: :obj:`3`)
        degree (int): The number of random neighbors of a node, even. (default: :obj:`8`)
        seed (int): The seed of the random neighbors. (default: :obj:`0`)

    Raises:
        ValueError: If :obj:`window` or :obj:`ends` is not a whole number from 0, or :obj:`degree` is not positive and even.

    Shapes:
        - **input:** graphs with :math:`|\mathcal{V}|` nodes
        - **output:** a mask operator :math:`(H, |\mathcal{V}|, |\mathcal{V}|)`

    Example:
        >>> from torch_geometric.data import Data
        >>> BigBirdMask(window=0, ends=1, degree=2, seed=0)(Data(num_nodes=5)).to_dense()[0, 2]
        tensor([1., 1., 1., 0., 1.])
    """

    form = 'sparse'
    direction = 'unused'

    def __init__(self, heads: int = 1, window: int = 4, ends: int = 3, degree: int = 8, seed: int = 0) -> None:
        super().__init__(heads)
        check_size(0, window=window, ends=ends)
        check_even(degree=degree)
        self.window = int(window)
        self.ends = int(ends)
        self.degree = int(degree)
        self.seed = checked_seed(seed=seed)

    def settings(self) -> Hashable:
        return type(self), self.window, self.ends, self.degree, self.seed

    def prepare(self, graph: Graph, generator: torch.Generator | None = None) -> SparsePattern:
        nodes = torch.arange(graph.num_nodes, device=graph.device).unsqueeze(1)
        segments = graph.segments
        first, last = segments.first.unsqueeze(1), segments.ptr[1:][segments.index].unsqueeze(1) - 1
        # No further than the largest graph reaches. Of an exported program, its size is unknown.
        most = max(self.window, self.ends) if is_exporting() else segments.largest
        window, ends = min(self.window, most), min(self.ends, most)
        near = nodes + torch.arange(-window, window + 1, device=graph.device)
        slot = torch.arange(ends, device=graph.device)
        outer = torch.cat([first + slot, last - slot], dim=1)
        pairs = []
        for col in (near, outer):
            inside = (col >= first) & (col <= last)
            pairs.append(torch.stack([nodes.expand_as(col)[inside], col[inside]]))
        row, col = torch.cat([*pairs, pairs[1].flip(0), expander_edges(graph, self.degree, self.seed)], dim=1)
        return SparsePattern.from_pairs(row, col, graph.num_nodes, graph.num_nodes)[0]

    def bind(self, graph: Graph, state: SparsePattern) -> MaskOperator:
        return sparse_operator(graph, state, torch.ones(1, state.nnz, device=graph.device), self.heads)
