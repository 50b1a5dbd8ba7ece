r"""Masks that exclude padded nodes."""

from __future__ import annotations

from collections.abc import Hashable

import torch
from torch import Tensor

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks.base.mask import Mask
from pyg_topomask.operators.base import MaskOperator
from pyg_topomask.operators.given import low_rank_operator
from pyg_topomask.utils.checks import described


class PaddingMask(Mask):
    r"""Ones between the valid nodes of a graph, and zeros elsewhere, from `"From block-Toeplitz matrices to differential
    equations on graphs" <https://arxiv.org/abs/2107.07999>`_ (Sec. 3):

    .. math::
        M_{ij} = v_i v_j \text{ for nodes of the same graph, else } 0, \qquad v_i = 1 \text{ for valid nodes, else } 0

    No node attends to padded nodes, and the output of padded nodes is 0. The mask has rank 1 within a graph, so you can
    multiply any mask by it: :obj:`mask * PaddingMask()` excludes the padded nodes. A product takes :math:`O(N)`.

    The mask ignores edges.

    Args:
        heads (int): The number of heads. (default: :obj:`1`)
        valid (str): The name of a boolean node attribute of the data, :obj:`[N]`. (default: :obj:`"valid"`)

    Raises:
        ValueError: If the attribute is missing, is not boolean, or does not fit the nodes.

    Shapes:
        - **input:** graphs with :math:`|\mathcal{V}|` nodes, the attribute :obj:`valid` :math:`(|\mathcal{V}|)`
        - **output:** a mask operator :math:`(H, |\mathcal{V}|, |\mathcal{V}|)`

    Example:
        >>> from torch_geometric.data import Data
        >>> PaddingMask()(Data(valid=torch.tensor([True, False]), num_nodes=2)).to_dense()
        tensor([[[1., 0.],
                 [0., 0.]]])
    """

    form = 'low_rank'
    direction = 'unused'

    def __init__(self, heads: int = 1, valid: str = 'valid') -> None:
        super().__init__(heads)
        self.valid = valid

    def settings(self) -> Hashable:
        return type(self), self.valid

    def prepare(self, graph: Graph, generator: torch.Generator | None = None) -> Tensor:
        valid = graph.attribute(self.valid, 'valid')
        if not isinstance(valid, Tensor) or valid.shape != (graph.num_nodes,) or valid.dtype != torch.bool:
            given = f'{self.valid!r} with {described(valid)}'
            raise ArgumentError('valid', given, f'a boolean tensor of shape [{graph.num_nodes}]')
        return valid.to(torch.get_default_dtype()).view(-1, 1, 1)

    def bind(self, graph: Graph, state: Tensor) -> MaskOperator:
        factor = state.expand(-1, self.heads, -1)
        return low_rank_operator(graph, factor, factor)
