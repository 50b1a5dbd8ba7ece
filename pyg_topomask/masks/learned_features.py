r"""The mask of learned node features."""

from __future__ import annotations

from collections.abc import Hashable

import torch
from torch import Tensor

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks.base.mask import Mask
from pyg_topomask.operators.base import MaskOperator
from pyg_topomask.operators.given import low_rank_operator
from pyg_topomask.utils.checks import MAX_NODES, check_size, check_whole


class LearnedFeaturesMask(Mask):
    r"""A mask of learned node features, :math:`\mathbf{M} = \Phi \Phi^{\top}` within each graph. It is the ablation "fully
    learnable features" in `"Linear Transformer Topological Masking with Graph Random Features"
    <https://arxiv.org/abs/2410.03462>`_ (App. C.2, Table 3). The features belong to positions in the graph, so the nodes of all
    graphs must have the same fixed order, such as the pixels of images. The mask ignores edges. A product takes
    :math:`O(N \, \text{rank})`.

    Args:
        heads (int): The number of heads. (default: that of the layer, or :obj:`1`)
        num_nodes (int): The largest number of nodes of a graph. (default: :obj:`1`)
        rank (int, optional): The number of features. (default: :obj:`num_nodes`, as in the paper)

    Raises:
        ValueError: If a number is below 1, or a graph has more nodes.

    Shapes:
        - **input:** graphs with at most :obj:`num_nodes` nodes each
        - **output:** a mask operator :math:`(H, |\mathcal{V}|, |\mathcal{V}|)`
        - **parameters:** :obj:`features` :math:`(\text{num\_nodes}, H, \text{rank})`

    Example:
        >>> from torch_geometric.data import Data
        >>> LearnedFeaturesMask(heads=2, num_nodes=3)(Data(num_nodes=3)).to_dense().shape
        torch.Size([2, 3, 3])
    """

    form = 'low_rank'
    direction = 'unused'

    def __init__(self, heads: int = 1, num_nodes: int = 1, rank: int | None = None) -> None:
        super().__init__(heads)
        rank = num_nodes if rank is None else rank
        check_whole(1, MAX_NODES, num_nodes=num_nodes)
        check_size(rank=rank)
        self.features = torch.nn.Parameter(torch.empty(num_nodes, heads, rank))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        # Entries of M start near 1, as in unmasked attention, with noise that distinguishes the features.
        scale = self.features.size(-1) ** -0.5
        torch.nn.init.normal_(self.features, mean=scale, std=0.1 * scale)

    def settings(self) -> Hashable:
        return type(self)

    def prepare(self, graph: Graph, generator: torch.Generator | None = None) -> Tensor:
        return graph.segments.position

    def bind(self, graph: Graph, state: Tensor) -> MaskOperator:
        if graph.segments.largest > self.features.size(0):
            raise ArgumentError(
                'num_nodes',
                f'{self.features.size(0)} for a graph of {graph.segments.largest} nodes',
                'graphs with at most as many',
            )
        factor = self.features.index_select(0, state)
        return low_rank_operator(graph, factor, factor)

    def extra_repr(self) -> str:
        return f'heads={self.heads}, num_nodes={self.features.size(0)}, rank={self.features.size(-1)}{self._directed()}'
