r"""Samples from the posterior of a Gaussian process on a graph."""

from __future__ import annotations

import torch
from linear_operator import LinearOperator
from linear_operator.operators import ConstantMulLinearOperator
from linear_operator.settings import max_cholesky_size
from torch import Tensor

from pyg_topomask.errors import ArgumentError
from pyg_topomask.operators.linear_operator import MaskLinearOperator
from pyg_topomask.utils.checks import check_above_zero, check_nodes, check_shape, check_whole

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
        raise ArgumentError(
            'covariance', type(covariance).__name__, 'a LinearOperator, as from mask(data).to_linear_operator()'
        )
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
