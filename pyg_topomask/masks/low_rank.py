r"""Low-rank masks."""

from __future__ import annotations

import torch
from torch import Tensor

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks.base.parameters import GivenMask, as_floating_point, check_entries
from pyg_topomask.operators.base import MaskOperator
from pyg_topomask.operators.given import low_rank_operator


class LowRankMask(GivenMask):
    r"""A low-rank mask with given factors, :math:`\mathbf{M} = \mathbf{A} \mathbf{B}^{\top}` within each graph. The factors are
    tensors, or names of node attributes, which are batched and moved with the data. A product takes :math:`O(N r)`.

    The mask ignores edges.

    Args:
        heads (int): The number of heads. (default: :obj:`1`)
        left (torch.Tensor or str): :math:`\mathbf{A}`, :obj:`[N, r]` or :obj:`[N, heads, r]`. (default: :obj:`"mask_left"`)
        right (torch.Tensor or str): :math:`\mathbf{B}`, with one of these shapes. (default: :obj:`"mask_right"`)

    Raises:
        ValueError: If the factors are missing from the data, are not finite, or do not fit each other, the nodes or the heads.

    Shapes:
        - **input:** graphs with :math:`|\mathcal{V}|` nodes, two factors :math:`(|\mathcal{V}|, r)` or
          :math:`(|\mathcal{V}|, H, r)`
        - **output:** a mask operator :math:`(H, |\mathcal{V}|, |\mathcal{V}|)`

    Example:
        >>> from torch_geometric.data import Data
        >>> LowRankMask(left=torch.tensor([[1.], [2.]]), right=torch.tensor([[3.], [4.]]))(Data(num_nodes=2)).to_dense()
        tensor([[[3., 4.],
                 [6., 8.]]])
    """

    form = 'low_rank'
    direction = 'unused'

    def __init__(self, heads: int = 1, left: Tensor | str = 'mask_left', right: Tensor | str = 'mask_right') -> None:
        super().__init__(heads)
        self._names: dict[str, str] = {}
        for name, factor in (('left', left), ('right', right)):
            if isinstance(factor, str):
                self._names[name] = factor
                continue
            if not isinstance(factor, Tensor):
                raise ArgumentError(name, repr(factor), 'a tensor and the name of an attribute of the data')
            self._keep(name, factor)

    def prepare(self, graph: Graph, generator: torch.Generator | None = None) -> None:
        for name in self._names:  # once per graph, because it synchronizes with the GPU
            check_entries(name, self._factor(graph, name))

    def bind(self, graph: Graph, state: None) -> MaskOperator:
        left, right = self._factor(graph, 'left'), self._factor(graph, 'right')
        if left.size(-1) != right.size(-1):
            raise ArgumentError('right', f'rank {right.size(-1)} for left of rank {left.size(-1)}', 'equal ranks')
        return low_rank_operator(graph, left, right)

    def _factor(self, graph: Graph, name: str) -> Tensor:
        attribute = self._names.get(name)
        factor: Tensor = getattr(self, name) if attribute is None else graph.attribute(attribute, name)
        if not isinstance(factor, Tensor):
            raise ArgumentError(name, f'{attribute!r} with {type(factor).__name__}', 'a tensor')
        factor = as_floating_point(name, factor)
        if factor.dim() == 2:
            factor = factor.unsqueeze(1)
        rows, heads, rank = factor.shape if factor.dim() == 3 else (-1, 0, 0)
        if rows != graph.num_nodes or heads not in (1, self.heads) or rank == 0:
            given = f'shape {tuple(factor.shape)} for {graph.num_nodes} nodes and {self.heads} heads'
            raise ArgumentError(name, given, '[N, r] and [N, heads, r] of rank r from 1')
        return factor.expand(-1, self.heads, -1)
