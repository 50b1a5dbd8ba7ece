r"""The normalizations of adjacency matrices."""

from __future__ import annotations

from torch import Tensor

from pyg_topomask.utils.checks import check_choice

#: The normalizations of :meth:`Graph.normalized_weight <pyg_topomask.graphs.Graph.normalized_weight>`.
NORMALIZATIONS = ('sym', 'rw', None)


def check_normalization(normalization: str | None) -> None:
    r"""Raises a :class:`ValueError` unless a graph supports the normalization."""
    check_choice(NORMALIZATIONS, normalization=normalization)


def inverse_degree(degree: Tensor, normalization: str) -> Tensor:
    r"""Returns the inverse of each degree, or its square root for :obj:`"sym"`; 0 if the degree is 0."""
    positive = degree > 0
    safe = degree.masked_fill(~positive, 1.0)
    inverse = safe.reciprocal() if normalization == 'rw' else safe.rsqrt()
    return inverse * positive
