r"""The mask of ones within each graph."""

from __future__ import annotations

import torch

from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks.base.mask import Mask
from pyg_topomask.operators.base import MaskOperator
from pyg_topomask.operators.given import low_rank_operator


class PackingMask(Mask):
    r"""Unmasked linear attention within each graph of a batch, from `"From block-Toeplitz matrices to differential equations
    on graphs" <https://arxiv.org/abs/2107.07999>`_ (Sec. 3):

    .. math::
        M_{ij} = 1 \text{ if nodes } i \text{ and } j \text{ are in the same graph, else } 0

    A product is a sum over each graph and takes :math:`O(N)`.

    The mask ignores edges.

    Args:
        heads (int): The number of heads. (default: :obj:`1`)

    Shapes:
        - **input:** graphs with :math:`|\mathcal{V}|` nodes
        - **output:** a mask operator :math:`(H, |\mathcal{V}|, |\mathcal{V}|)`

    Example:
        >>> from torch_geometric.data import Data
        >>> PackingMask()(Data(num_nodes=2)).to_dense()
        tensor([[[1., 1.],
                 [1., 1.]]])
    """

    form = 'low_rank'
    direction = 'unused'

    def prepare(self, graph: Graph, generator: torch.Generator | None = None) -> None:
        return None

    def bind(self, graph: Graph, state: None) -> MaskOperator:
        ones = torch.ones(1, 1, 1, device=graph.device).expand(graph.num_nodes, self.heads, 1)
        return low_rank_operator(graph, ones, ones)
