r"""The action of matrix exponentials on dense blocks, by polynomials in a sparse matrix."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from pyg_topomask.graphs.sparse_pattern import SparsePattern
from pyg_topomask.operators.polynomial import Polynomial
from pyg_topomask.operators.slots import Slots
from pyg_topomask.utils.functorch import unwrapped


def chebyshev_coefficients(z: Tensor, tolerance: float) -> Tensor:
    r"""Returns the coefficients of :math:`\exp(z (t - 1)) = \sum_k c_k T_k(t)` on :math:`-1 \le t \le 1` for :math:`z \ge 0`,
    :obj:`[H]`. As many as the error :math:`\epsilon`, from about :obj:`1e-15`, allows: about :math:`\sqrt{2 z \log(1 /
    \epsilon)}` for large :math:`z`. The result is in float64, :obj:`[H, K + 1]`, and differentiable.

    Example:
        >>> chebyshev_coefficients(torch.tensor([1.0]), tolerance=0.1)
        tensor([[0.4658, 0.4158, 0.0999, 0.0163]], dtype=torch.float64)
    """
    z, digits = z.double(), math.log(4 / tolerance)
    degree = math.ceil(2 * math.sqrt((float(unwrapped(z).max()) + digits) * digits))
    angle = torch.arange(2 * degree, device=z.device, dtype=z.dtype) * (math.pi / degree)
    series: Tensor = torch.fft.rfft((z.unsqueeze(1) * (angle.cos() - 1)).exp()).real / degree
    series = torch.cat([series[:, :1] / 2, series[:, 1:]], dim=1)
    return _cut(series, tolerance)


def taylor_coefficients(z: Tensor, tolerance: float) -> Tensor:
    r"""As :func:`chebyshev_coefficients`, but of :math:`\exp(z (t - 1)) = \sum_k e^{-z} z^k / k! \; t^k`, the probabilities of
    a Poisson variable.
    """
    z, digits = z.double(), math.log(4 / tolerance)
    largest = float(unwrapped(z).max())
    degree = math.ceil(largest + digits / 3 + math.sqrt(digits**2 / 9 + 2 * largest * digits))
    k = torch.arange(degree + 1, device=z.device, dtype=z.dtype)
    safe = z.clamp(min=torch.finfo(z.dtype).tiny).unsqueeze(1)
    return _cut((k * safe.log() - safe - torch.lgamma(k + 1)).exp(), tolerance)


def _cut(series: Tensor, tolerance: float) -> Tensor:
    # One term more than the sum needs: its derivative in z falls one term later.
    rest = series.detach().abs().flip(1).cumsum(1).flip(1).amax(0)
    return series[:, : 1 + int(unwrapped((rest > tolerance).sum()).max())]


@dataclass(eq=False, repr=False, kw_only=True)
class ExpAction(Polynomial):
    r""":math:`\exp(z (\mathbf{B} - \mathbf{I}))` as a polynomial with an error of :obj:`tolerance`. :obj:`index` is the graph
    of each node, and :obj:`ptr` where the nodes of each begin.
    """

    index: Tensor
    ptr: Tensor
    tolerance: float

    def rows(self, slots: Slots, dtype: torch.dtype) -> Tensor:
        rows, error = super().rows(slots, dtype), 16 * torch.finfo(dtype).eps * relative_error(self.tolerance, dtype)
        # Chebyshev polynomials have errors of either sign where there is nothing.
        return rows.masked_fill((rows < 0) & (rows > -error), 0.0) if self.method == 'chebyshev' else rows

    def magnitude(self, x: Tensor) -> Tensor:
        if self.method == 'powers':
            return super().magnitude(x)
        bound = replace(self, value=positive_off_diagonal(self.value, self.pattern))
        return bound.apply(x).clamp(min=0.0) + chebyshev_error(self.tolerance, x, self.index, self.ptr.numel() - 1)


def positive_off_diagonal(value: Tensor, pattern: SparsePattern) -> Tensor:
    r"""Returns the entries of a square matrix :math:`\mathbf{B}`, positive off the diagonal: the entries of
    :math:`\exp(z (\mathbf{B} - \mathbf{I}))` are at most those of its exponential.
    """
    return torch.where(pattern.row == pattern.col, value, value.abs())


def relative_error(tolerance: float, dtype: torch.dtype) -> float:
    r"""Returns a bound on the error of Chebyshev polynomials from the tolerance and rounding, over the largest entry of the
    graph.
    """
    return max(1.0, tolerance / (16 * torch.finfo(dtype).eps))


def chebyshev_error(tolerance: float, x: Tensor, graph: Tensor, num_graphs: int) -> Tensor:
    r"""Returns a bound on the error of Chebyshev polynomials at each node for :math:`\mathbf{x} \ge 0`. Rows with a weight
    below this bound count as zero rows.
    """
    error = relative_error(tolerance, x.dtype)
    index = graph.view(-1, *[1] * (x.dim() - 1)).expand_as(x)
    return error * x.new_zeros(num_graphs, *x.shape[1:]).scatter_reduce(0, index, x, 'amax').index_select(0, graph)
