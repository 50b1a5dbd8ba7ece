r"""The alignment and uniformity of the embeddings of users and items."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from pyg_topomask.errors import ArgumentError
from pyg_topomask.utils.checks import check_above_zero, check_not_negative


def alignment(x: Tensor, y: Tensor) -> Tensor:
    r"""The mean squared distance of pairs of embeddings, :obj:`[n, d]`, on the unit sphere, from `"Understanding Contrastive
    Representation Learning through Alignment and Uniformity on the Hypersphere" <https://arxiv.org/abs/2005.10242>`_:

    .. math::
        \frac{1}{n} \sum_i \left\| \frac{\mathbf{x}_i}{\|\mathbf{x}_i\|} - \frac{\mathbf{y}_i}{\|\mathbf{y}_i\|} \right\|^2

    Example:
        >>> float(alignment(torch.tensor([[2.0, 0.0]]), torch.tensor([[0.0, 1.0]])))
        2.0
    """
    if x.shape != y.shape:
        raise ArgumentError('y', f'shape {list(y.shape)}', f'that of x, {list(x.shape)}')
    if x.size(0) == 0:
        return _unit(x).sum() + _unit(y).sum()
    return (_unit(x) - _unit(y)).square().sum(-1).mean()


def uniformity(x: Tensor, t: float = 2.0) -> Tensor:
    r"""The nonuniformity of points on the unit sphere, over all pairs of different rows, from the same paper as
    :func:`alignment`:

    .. math::
        \log \frac{1}{n (n - 1)} \sum_{i \neq j}
        \exp\left(-t \left\| \frac{\mathbf{x}_i}{\|\mathbf{x}_i\|} - \frac{\mathbf{x}_j}{\|\mathbf{x}_j\|} \right\|^2\right)

    The result is :obj:`0` for fewer than two rows. DirectAU has :math:`t = 2`, and MGFormer's Eq. 13 has :math:`t = 1`.

    Example:
        >>> round(float(uniformity(torch.eye(2), t=1.0)), 4)
        -2.0
    """
    check_above_zero(t=t)
    x, n = _unit(x), x.size(0)
    if n < 2:
        return 0.0 * x.sum()
    return (-t * torch.pdist(x).square()).logsumexp(0) - math.log(n * (n - 1) / 2)


class DirectAULoss(torch.nn.Module):
    r"""Alignment and uniformity of users and items, from `"Towards Representation Alignment and Uniformity in Collaborative
    Filtering" <https://arxiv.org/abs/2206.12811>`_ and, with :obj:`t=1.0` and :obj:`average=False`, `"Masked Graph
    Transformer for Large-Scale Recommendation" <https://doi.org/10.1145/3626772.3657971>`_ (Eq. 13, of normalized embeddings):

    .. math::
        \mathcal{L} = \mathcal{L}_\mathrm{align} + \lambda \, \mathcal{L}_\mathrm{uniform}

    Args:
        weight (float, optional): :math:`\lambda`. (default: :obj:`1.0`)
        t (float, optional): The factor in the exponent of :func:`uniformity`. (default: :obj:`2.0`)
        average (bool, optional): If set to :obj:`True`, :math:`\mathcal{L}_\mathrm{uniform}` is the mean of the terms of
            users and items, as in DirectAU's code. Otherwise it is their sum, as in Eq. 13. (default: :obj:`True`)

    Raises:
        ValueError: If :obj:`weight` is not a finite number of at least 0, or :obj:`t` is not a finite number above 0.

    Example:
        >>> loss = DirectAULoss(weight=0.5)
        >>> loss(torch.randn(8, 4), torch.randn(8, 4)).shape
        torch.Size([])
    """

    def __init__(self, weight: float = 1.0, t: float = 2.0, average: bool = True) -> None:
        super().__init__()
        check_not_negative(weight=weight)
        check_above_zero(t=t)
        self.weight = weight
        self.t = t
        self.average = average

    def forward(self, users: Tensor, items: Tensor) -> Tensor:
        r"""Returns the loss of pairs of users and their items, with embeddings of shape :obj:`[n, d]`."""
        uniform = uniformity(users, self.t) + uniformity(items, self.t)
        return alignment(users, items) + self.weight * (uniform / 2 if self.average else uniform)

    def extra_repr(self) -> str:
        return f'weight={self.weight}, t={self.t}, average={self.average}'


def _unit(x: Tensor) -> Tensor:
    # Squares of small numbers underflow in half precision.
    return F.normalize(x.float() if x.dtype in (torch.float16, torch.bfloat16) else x, dim=-1)
