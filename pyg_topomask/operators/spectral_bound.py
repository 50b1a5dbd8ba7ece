r"""A bound on the spectral radius of nonnegative matrices, and the reductions over nodes that it takes."""

from __future__ import annotations

import math

import scipy
import torch
from torch import Tensor

from pyg_topomask.graphs.sparse_pattern import SparsePattern
from pyg_topomask.operators.sparse_matmul import multiply


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
    vector, bound = weight.new_ones(component.numel(), 1), weight.new_full((count,), math.inf)
    for _ in range(iterations):
        product = nodes.product(weight, vector)
        ratio = (product / vector).squeeze(1)
        bound = bound.minimum(nodes.largest(torch.zeros_like(bound).scatter_reduce(0, component, ratio, 'amax')))
        # Half of the old vector: bipartite components converge, and no entry vanishes.
        scale = bound.masked_fill(bound == 0, 1.0)[component].unsqueeze(1)
        vector = 0.5 * (vector + product / scale)
    squares = nodes.sums(vector.square().squeeze(1), component, count)
    rayleigh = nodes.sums((vector * nodes.product(weight, vector)).squeeze(1), component, count) / squares
    vector = vector.squeeze(1)
    least = nodes.smallest(torch.full_like(bound, math.inf).scatter_reduce(0, component, vector, 'amin'))
    most = nodes.largest(torch.zeros_like(bound).scatter_reduce(0, component, vector, 'amax'))
    return bound, most / least, (bound - rayleigh).clamp(min=0)
