r"""Matrix exponentials, by polynomials in a sparse matrix, and the spectral bound that they need."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import scipy
import torch
from torch import Tensor

from pyg_topomask.graphs.sparse_pattern import SparsePattern
from pyg_topomask.operators.forms import Slots
from pyg_topomask.operators.polynomial import Polynomial
from pyg_topomask.operators.sparse_matmul import multiply
from pyg_topomask.utils.functorch import unwrapped

# Power iterations with the same scale.
_SCALED = 4


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


class GlobalReductions:
    r"""Reductions of an adjacency matrix over all nodes, for heat kernels. :obj:`order` is the number that a user knows each
    node by.
    """

    def __init__(self, pattern: SparsePattern, order: Tensor | None = None) -> None:
        self.pattern = pattern
        self.order = order
        self.row = pattern.row.long()
        self.col = pattern.col.long()

    def degree(self, weight: Tensor) -> Tensor:
        r"""Returns the sums of absolute values over the columns."""
        return weight.new_zeros(self.pattern.num_cols).index_add(0, self.col, weight.abs())

    def asymmetric(self, weight: Tensor) -> tuple[int, int] | None:
        r"""Returns an entry that differs from its transposed entry by more than rounding, or :obj:`None` for a symmetric
        matrix.
        """
        pattern, size = self.pattern, self.pattern.num_rows
        if torch.equal(pattern.rowptr, pattern.rowptr_t) and torch.equal(pattern.col, pattern.col_t):
            found = self._first_difference(weight, weight[pattern.perm_t])
        else:
            found = self._difference(self.col * size + self.row, weight, self.row * size + self.col, weight)
        if found is None:
            return None
        row, col = int(self.row[found]), int(self.col[found])
        return (row, col) if self.order is None else (int(self.order[row]), int(self.order[col]))

    @classmethod
    def _difference(cls, key: Tensor, weight: Tensor, mirrored: Tensor, mirrored_weight: Tensor) -> int | None:
        r"""Returns an entry whose transposed entry, found by its sorted key, is missing or differs."""
        place = torch.searchsorted(mirrored, key).clamp(max=max(mirrored.numel() - 1, 0))
        return cls._first_difference(weight, mirrored_weight[place].masked_fill(mirrored[place] != key, 0.0))

    @staticmethod
    def _first_difference(weight: Tensor, other: Tensor) -> int | None:
        rounding = max(1e-6, 100 * torch.finfo(weight.dtype).eps)  # learned weights of both directions differ by some
        differs = (weight - other).abs() > rounding * weight.abs().maximum(other.abs())
        return int(differs.nonzero()[0]) if bool(differs.any()) else None

    @torch.compiler.disable  # torch.compile would read SciPy as Python
    def components(self) -> tuple[Tensor, int]:
        r"""Returns the connected component of each node, and their number."""
        count, component = scipy.sparse.csgraph.connected_components(self.pattern.to_scipy(), directed=True, connection='weak')
        return torch.from_numpy(component).to(self.pattern.col.device).long(), int(count)

    def product(self, weight: Tensor, vector: Tensor) -> Tensor:
        r"""Returns the product with a vector, :obj:`[N, 1]`, of a matrix with the same pattern."""
        return multiply(self.pattern.rowptr, self.pattern.col, weight, vector)

    def sums(self, x: Tensor, component: Tensor, count: int) -> Tensor:
        r"""Returns the sum over the nodes of each component, :obj:`[count]`."""
        return x.new_zeros(count).index_add(0, component, x)

    def largest(self, x: Tensor) -> Tensor:
        r"""Returns the maximum over all nodes, given that over some nodes."""
        return x

    def smallest(self, x: Tensor) -> Tensor:
        r"""Returns the minimum over all nodes, given that over some nodes."""
        return x


@torch.no_grad()
def spectral_bound(
    nodes: GlobalReductions, weight: Tensor, component: Tensor, count: int, iterations: int = 32
) -> tuple[Tensor, Tensor, Tensor]:
    r"""Returns an upper bound :math:`\rho` on the spectral radius of each component of a nonnegative matrix, the factor by
    which entries of its powers :math:`\mathbf{W}^k` may exceed :math:`\rho^k`, and how far at most the bound of a symmetric
    matrix is above its spectral radius, each :obj:`[count]`.

    :math:`\max_i (\mathbf{W} \mathbf{v})_i / v_i` is a bound for every :math:`\mathbf{v} > 0` (Collatz and Wielandt), and tight
    for the eigenvector that power iterations approach. Since :math:`\mathbf{W} \mathbf{v} \le \rho \mathbf{v}`, row sums of
    :math:`\mathbf{W}^k` are at most :math:`\rho^k \max_i v_i / \min_i v_i`. The Rayleigh quotient of :math:`\mathbf{v}` is at
    most the largest eigenvalue of a symmetric matrix.
    """
    vector = weight.new_ones(component.numel(), 1)

    def largest(x: Tensor) -> Tensor:
        return nodes.largest(x.new_zeros(count).scatter_reduce(0, component, x.squeeze(1), 'amax'))

    product = nodes.product(weight, vector)
    for step in range(iterations):
        if step % _SCALED == 0:
            bound = largest(product / vector)
            scale = bound.masked_fill(bound == 0, 1.0)[component].unsqueeze(1)
        # The old vector stays in: bipartite components converge, and every entry is at least 1 and at most 2^step.
        vector.addcdiv_(product, scale)
        product = nodes.product(weight, vector)
    bound, most = largest(product / vector), largest(vector)
    least = nodes.smallest(torch.full_like(bound, math.inf).scatter_reduce(0, component, vector.squeeze(1), 'amin'))
    squares, inner = (nodes.sums((vector * each).squeeze(1), component, count) for each in (vector, product))
    return bound, most / least, (bound - inner / squares).clamp(min=0)
