r"""Masks in Gaussian processes: a covariance function of GPyTorch, and samples from the posterior on a graph."""

from __future__ import annotations

from typing import Any

import torch
from gpytorch.kernels import Kernel
from linear_operator import LinearOperator
from linear_operator.operators import ConstantMulLinearOperator
from linear_operator.settings import max_cholesky_size
from torch import Tensor
from torch_geometric.data import Data

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks import Mask
from pyg_topomask.operators.linear_operator import MaskLinearOperator
from pyg_topomask.utils.checks import check_above_zero, check_nodes, check_shape, check_whole


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


# A block of samples has at most so many numbers.
_NUMBERS = 2**20


@torch.no_grad()
def sample_posterior(
    covariance: LinearOperator,
    nodes: Tensor,
    y: Tensor,
    noise: float | Tensor,
    num_samples: int = 64,
    generator: torch.Generator | None = None,
) -> Tensor:
    r"""Samples functions on all nodes from the posterior of a Gaussian process with mean zero, by pathwise conditioning
    (`"Efficiently Sampling Functions from Gaussian Process Posteriors" <https://arxiv.org/abs/2002.09309>`_):

    .. math::
        \mathbf{f} + \mathbf{K}_{:,x} (\mathbf{K}_{x,x} + \sigma^2 \mathbf{I})^{-1} (\mathbf{y} - \mathbf{f}_x -
        \boldsymbol{\epsilon}), \qquad \mathbf{f} \sim \mathcal{N}(0, \mathbf{K}), \quad \boldsymbol{\epsilon} \sim
        \mathcal{N}(0, \sigma^2 \mathbf{I})

    With a mask estimated by walks, :math:`\mathbf{K} = \hat{\Phi} \hat{\Phi}^{\top}`, and a sample of the prior is
    :math:`\mathbf{f} = \hat{\Phi} \mathbf{w}` in :math:`O(nnz)`, as in `"Graph Random Features for Scalable Gaussian Processes"
    <https://arxiv.org/abs/2509.03691>`_. For other covariances of more than 800 nodes, it is
    :math:`\mathbf{K} \mathbf{K}^{-1/2} \mathbf{w}` by contour integral quadrature (`"Fast Matrix Square Roots with Applications
    to Gaussian Processes and Bayesian Optimization" <https://arxiv.org/abs/2006.11267>`_), with an error of about 0.1 %. This
    takes hundreds of products with :math:`\mathbf{K}` for each sample, in float64. The mean and the variance of the samples
    estimate those of the posterior.

    Args:
        covariance (LinearOperator): :math:`\mathbf{K}` of all nodes, :obj:`[N, N]`, as from
            :meth:`~pyg_topomask.operators.MaskOperator.to_linear_operator`, possibly times a number.
        nodes (torch.Tensor): The nodes :math:`x` with observations, :obj:`[n]`.
        y (torch.Tensor): The observations :math:`\mathbf{y}`, :obj:`[n]`.
        noise (float or torch.Tensor): The variance :math:`\sigma^2` of the observations, above 0, as in
            :obj:`likelihood.noise` of GPyTorch.
        num_samples (int): The number of samples. (default: :obj:`64`)
        generator (torch.Generator, optional): The source of random numbers. (default: :obj:`None`)

    Returns:
        torch.Tensor: :obj:`[num_samples, N]`.

    Raises:
        ValueError: If an argument is outside its range, not finite, or no tensor of the right size.

    Example:
        >>> from torch_geometric.data import Data
        >>> from pyg_topomask.masks import GRFMask
        >>> data = Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=2)
        >>> covariance = GRFMask()(data).to_linear_operator()
        >>> sample_posterior(covariance, torch.tensor([0]), torch.tensor([1.0]), noise=0.1, num_samples=5).shape
        torch.Size([5, 2])
    """
    if isinstance(noise, Tensor) and noise.numel() == 1:
        noise = float(noise)
    check_above_zero(noise=noise)
    check_whole(1, num_samples=num_samples)
    if not isinstance(covariance, LinearOperator):
        given = type(covariance).__name__
        raise ArgumentError('covariance', given, 'a LinearOperator, as from mask(data).to_linear_operator()')
    if covariance.dim() != 2:
        raise ArgumentError('covariance', f'shape {tuple(covariance.shape)}', 'one matrix, [N, N]')
    check_nodes(covariance.size(0), nodes=nodes)
    check_shape((nodes.numel(),), y=y)
    if not bool(y.isfinite().all()):
        raise ArgumentError('y', f'{float(y[~y.isfinite()][0])}', 'finite numbers')

    def normal(size: int) -> Tensor:
        device = covariance.device if generator is None else generator.device
        draws = torch.randn(size, num_samples, generator=generator, dtype=covariance.dtype, device=device)
        return draws.to(covariance.device)

    if _has_root(covariance):
        root = covariance.root_decomposition().root
        prior = root @ normal(root.size(-1))
    else:
        wide, draws = covariance.to(torch.float64), normal(covariance.size(0))
        chunks = draws.double().split(max(1, _NUMBERS // max(1, draws.size(0))), dim=1)
        prior = torch.cat([wide @ wide.sqrt_inv_matmul(chunk) for chunk in chunks], dim=1).to(draws.dtype)
    columns = covariance[:, nodes]
    observed = columns[nodes].add_diagonal(torch.tensor(float(noise), dtype=covariance.dtype, device=covariance.device))
    rest = y.to(prior).unsqueeze(1) - prior[nodes] - noise**0.5 * normal(nodes.numel())
    return (prior + columns @ observed.solve(rest)).t()


def _has_root(covariance: LinearOperator) -> bool:
    r"""Whether linear_operator finds an exact root, and not an approximation of low rank."""
    if isinstance(covariance, ConstantMulLinearOperator):
        return _has_root(covariance.base_linear_op)
    small: bool = covariance.size(0) <= max_cholesky_size.value()
    return small or (isinstance(covariance, MaskLinearOperator) and covariance.has_root)
