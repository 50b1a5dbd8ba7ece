r"""The entries of a polynomial of a sparse matrix, listed once per graph where they are few."""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor

from pyg_topomask.capabilities import Entries, SparseEntries
from pyg_topomask.graph import Graph
from pyg_topomask.sparse_pattern import SparsePattern
from pyg_topomask.walks.features import WalkFeatures

# Rows whose entries are counted to estimate those of all.
_SAMPLED = 64
# Entries that are listed for each multiplication of a product with the mask: as many as the edges route is faster for, with 16
# features and channels.
_WORTH = 8
# Entries of all terms together that are listed at most.
_MOST = 2**27


def polynomial_entries(
    graph: Graph, settings: Hashable, pattern: SparsePattern, value: Tensor, coefficients: Tensor, method: str, cost: int
) -> SparseEntries | None:
    r"""Returns the entries of a polynomial :math:`\sum_k c_k \mathbf{B}^k`, or :math:`\sum_k c_k T_k(\mathbf{B})` with
    Chebyshev polynomials :math:`T_k`. The entries of each term are listed once per graph, if an estimate says that they are
    few. The coefficients of each head then combine them.

    Args:
        graph (Graph): The graphs, which keep the list.
        settings (Hashable): What :math:`\mathbf{B}` depends on, beside the graph.
        pattern (SparsePattern): The positions of the entries of :math:`\mathbf{B}`.
        value (torch.Tensor): The entries, :obj:`[nnz]`.
        coefficients (torch.Tensor): :math:`c`, :obj:`[H, K + 1]`.
        method (str): :obj:`"powers"` or :obj:`"chebyshev"`.
        cost (int): Multiplications of a product with the polynomial.

    Returns:
        SparseEntries, optional: :obj:`None` if the entries of :math:`\mathbf{B}` are learned, or the terms were not listed
        before torch.compile traces the call.
    """
    degree = coefficients.size(1) - 1
    key = ('terms', settings, degree, method)
    if value.requires_grad or (torch.compiler.is_compiling() and not graph.holds(key)):
        return None
    features = partial(graph.prepared, key, partial(_listed, pattern, value.detach(), degree, method))
    count = graph.prepared(('count', *key), partial(_count, pattern, degree))
    if count <= _WORTH * cost and count * (degree + 1) <= _MOST:
        count = features().pattern.nnz

    def make() -> Entries:
        terms = features()
        return Entries(terms.pattern, terms.values(coefficients))

    return SparseEntries(make, count)


def _count(pattern: SparsePattern, degree: int) -> int:
    r"""Returns the number of entries of all terms: of a few rows, times the number of rows for each of them."""
    size = pattern.num_rows
    if size == 0:
        return 0
    step = _matrix(pattern, torch.ones(pattern.nnz)).astype(bool)
    rows = np.unique(np.linspace(0, size - 1, _SAMPLED).astype(np.int64))
    reached = term = csr_array((np.ones(len(rows), bool), rows, np.arange(len(rows) + 1)), shape=(len(rows), size))
    for _ in range(degree):
        term = term @ step
        reached = reached + term
    return round(int(reached.nnz) * size / len(rows))


@torch.compiler.disable  # torch.compile would read SciPy as Python
def _listed(pattern: SparsePattern, value: Tensor, degree: int, method: str) -> WalkFeatures:
    r"""Returns the entries of each term as loads: of walks from a row to a column, as many hops long as the term's degree."""
    step, device = _matrix(pattern, value.double()), value.device
    one = csr_array((np.ones(pattern.num_rows), np.arange(pattern.num_rows), np.arange(pattern.num_rows + 1)), step.shape)
    terms = [one, step][: degree + 1]
    for _ in range(2, degree + 1):
        terms.append(2 * (step @ terms[-1]) - terms[-2] if method == 'chebyshev' else step @ terms[-1])
    entries = [term.tocoo() for term in terms]
    row, col, load = (np.concatenate([getattr(term, name) for term in entries]) for name in ('row', 'col', 'data'))
    length = np.repeat(np.arange(degree + 1), [term.nnz for term in entries])
    start, visited, hops, loads = (torch.from_numpy(array).to(device) for array in (row, col, length, load))
    return WalkFeatures.from_visits(start, visited, hops, loads, pattern.num_rows, degree)


def _matrix(pattern: SparsePattern, value: Tensor) -> csr_array:
    rowptr, col, data = (tensor.cpu().numpy() for tensor in (pattern.rowptr, pattern.col, value))
    return csr_array((data, col, rowptr), shape=(pattern.num_rows, pattern.num_cols))
