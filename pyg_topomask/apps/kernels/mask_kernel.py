r"""A mask as a covariance function of GPyTorch."""

from __future__ import annotations

from typing import Any

import torch
from gpytorch.kernels import Kernel
from torch import Tensor
from torch_geometric.data import Data

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks import Mask
from pyg_topomask.utils.checks import check_nodes


class MaskKernel(Kernel):  # type: ignore[misc]
    r"""The covariance function :math:`k(i, j) = M_{ij}` between the nodes of a graph, for `GPyTorch <https://gpytorch.ai>`_.
    The inputs of the Gaussian process are the indices of nodes.

    The mask must be symmetric and positive semi-definite. This holds on undirected graphs for
    :class:`~pyg_topomask.masks.GRFMask` and :class:`~pyg_topomask.masks.RWGNKMask` with one ensemble of walks,
    :class:`~pyg_topomask.masks.PowerSeriesMask` with :obj:`parameterization="f"`, and
    :class:`~pyg_topomask.masks.HeatKernelMask` except for :obj:`kind="random_walk_laplacian"`.
    The parameters of the mask are learned with those of the Gaussian process.

    Up to :obj:`gpytorch.settings.max_cholesky_size` nodes, GPyTorch computes a dense Cholesky factor. Above, it uses conjugate
    gradients, which only multiply by the mask.

    Args:
        mask (Mask): The mask. Each head is a covariance function of a batch, if there are several.
        graph (Graph or torch_geometric.data.Data): The graph.
        check (bool): Test at every evaluation that the mask is symmetric and without negative eigenvalues, see
            :meth:`~pyg_topomask.operators.MaskOperator.to_linear_operator`. (default: :obj:`True`)
        **kwargs (optional): Further arguments of :class:`gpytorch.kernels.Kernel`.

    Raises:
        ValueError: If the inputs are not nodes of the graph. If :obj:`check=True` and the mask is asymmetric or has a negative
            eigenvalue.

    Shapes:
        - **input:** nodes :math:`(*, n, 1)` and :math:`(*, m, 1)`, whole numbers below :math:`|\mathcal{V}|` of any data type
        - **output:** covariances :math:`(*, n, m)`, where the batch ends with :math:`H` for :math:`H > 1` heads

    Example:
        >>> from pyg_topomask.masks import HeatKernelMask
        >>> data = Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=2)
        >>> kernel = MaskKernel(HeatKernelMask(lam=0.5), data)
        >>> kernel(torch.tensor([0, 1])).to_dense().detach()
        tensor([[0.6839, 0.3161],
                [0.3161, 0.6839]])
    """

    def __init__(self, mask: Mask, graph: Graph | Data, check: bool = True, **kwargs: Any) -> None:
        batch_shape = torch.Size([mask.heads] if mask.heads > 1 else [])
        super().__init__(**{'batch_shape': batch_shape, **kwargs})
        self.mask = mask
        self.graph = Graph.of(graph)
        self.check = check

    def forward(self, x1: Tensor, x2: Tensor, diag: bool = False, **params: Any) -> Any:
        nodes = self._nodes(x1), self._nodes(x2)
        matrix = self.mask(self.graph).to_linear_operator(check=self.check)
        batch = torch.broadcast_shapes(matrix.batch_shape, self.batch_shape, x1.shape[:-2], x2.shape[:-2])
        if all(bool((every == every.flatten(0, -2)[:1]).all()) for every in nodes):
            rows, cols = (every.flatten(0, -2)[0] for every in nodes)
            matrix = matrix[..., rows, :][..., cols].expand(*batch, rows.numel(), cols.numel())
            return matrix.diagonal() if diag else matrix
        (rows, row), (cols, col) = (every.unique(return_inverse=True) for every in nodes)
        entries = matrix[..., rows, :][..., cols].to_dense()
        width = 1 if diag else 2
        places: tuple[Tensor, ...] = (row, col) if diag else (row.unsqueeze(-1), col.unsqueeze(-2))
        if entries.dim() > 2:
            places = (torch.arange(self.mask.heads, device=entries.device).view(-1, *[1] * width), *places)
        out = entries[places]
        return out.expand(*batch, *out.shape[-width:])

    def _nodes(self, x: Tensor) -> Tensor:
        r"""Returns the nodes of inputs, :obj:`[*, n]`."""
        if x.dtype == torch.bool:
            raise ArgumentError('x', x.dtype, 'nodes, whole numbers', 'for a mask, mask.nonzero()')
        if x.size(-1) != 1:
            raise ArgumentError('x', f'shape {tuple(x.shape)}', '[n, 1] and [*, n, 1]')
        nodes = x.squeeze(-1).long()
        if bool((x.squeeze(-1) != nodes).any()):
            raise ArgumentError('x', 'fractions', 'nodes, whole numbers')
        check_nodes(self.graph.num_nodes, x=nodes.flatten())
        return nodes if nodes.dim() > 1 else nodes.unsqueeze(0)
