r"""Rows of masks of graph random features, exactly and as estimated, in time that few rows of a large graph take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_matrix, eye_array, issparse
from torch import Tensor

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks import GRFMask
from pyg_topomask.walks.features import WalkFeatures

# Rows with a larger share of entries are dense.
_DENSE = 0.2


def check_grf_mask(mask: GRFMask, estimates: bool = True) -> None:
    r"""Raises an error unless the mask is a :class:`~pyg_topomask.masks.GRFMask`. With :obj:`estimates`, it also rejects
    features that count visits, because they do not estimate a function of the adjacency matrix. Stitched masks are rejected,
    because the paper's bounds are those of one walk.
    """
    if not isinstance(mask, GRFMask):
        raise ArgumentError('mask', type(mask).__name__, 'a GRFMask')
    if mask.stitch > 1:
        raise ArgumentError('mask', f'stitch={mask.stitch}, whose walks are chains', 'masks with stitch=1')
    if estimates and not mask.walk_settings.importance:
        raise ArgumentError('mask', 'importance=False, which counts visits', 'masks with importance=True')


@torch.no_grad()
def exact_rows(mask: GRFMask, graph: Graph, nodes: Tensor) -> list[csr_matrix]:
    r"""Returns rows of what the mask estimates, :obj:`[n, N]` in float64 for each head, see
    :func:`~pyg_topomask.apps.diagnostics.compare_rows`.
    """
    settings = mask.walk_settings
    row, col = (end.cpu().numpy() for end in graph.row_and_col(settings.flow))
    weight = graph.normalized_weight(settings.normalization, settings.flow).double().cpu().numpy()
    w = csr_matrix((weight, (row, col)), shape=(graph.num_nodes,) * 2)
    powers: list[Any] = [eye_array(graph.num_nodes, format='csr')[nodes.cpu().numpy()]]
    for _ in range(mask.f.size(1) - 1):
        powers.append(_product(powers[-1], w))
    transposed = w.T.tocsr()
    rows = []
    for f, key_f in zip(mask.f.double().tolist(), mask.key_f.double().tolist(), strict=True):
        query = sum(number * power for number, power in zip(f, powers, strict=True))
        rows.append(csr_matrix(query if mask.asymmetric is True else _series(query, transposed, key_f)))
    return rows


def _series(rows: Any, w: csr_matrix, coefficients: Sequence[float]) -> Any:
    *rest, last = coefficients
    result = last * rows
    for number in reversed(rest):
        result = _product(result, w) + number * rows
    return result


def _product(rows: Any, matrix: csr_matrix) -> Any:
    product = rows @ matrix
    return product.toarray() if issparse(product) and product.nnz > _DENSE * np.prod(product.shape) else product


@torch.no_grad()
def estimated_rows(mask: GRFMask, graph: Graph, nodes: Tensor, generator: torch.Generator | None = None) -> list[csr_matrix]:
    r"""Returns rows of the mask, :obj:`[n, N]` in float64 for each head. A generator draws walks anew."""
    state, chosen = graph.state(mask, generator), nodes.cpu().numpy()

    def features(walks: WalkFeatures, f: Tensor) -> csr_matrix:
        return csr_matrix(walks.pattern.to_scipy(walks.values(f.unsqueeze(0))[0].double()))

    queries = [features(state.query, f)[chosen] for f in mask.f]
    if mask.asymmetric is True:
        return queries
    return [(features(state.key, f) @ query.T).T.tocsr() for f, query in zip(mask.key_f, queries, strict=True)]
