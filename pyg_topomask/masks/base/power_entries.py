r"""The entries of power series of a sparse matrix, listed once per graph if they are few."""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial

import numpy as np
import scipy
import torch
from torch import Tensor

from pyg_topomask.graphs.graph import Graph
from pyg_topomask.graphs.sparse_pattern import SparsePattern, estimate_entries, sampled_rows
from pyg_topomask.machine.backend import kernel
from pyg_topomask.operators.forms import MAX_ENTRIES, Entries, SparseEntries
from pyg_topomask.walks.features import WalkFeatures

# The largest number of entries of all powers to list by default, about two gigabytes while they are listed.
_MOST = 2**25


def power_entries(
    graph: Graph, settings: Hashable, pattern: SparsePattern, value: Tensor, coefficients: Tensor
) -> SparseEntries | None:
    r"""Returns the entries of a power series :math:`\sum_k \alpha_k \mathbf{W}^k` with coefficients :obj:`[H, K + 1]`, for a
    :math:`\mathbf{W}` of some settings with entries :obj:`value` at a pattern. They are listed once per graph when they are
    called for, and the coefficients of each head combine them. Their number is an estimate, and unknown if the powers have many
    entries. Returns :obj:`None` if the entries of :math:`\mathbf{W}` are learned, or if torch.compile traces the call and the
    powers are not listed yet.
    """
    order = coefficients.size(1) - 1
    key = ('powers', settings, order)
    if value.requires_grad or (torch.compiler.is_compiling() and not graph.has_cached(key)):
        return None
    powers = partial(graph.cached, key, partial(_listed, pattern, value.detach(), order))
    count = graph.cached(('count', *key), partial(count_within, pattern, order))
    # If most pairs have an entry, combining the powers is faster than listing the entries.
    fits = count * (order + 1) <= _MOST and (torch.compiler.is_compiling() or 2 * count <= graph.segments.num_pairs)

    def make() -> Entries:
        listed = powers()
        return Entries(listed.pattern, listed.values(coefficients))

    # Without a count, only route='edges' uses the entries.
    return SparseEntries(make, count if fits or count > MAX_ENTRIES else None)


def count_within(pattern: SparsePattern, order: int) -> int:
    r"""Estimates the number of entries of the powers up to an order, which is the number of pairs of nodes within so many
    edges, from a sample of rows.
    """
    size = pattern.num_rows
    if size == 0:
        return 0
    rows = sampled_rows(size)
    if compiled := kernel('counts_within', pattern.col.device):
        return estimate_entries(compiled(pattern, rows, order), size)
    step = pattern.to_scipy()
    reached = power = scipy.sparse.eye_array(size, dtype=bool, format='csr')[rows]
    for _ in range(order):
        power = power @ step
        reached = reached + power
    return estimate_entries(np.diff(reached.indptr), size)


@torch.compiler.disable  # torch.compile would read SciPy as Python
def _listed(pattern: SparsePattern, value: Tensor, order: int) -> WalkFeatures:
    r"""Returns the entries of :math:`\mathbf{W}^k` as the loads of walks of :math:`k` hops from the row to the column. Random
    walks estimate these loads.
    """
    size = pattern.num_rows
    if compiled := kernel('power_loads', value.device):
        start, visited, length, loads = compiled(pattern, value.double(), order)
        return WalkFeatures(start, visited, length, loads, size, order)
    powers, step = [scipy.sparse.eye_array(size, format='csr')], pattern.to_scipy(value.double())
    for _ in range(order):
        powers.append(powers[-1] @ step)
    entries = [power.tocoo() for power in powers]
    row, col, load = (np.concatenate([getattr(power, name) for power in entries]) for name in ('row', 'col', 'data'))
    hops = np.repeat(np.arange(order + 1), [power.nnz for power in entries])
    start, visited, length, loads = (torch.from_numpy(array).to(value.device) for array in (row, col, hops, load))
    return WalkFeatures.from_visits(start, visited, length, loads, size, order)
