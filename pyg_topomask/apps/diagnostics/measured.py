r"""Measured errors and costs of graph random features on a given graph."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.sparse import csr_matrix, eye_array, issparse
from torch import Tensor
from torch_geometric.data import Data

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks import GRFMask
from pyg_topomask.utils.checks import check_whole, checked_seed
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


# The largest size of a block of rows, and of the pairs of features that a block may combine.
_ROW_BUDGET = 2**22
_PAIR_BUDGET = 2**25


class EntryCounts(NamedTuple):
    r"""The number of nodes that the walks of each query visit, and the number of nodes whose walks meet these, both
    :obj:`[R]`.
    """

    features: Tensor
    mask: Tensor


@torch.no_grad()
def measured_entries(
    mask: GRFMask, graph: Graph | Data, rows: Tensor | None = None, generator: torch.Generator | None = None
) -> EntryCounts:
    r"""Counts the entries of the features and of the mask per row, without forming the mask. :func:`sparsity_bound` bounds the
    first number, and the cost of masked attention is proportional to it (`"Linear Transformer Topological Masking with Graph
    Random Features" <https://arxiv.org/abs/2410.03462>`_, Corollary 3.4). Entries with value 0 count too.

    Args:
        mask (GRFMask): The mask.
        graph (Graph or torch_geometric.data.Data): The graphs.
        rows (torch.Tensor, optional): The nodes whose rows to count, :obj:`[R]`. (default: all)
        generator (torch.Generator, optional): Samples new walks. (default: :obj:`None`, the walks of the mask)

    Returns:
        EntryCounts: Two tensors :obj:`[R]`.

    Example:
        >>> data = Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=2)
        >>> measured_entries(GRFMask(p_halt=0.0, asymmetric=True), data)
        EntryCounts(features=tensor([2, 2]), mask=tensor([2, 2]))
    """
    check_grf_mask(mask, estimates=False)
    graph = Graph.of(graph)
    state = mask.prepare(graph, generator)
    pattern, key_pattern = state.query.pattern, state.key.pattern
    features = pattern.rowptr.diff().long()
    features = features if rows is None else features[rows]
    if mask.asymmetric is True:
        return EntryCounts(features, features)
    # As booleans, so that no sum can overflow or cancel.
    query, key_t = pattern.to_scipy(), key_pattern.T.to_scipy()
    query = query if rows is None else query[rows.cpu().numpy()]
    meetings = query.astype(np.int64) @ np.diff(key_t.indptr).astype(np.int64)
    blocks = meetings.cumsum() // _PAIR_BUDGET
    bounds = [0, *(np.flatnonzero(np.diff(blocks)) + 1).tolist(), query.shape[0]]
    counts = [np.diff((query[first:last] @ key_t).indptr) for first, last in pairwise(bounds)]
    return EntryCounts(features, torch.from_numpy(np.concatenate(counts).astype(np.int64)).to(features.device))


@torch.no_grad()
def compare_rows(
    mask: GRFMask, graph: Graph | Data, rows: Tensor, generator: torch.Generator | None = None
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    r"""Yields blocks of exact and estimated rows of the mask, computed by sparse products :math:`\mathbf{M}^{\top}
    \mathbf{e}_i` on graphs of any size. The exact mask is the limit of the estimate for many walks (`"Linear
    Transformer Topological Masking with Graph Random Features" <https://arxiv.org/abs/2410.03462>`_, Eq. 13, 25 and 27):

    .. math::
        \mathbf{M} = \Big( \sum_l f^{(1)}_l \mathbf{W}^l \Big) \Big( \sum_l f^{(2)}_l \mathbf{W}^l \Big)^{\top}

    without the second factor if the keys have no walks. For symmetric :math:`\mathbf{W}`, it is :math:`\sum_k \alpha_k
    \mathbf{W}^k`.

    Args:
        mask (GRFMask): The mask.
        graph (Graph or torch_geometric.data.Data): The graphs.
        rows (torch.Tensor): The nodes whose rows to compare, :obj:`[R]`.
        generator (torch.Generator, optional): Samples new walks. (default: :obj:`None`, the walks of the mask)

    Yields:
        tuple: Some of the rows, :obj:`[r]`, the exact ones and the estimates, :obj:`[r, heads, N]` in float64.

    Example:
        >>> data = Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=2)
        >>> [(_, exact, _)] = compare_rows(GRFMask(max_walk_length=1), data, torch.tensor([0]))
        >>> exact
        tensor([[[1.2500, 1.0000]]], dtype=torch.float64)
    """
    check_grf_mask(mask)
    graph = Graph.of(graph)
    rows = rows.to(graph.device)
    size = max(1, _ROW_BUDGET // max(1, mask.heads * graph.num_nodes))
    estimates = estimated_rows(mask, graph, rows, generator)
    for first in range(0, rows.numel(), size):
        nodes = rows[first : first + size]
        both = exact_rows(mask, graph, nodes), [head[first : first + size] for head in estimates]
        exact, estimate = (
            torch.from_numpy(np.stack([head.toarray() for head in heads], axis=1)).to(graph.device) for heads in both
        )
        yield nodes, exact, estimate


@dataclass(frozen=True)
class MaskError:
    r"""The error of an estimated mask on some of its rows, one number for each head, :obj:`[heads]`: relative in the Frobenius
    norm, the largest absolute one, of the diagonal and of all other entries; and the largest absolute entry of the mask. A bias
    is the sum of all deviations divided by the sum of all absolute entries. An error is the relative error in the Frobenius
    norm. Both are 0 if the estimate and the mask are zero, and infinite if only the mask is zero.
    """

    relative: Tensor
    max_abs: Tensor
    diagonal_bias: Tensor
    diagonal_error: Tensor
    off_diagonal_bias: Tensor
    off_diagonal_error: Tensor
    largest: Tensor
    num_rows: int


@torch.no_grad()
def mask_error(
    mask: GRFMask,
    graph: Graph | Data,
    num_rows: int = 64,
    seed: int = 0,
    generator: torch.Generator | None = None,
) -> MaskError:
    r"""Measures the error of an estimated mask on randomly sampled rows, on graphs of any size, as `"Linear
    Transformer Topological Masking with Graph Random Features" <https://arxiv.org/abs/2410.03462>`_ (App. E) does for all
    rows of small graphs. The sums run over the sampled rows :math:`i` and over all :math:`j`, :math:`j = i` or
    :math:`j \ne i`:

    .. math::
        \text{error} = \sqrt{\frac{\sum_{ij} (\hat{M}_{ij} - M_{ij})^2}{\sum_{ij} M_{ij}^2}}, \qquad
        \text{bias} = \frac{\sum_{ij} (\hat{M}_{ij} - M_{ij})}{\sum_{ij} |M_{ij}|}

    See :func:`compare_rows` for the exact mask.

    Args:
        mask (GRFMask): The mask.
        graph (Graph or torch_geometric.data.Data): The graphs.
        num_rows (int): The number of rows, or all if there are fewer. (default: :obj:`64`)
        seed (int): The seed of the rows. (default: :obj:`0`)
        generator (torch.Generator, optional): Samples new walks. (default: :obj:`None`, the walks of the mask)

    Example:
        >>> data = Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=2)
        >>> mask_error(GRFMask(p_halt=0.0, independent_ensembles=True), data).relative < 1e-6
        tensor([True])
    """
    check_whole(1, num_rows=num_rows)
    seed = checked_seed(seed=seed)
    graph = Graph.of(graph)
    rows = torch.randperm(graph.num_nodes, generator=torch.Generator().manual_seed(seed))[:num_rows]
    # For the diagonal, and for the rest: deviations, their squares, absolute entries, their squares.
    sums = torch.zeros(2, 4, mask.heads, dtype=torch.float64, device=graph.device)
    largest = sums.new_zeros(2, mask.heads)
    for nodes, exact, estimate in compare_rows(mask, graph, rows, generator):
        entries = torch.stack([estimate - exact, exact], dim=0)
        largest = torch.maximum(largest, entries.abs().amax((1, 3)))
        place = nodes.view(1, -1, 1, 1).expand(2, -1, mask.heads, 1)
        for index, (deviation, entry) in enumerate((entries.gather(3, place), entries.scatter(3, place, 0.0))):
            sums[index] += torch.stack([term.sum((0, 2)) for term in (deviation, deviation**2, entry.abs(), entry**2)])
    (diagonal_sums, other_sums), total = sums, sums.sum(0)
    return MaskError(
        relative=_ratio(total[1], total[3]).sqrt(),
        max_abs=largest[0],
        diagonal_bias=_ratio(diagonal_sums[0], diagonal_sums[2]),
        diagonal_error=_ratio(diagonal_sums[1], diagonal_sums[3]).sqrt(),
        off_diagonal_bias=_ratio(other_sums[0], other_sums[2]),
        off_diagonal_error=_ratio(other_sums[1], other_sums[3]).sqrt(),
        largest=largest[1],
        num_rows=rows.numel(),
    )


def _ratio(a: Tensor, b: Tensor) -> Tensor:
    return torch.where(a == 0, torch.zeros_like(a), a / b)
