r"""A given matrix as a mask."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks.base.kinds import GivenMask
from pyg_topomask.operators.base import MaskOperator
from pyg_topomask.operators.forms import Slots


@dataclass(eq=False, repr=False)
class Dense(MaskOperator):
    r"""An explicit matrix, :obj:`[H or 1, N, N]`."""

    matrix: Tensor

    def apply(self, x: Tensor) -> Tensor:
        return torch.matmul(self.matrix.to(x.dtype), x.transpose(0, 1)).transpose(0, 1)

    def rows(self, slots: Slots, dtype: torch.dtype) -> Tensor:
        nodes = slots.nodes
        column = torch.arange(nodes.size(0), device=nodes.device).unsqueeze(1)
        return self.matrix.to(dtype)[:, nodes, column].transpose(0, 1)

    @property
    def T(self) -> MaskOperator:
        return replace(self, matrix=self.matrix.transpose(1, 2))


class DenseMask(GivenMask):
    r"""A given :math:`N \times N` matrix as a mask, for small graphs and for comparisons. Entries between different graphs of a
    batch count as zero. The mask costs :math:`O(N^2)`. One product covers all nodes, so NaN in one graph spreads to the other
    graphs of the batch.

    The mask ignores edges.

    Args:
        heads (int): The number of heads. (default: :obj:`1`, or the number of heads of the matrix)
        matrix (torch.Tensor): The matrix over all nodes of the batch, :obj:`[N, N]` or :obj:`[heads, N, N]`; a
            :class:`~torch.nn.Parameter` is learned.

    Raises:
        ValueError: If the matrix is missing, is not finite, or does not fit the heads or the nodes.

    Shapes:
        - **input:** graphs with :math:`|\mathcal{V}|` nodes
        - **output:** a mask operator :math:`(H, |\mathcal{V}|, |\mathcal{V}|)`
        - **parameters:** :obj:`matrix`, in its given shape *(optional)*

    Example:
        >>> from torch_geometric.data import Data
        >>> DenseMask(matrix=torch.tensor([[0., 1.], [2., 3.]]))(Data(num_nodes=2)).to_dense()
        tensor([[[0., 1.],
                 [2., 3.]]])
    """

    form = 'product'
    direction = 'unused'

    matrix: Tensor

    def __init__(self, heads: int = 1, matrix: Tensor | None = None) -> None:
        if isinstance(heads, Tensor):
            raise ArgumentError('heads', 'a tensor', 'a whole number, and the matrix as matrix=')
        super().__init__(heads)
        if not isinstance(matrix, Tensor):
            raise ArgumentError('matrix', repr(matrix), 'tensors of shape [N, N] and [heads, N, N]')
        shape = tuple(matrix.shape)
        if heads == 1 and len(shape) == 3:
            self.heads = heads = max(shape[0], 1)
        if len(shape) not in (2, 3) or shape[-1] != shape[-2] or shape[:-2] not in ((), (1,), (heads,)):
            raise ArgumentError('matrix', f'shape {shape} for {heads} heads', '[N, N] and [heads, N, N]')
        self._keep('matrix', matrix)

    def prepare(self, graph: Graph, generator: torch.Generator | None = None) -> None:
        return None

    def bind(self, graph: Graph, state: None) -> MaskOperator:
        matrix = self.matrix if self.matrix.dim() == 3 else self.matrix.unsqueeze(0)
        if matrix.size(-1) != graph.num_nodes:
            raise ArgumentError('matrix', f'{matrix.size(-1)} rows for {graph.num_nodes} nodes', 'one row per node')
        if graph.batch is not None:
            matrix = matrix * (graph.batch.unsqueeze(0) == graph.batch.unsqueeze(1))
        matrix = matrix.expand(self.heads, -1, -1)
        return Dense(matrix, segments=graph.segments, heads=self.heads, cost=graph.num_nodes**2)
