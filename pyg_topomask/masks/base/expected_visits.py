r"""The expected visits of random walks, by the powers of their transition probabilities."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy
import torch
from torch import Tensor

from pyg_topomask.masks.adjacency import AdjacencyState
from pyg_topomask.operators.polynomial import polynomial_terms

# The largest number of entries in a block of rows of the powers.
_BLOCK = 2**23


@dataclass(frozen=True)
class ExpectedVisits:
    r"""The limit of infinitely many walks: the transition probabilities, and :math:`\mathbf{p}_{l,i}^{\top} \mathbf{p}_{l',i}`
    for the rows of their powers, :obj:`[N, L + 1, L + 1]`, if norms need them.
    """

    hops: AdjacencyState
    gram: Tensor | None
    #: The mask blocks of the graphs.
    cache: dict[Hashable, Any] = field(default_factory=dict)


def visits_by_hops(hops: AdjacencyState, survival: Tensor, x: Tensor) -> Tensor:
    r"""Returns :math:`\sum_{l + l' = s} S_l S_{l'} \mathbf{P}^l (\mathbf{P}^{\top})^{l'} \mathbf{x}` for all :math:`s`,
    :obj:`[2L + 1, N, c]`.
    """
    weight, pattern, count = hops.weight.to(x.dtype), hops.pattern, survival.numel()
    sums = x.new_zeros(2 * count - 1, *x.shape)
    for key_hops, collected in enumerate(polynomial_terms(weight, pattern, x, count, 'powers', transpose=True)):
        for query_hops, rows in enumerate(polynomial_terms(weight, pattern, collected, count, 'powers')):
            sums[query_hops + key_hops].add_(rows, alpha=float(survival[query_hops] * survival[key_hops]))
    return sums


@torch.compiler.disable  # torch.compile would read SciPy as Python
def gram_of_powers(hops: AdjacencyState, max_walk_length: int, num_rows: int) -> Tensor:
    r"""Returns :math:`\mathbf{p}_{l,i}^{\top} \mathbf{p}_{l',i}` of the first rows, :obj:`[num_rows, L + 1, L + 1]`, in blocks
    of rows.
    """
    size, device = hops.pattern.num_rows, hops.weight.device
    step, identity = hops.pattern.to_scipy(hops.weight.double()), scipy.sparse.eye_array(size, format='csr')
    gram = np.empty((num_rows, max_walk_length + 1, max_walk_length + 1))
    # A row of a power has at most as many entries as there are nodes, or walks.
    walks, most = np.ones(size), np.zeros(size)
    for _ in range(max_walk_length + 1):
        most, walks = most + np.minimum(walks, size), step.astype(bool) @ walks
    block = (most[:num_rows].cumsum() // _BLOCK).astype(np.int64)
    for rows in np.split(np.arange(num_rows), np.flatnonzero(np.diff(block)) + 1):
        powers = [identity[rows]]
        for length in range(max_walk_length + 1):
            if length > 0:
                powers.append(powers[-1] @ step)
            for other, power in enumerate(powers):
                gram[rows, length, other] = gram[rows, other, length] = (power * powers[-1]).sum(axis=1)
    return torch.from_numpy(gram).to(device)
