r"""How well graph random features estimate a mask: what theory guarantees, and what a given graph shows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
from scipy.sparse import csr_matrix
from torch import Tensor
from torch_geometric.data import Data

from pyg_topomask.graph import Graph
from pyg_topomask.masks import AdjacencyMask, GRFMask, PowerSeriesMask
from pyg_topomask.operators import MaskOperator
from pyg_topomask.walks import GeometricLength
from pyg_topomask.walks.transitions import Transitions

__all__ = [
    'EntryCounts',
    'MaskError',
    'compare_rows',
    'deviation_bound',
    'guaranteed_deviation',
    'load_constant',
    'mask_error',
    'measured_entries',
    'sparsity_bound',
    'suggest_num_walks',
]

# Numbers of one block of rows, and pairs of features that one block may make meet.
_ROW_BUDGET = 2**22
_PAIR_BUDGET = 2**25


@torch.no_grad()
def load_constant(mask: GRFMask, graph: Graph | Data, walkwise: bool = False) -> Tensor:
    r"""Returns the constant :math:`c` of the concentration bound, the largest sum of absolute loads that one walk can
    deposit, from `"Linear Transformer Topological Masking with Graph Random Features" <https://arxiv.org/abs/2410.03462>`_
    (Theorem 3.2, Eq. 11 and 21), for any probabilities :math:`p_{ij}` of hops and :math:`S_k` of making :math:`k` hops:

    .. math::
        c = \sum_{k=0}^{L} \frac{|f_k|}{S_k} \left( \max_{(i, j)} \frac{|W_{ij}|}{p_{ij}} \right)^k

    The paper states it for uniform hops, :math:`1 / p_{ij} = d_i`, and halting walks, :math:`S_k = (1 - p_{halt})^k`. It lets
    every hop be the worst one. :obj:`walkwise=True` takes the maximum over the walks that the graph has, the middle term of
    Eq. 21, which the proof allows as well and which is never larger. With :obj:`normalization="sym"` the factors along a walk
    of an undirected graph cancel but for :math:`\sqrt{d_{first} / d_{last}}`, so that it does not grow exponentially.

    If queries and keys have constants of their own (:obj:`asymmetric="pairs"`), :math:`c^4` stands for
    :math:`(c^{(1)} c^{(2)})^2`; keys that do not walk (:obj:`asymmetric=True`) have :math:`c^{(2)} = 1`. Where a power counts
    that no walk is long enough for (:math:`f_k \ne 0 = S_k`), nothing is guaranteed and :math:`c` is infinite.

    Args:
        mask (GRFMask): The mask.
        graph (Graph or torch_geometric.data.Data): The graphs.
        walkwise (bool): Take the maximum over walks, in :math:`O(H L E)`. (default: :obj:`False`)

    Returns:
        torch.Tensor: :obj:`[heads]`, in float64.

    Raises:
        ValueError: If the mask counts visits (:obj:`importance=False`), which estimates no function of :math:`\mathbf{W}`.

    Example:
        >>> data = Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=2)
        >>> load_constant(GRFMask(p_halt=0.5, max_walk_length=2, modulation=torch.ones(3)), data)
        tensor([7.], dtype=torch.float64)
    """
    _check_estimates(mask)
    graph = _as_graph(graph)
    settings = mask.walk_settings
    transitions = Transitions.of(graph, settings.normalization, settings.transition)
    factor, target = transitions.factor.double().abs(), transitions.edges[:, 0].long()
    source = graph.edge_index[0].long().sort().values
    survival = settings.survival.to(factor.device)

    def largest(f: Tensor) -> Tensor:
        weight = (f.double().abs() / survival).nan_to_num(nan=0.0, posinf=math.inf)
        if not walkwise or graph.num_nodes == 0:
            growth = factor.max() if factor.numel() > 0 else factor.new_zeros(())
            return _times(weight, growth ** torch.arange(weight.size(1), device=weight.device)).sum(1)
        # The largest sum from each node on, relative to the load there.
        rest = weight[:, -1:].expand(-1, graph.num_nodes)
        for own in reversed(weight[:, :-1].unbind(1)):
            best = torch.zeros_like(rest).scatter_reduce_(
                1, source.expand(mask.heads, -1), _times(factor, rest[:, target]), 'amax'
            )
            rest = own.unsqueeze(1) + best
        return rest.amax(1)

    query = largest(mask.f)
    key = torch.ones_like(query) if mask.asymmetric is True else largest(mask.key_f)
    return _times(query, key).sqrt()


def _times(a: Tensor, b: Tensor) -> Tensor:
    r"""The product in which nothing of infinite weight is nothing."""
    return (a * b).nan_to_num(nan=0.0, posinf=math.inf)


def deviation_bound(t: float, num_walks: int, c: Tensor | float) -> Tensor:
    r"""Bounds the probability that an entry of the mask deviates by more than :math:`t`, from `"Linear Transformer Topological
    Masking with Graph Random Features" <https://arxiv.org/abs/2410.03462>`_ (Theorem 3.2, Eq. 11):

    .. math::
        P(|\hat{M}_{ij} - M_{ij}| > t) \le \min \left( 1, \,
        2 \exp \left( - \frac{t^2 n^3}{2 (2n - 1)^2 c^4} \right) \right)

    It holds for independent walkers (:obj:`sampler="iid"`) and :math:`i \ne j`; on the diagonal too with two independent
    ensembles or keys that do not walk, while a single ensemble is biased there. Two walks have a larger bound than one; from
    two on it falls.

    Args:
        t (float): The deviation, above 0.
        num_walks (int): Walks per node :math:`n`.
        c (torch.Tensor or float): The constant, from :func:`load_constant`, of any shape.

    Returns:
        torch.Tensor: Of the shape of :obj:`c`, in float64.

    Raises:
        ValueError: If an argument is outside its range.

    Example:
        >>> deviation_bound(t=2.0, num_walks=16, c=1.0)
        tensor(0.0004, dtype=torch.float64)
    """
    _check_deviation(t)
    _check_num_walks(num_walks)
    return (2 * (-_exponent(t, num_walks, _as_constant(c))).exp()).clamp(max=1.0)


def _exponent(t: float, num_walks: int, c: Tensor) -> Tensor:
    return t**2 * (num_walks**3 / (2 * (2 * num_walks - 1) ** 2)) / c**4


def guaranteed_deviation(num_walks: int, delta: float, c: Tensor | float) -> Tensor:
    r"""Returns the deviation at which the bound of `"Linear Transformer Topological Masking with Graph Random Features"
    <https://arxiv.org/abs/2410.03462>`_ (Eq. 11, solved for :math:`t`) is :math:`\delta`: an entry stays within
    :math:`t = c^2 (2n - 1) \sqrt{2 \ln(2 / \delta) / n^3}` with probability :math:`1 - \delta`. See :func:`deviation_bound` for
    where it holds.

    Args:
        num_walks (int): Walks per node :math:`n`.
        delta (float): The probability of a larger deviation, in :math:`(0, 1)`.
        c (torch.Tensor or float): The constant, from :func:`load_constant`, of any shape.

    Returns:
        torch.Tensor: Of the shape of :obj:`c`, in float64.

    Raises:
        ValueError: If an argument is outside its range.

    Example:
        >>> guaranteed_deviation(num_walks=16, delta=0.05, c=1.0)
        tensor(1.3157, dtype=torch.float64)
    """
    _check_num_walks(num_walks)
    _check_delta(delta)
    return _as_constant(c) ** 2 * ((2 * num_walks - 1) * math.sqrt(2 * math.log(2 / delta) / num_walks**3))


def suggest_num_walks(t: float, delta: float, c: Tensor | float) -> int:
    r"""Returns the smallest number of walks for which :func:`deviation_bound` is at most :math:`\delta`, from `"Linear
    Transformer Topological Masking with Graph Random Features" <https://arxiv.org/abs/2410.03462>`_ (Eq. 11, solved for
    :math:`n`). The bound is far from sharp: fewer walks often do.

    Args:
        t (float): The deviation that may be exceeded with probability :obj:`delta`, above 0.
        delta (float): The probability, in :math:`(0, 1)`.
        c (torch.Tensor or float): The constant, from :func:`load_constant`; the largest decides.

    Raises:
        ValueError: If an argument is outside its range, or :obj:`c` is so large that no number of walks helps.

    Example:
        >>> suggest_num_walks(t=2.0, delta=0.05, c=1.0)
        7
    """
    _check_deviation(t)
    _check_delta(delta)
    constant = _as_constant(c)
    if constant.numel() == 0 or not bool((constant**4 / t**2).isfinite().all()):
        raise ValueError(f'c: got {constant.tolist()} for t={t}; accepted are finite numbers, whose fourth power is finite too')
    largest = constant.max()

    def enough(num_walks: int) -> bool:
        return bool(deviation_bound(t, num_walks, largest) <= delta)

    if enough(1):
        return 1
    low, high = 2, 4  # two walks never do where one does not
    while not enough(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def sparsity_bound(num_walks: int, p_halt: float, delta: float, max_walk_length: int | None = None) -> int:
    r"""Bounds the nonzero entries of a graph random feature, the start node among them, with probability :math:`1 - \delta`,
    from `"Linear Transformer Topological Masking with Graph Random Features" <https://arxiv.org/abs/2410.03462>`_
    (Lemma 3.3). All of :math:`n` walkers make at most :math:`h` hops with probability
    :math:`(1 - (1 - p_{halt})^{h + 1})^n`, and visit at most :math:`1 + n h` nodes then:

    .. math::
        1 + n (\lceil b \rceil - 1), \qquad b = \frac{\log(1 - (1 - \delta)^{1/n})}{\log(1 - p_{halt})}

    The lemma's length :math:`b` counts the nodes of a walk, its :math:`n b` the start node :math:`n` times. As printed it
    takes :math:`b` without rounding, and fails where :math:`b` exceeds an integer by less than :math:`1 / n`: for
    :math:`n = 1`, :math:`p_{halt} = 0.5`, :math:`\delta = 0.3` it says one entry, which happens in half of the cases.

    Lengths have to be independent (not those of antithetic walkers). Whatever they are, there are at most
    :math:`1 + n L` entries.

    Args:
        num_walks (int): Walks per node :math:`n`.
        p_halt (float): The probability that a walk halts before a hop, in :math:`[0, 1)`.
        delta (float): The probability of more entries, in :math:`(0, 1)`.
        max_walk_length (int, optional): The largest number of hops :math:`L`, needed if :obj:`p_halt` is 0.
            (default: :obj:`None`)

    Raises:
        ValueError: If an argument is outside its range, or walks have no end.

    Example:
        >>> sparsity_bound(num_walks=4, p_halt=0.5, delta=0.1)
        21
    """
    _check_num_walks(num_walks)
    _check_delta(delta)
    GeometricLength(p_halt)
    if max_walk_length is not None and max_walk_length < 0:
        raise ValueError(f'max_walk_length: got {max_walk_length}; accepted are numbers of hops from 0')
    if p_halt == 0:
        if max_walk_length is None:
            raise ValueError('max_walk_length: got None for p_halt=0, where walks have no end; accepted is a number of hops')
        return 1 + num_walks * max_walk_length
    length = math.log(-math.expm1(math.log1p(-delta) / num_walks)) / math.log1p(-p_halt)
    hops = max(math.ceil(length) - 1, 0)
    return 1 + num_walks * (hops if max_walk_length is None else min(hops, max_walk_length))


class EntryCounts(NamedTuple):
    r"""The entries of each row.

    Args:
        features (torch.Tensor): Of the features of the queries: the nodes that walks from a node visit, :obj:`[N]`.
        mask (torch.Tensor): Of the mask: the nodes whose features have a visited node in common, :obj:`[N]`.
    """

    features: Tensor
    mask: Tensor


@torch.no_grad()
def measured_entries(
    mask: GRFMask, graph: Graph | Data, rows: Tensor | None = None, generator: torch.Generator | None = None
) -> EntryCounts:
    r"""Counts the entries of the features and of the mask, row by row, without forming the mask: what :func:`sparsity_bound`
    bounds, and what the cost of masked attention is proportional to (`"Linear Transformer Topological Masking with Graph
    Random Features" <https://arxiv.org/abs/2410.03462>`_, Corollary 3.4). An entry counts whatever its value.

    Args:
        mask (GRFMask): The mask.
        graph (Graph or torch_geometric.data.Data): The graphs.
        rows (torch.Tensor, optional): The nodes whose rows to count, :obj:`[R]`. (default: all)
        generator (torch.Generator, optional): Draws walks anew. (default: :obj:`None`, the walks of the mask)

    Returns:
        EntryCounts: Two tensors :obj:`[R]`.

    Example:
        >>> data = Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=2)
        >>> measured_entries(GRFMask(p_halt=0.0, asymmetric=True), data)
        EntryCounts(features=tensor([2, 2]), mask=tensor([2, 2]))
    """
    graph = _as_graph(graph)
    state = mask.prepare(graph, generator)
    pattern, key_pattern = state.query.pattern, state.key.pattern
    features = pattern.rowptr.diff().long()
    features = features if rows is None else features[rows]
    if mask.asymmetric is True:
        return EntryCounts(features, features)
    # As booleans, so that no sum can overflow or cancel.
    query, key_t = (
        csr_matrix((np.ones(len(col), dtype=bool), col.cpu().numpy(), ptr.cpu().numpy()), shape=(graph.num_nodes,) * 2)
        for ptr, col in ((pattern.rowptr, pattern.col), (key_pattern.rowptr_t, key_pattern.col_t))
    )
    query = query if rows is None else query[rows.cpu().numpy()]
    meetings = query.astype(np.int64) @ np.diff(key_t.indptr).astype(np.int64)
    block = meetings.cumsum() // _PAIR_BUDGET
    bounds = [0, *(np.flatnonzero(np.diff(block)) + 1).tolist(), query.shape[0]]
    counts = [np.diff((query[first:last] @ key_t).indptr) for first, last in pairwise(bounds)]
    return EntryCounts(features, torch.from_numpy(np.concatenate(counts).astype(np.int64)).to(features.device))


@torch.no_grad()
def compare_rows(
    mask: GRFMask, graph: Graph | Data, rows: Tensor, generator: torch.Generator | None = None
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    r"""Yields rows of the mask block by block, exactly and as estimated, on graphs of any size: :math:`\mathbf{M}^{\top}
    \mathbf{e}_i` by products with sparse matrices. Exact is what the estimate is in the limit of many walks (`"Linear
    Transformer Topological Masking with Graph Random Features" <https://arxiv.org/abs/2410.03462>`_, Eq. 13, 25 and 27):

    .. math::
        \mathbf{M} = \Big( \sum_l f^{(1)}_l \mathbf{W}^l \Big) \Big( \sum_l f^{(2)}_l \mathbf{W}^l \Big)^{\top}

    without the second factor if the keys do not walk; :math:`\sum_k \alpha_k \mathbf{W}^k` where :math:`\mathbf{W}` is
    symmetric.

    Args:
        mask (GRFMask): The mask.
        graph (Graph or torch_geometric.data.Data): The graphs.
        rows (torch.Tensor): The nodes whose rows to compare, :obj:`[R]`.
        generator (torch.Generator, optional): Draws walks anew. (default: :obj:`None`, the walks of the mask)

    Yields:
        tuple: Some of the rows, :obj:`[r]`, the exact ones and the estimates, :obj:`[r, heads, N]` in float64.

    Raises:
        ValueError: If the mask counts visits (:obj:`importance=False`), which estimates no function of :math:`\mathbf{W}`.

    Example:
        >>> data = Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=2)
        >>> [(_, exact, _)] = compare_rows(GRFMask(max_walk_length=1), data, torch.tensor([0]))
        >>> exact
        tensor([[[1.2500, 1.0000]]], dtype=torch.float64)
    """
    _check_estimates(mask)
    graph = _as_graph(graph)
    exact, estimate = _exact_transposed(mask, graph), mask(graph, generator).T.matmul
    size = max(1, _ROW_BUDGET // max(1, mask.heads * graph.num_nodes))
    for own in rows.to(graph.device).split(size):
        if own.numel() == 0:
            continue
        unit = torch.zeros(graph.num_nodes, 1, own.numel(), dtype=torch.float64, device=graph.device)
        unit[own, 0, torch.arange(own.numel(), device=graph.device)] = 1.0
        unit = unit.expand(-1, mask.heads, -1)
        yield own, exact(unit).permute(2, 1, 0), estimate(unit).permute(2, 1, 0)


def _exact_transposed(mask: GRFMask, graph: Graph) -> Callable[[Tensor], Tensor]:
    normalization = mask.walk_settings.normalization
    # Prepared here and not by the series, which would warn of large powers; the errors show them.
    adjacency = AdjacencyMask(1, None, normalization).prepare(graph)

    def series(f: Tensor) -> MaskOperator:
        return PowerSeriesMask(mask.heads, f.size(1) - 1, f, normalization=normalization).bind(graph, adjacency)

    query = series(mask.f).T
    if mask.asymmetric is True:
        return query.matmul
    key = series(mask.key_f)
    return lambda x: key.matmul(query.matmul(x))


@dataclass(frozen=True)
class MaskError:
    r"""The error of an estimated mask on some of its rows, a number for each head, :obj:`[heads]`. Biases are the sum of all
    deviations relative to the sum of all absolute entries, errors relative in the Frobenius norm; 0 where estimate and mask
    have no entries, infinite where the mask alone has none.

    Args:
        relative (torch.Tensor): :math:`\lVert \hat{\mathbf{M}} - \mathbf{M} \rVert_F / \lVert \mathbf{M} \rVert_F`.
        max_abs (torch.Tensor): :math:`\max |\hat{M}_{ij} - M_{ij}|`.
        diagonal_bias (torch.Tensor): The bias of the diagonal.
        diagonal_error (torch.Tensor): The error of the diagonal.
        off_diagonal_bias (torch.Tensor): The bias of all other entries.
        off_diagonal_error (torch.Tensor): The error of all other entries.
        largest (torch.Tensor): :math:`\max |M_{ij}|`.
        num_rows (int): The number of rows.
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
    r"""Measures how far the estimated mask is from the exact one on rows drawn at random, on graphs of any size, as `"Linear
    Transformer Topological Masking with Graph Random Features" <https://arxiv.org/abs/2410.03462>`_ (App. E) does for all
    rows of small ones. See :func:`compare_rows` for what is exact.

    Args:
        mask (GRFMask): The mask.
        graph (Graph or torch_geometric.data.Data): The graphs.
        num_rows (int): The number of rows, or all if there are fewer. (default: :obj:`64`)
        seed (int): Chooses the rows. (default: :obj:`0`)
        generator (torch.Generator, optional): Draws walks anew. (default: :obj:`None`, the walks of the mask)

    Raises:
        ValueError: If :obj:`num_rows` is below 1, or the mask counts visits (:obj:`importance=False`).

    Example:
        >>> data = Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=2)
        >>> mask_error(GRFMask(p_halt=0.0, independent_ensembles=True), data).relative < 1e-6
        tensor([True])
    """
    if num_rows < 1:
        raise ValueError(f'num_rows: got {num_rows}; accepted are numbers of rows from 1')
    graph = _as_graph(graph)
    rows = torch.randperm(graph.num_nodes, generator=torch.Generator().manual_seed(seed))[:num_rows]
    # Of the diagonal, and of the rest: deviations, their squares, absolute entries, their squares.
    sums = torch.zeros(2, 4, mask.heads, dtype=torch.float64, device=graph.device)
    largest = sums.new_zeros(2, mask.heads)
    for own, exact, estimate in compare_rows(mask, graph, rows, generator):
        parts = torch.stack([estimate - exact, exact], dim=0)
        largest = torch.maximum(largest, parts.abs().amax((1, 3)))
        place = own.view(1, -1, 1, 1).expand(2, -1, mask.heads, 1)
        diagonal = parts.gather(3, place)
        for number, part in enumerate((diagonal, parts.scatter(3, place, 0.0))):
            deviation, entry = part
            sums[number] += torch.stack([term.sum((0, 2)) for term in (deviation, deviation**2, entry.abs(), entry**2)])
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


def _as_graph(graph: Graph | Data) -> Graph:
    return graph if isinstance(graph, Graph) else Graph.from_data(graph)


def _as_constant(c: Tensor | float) -> Tensor:
    constant = torch.as_tensor(c, dtype=torch.float64)
    if not bool((constant >= 0).all()):
        raise ValueError(f'c: got {constant.tolist()}; accepted are numbers from 0')
    return constant


def _check_estimates(mask: GRFMask) -> None:
    if not mask.walk_settings.importance:
        raise ValueError(
            'mask: got importance=False, which counts visits and estimates no function of the adjacency matrix; accepted are '
            'masks with importance=True'
        )


def _check_deviation(t: float) -> None:
    if not 0 < t < math.inf:
        raise ValueError(f't: got {t}; accepted are finite numbers above 0')


def _check_num_walks(num_walks: int) -> None:
    if num_walks < 1 or int(num_walks) != num_walks:
        raise ValueError(f'num_walks: got {num_walks}; accepted are numbers of walks from 1')


def _check_delta(delta: float) -> None:
    if not 0 < delta < 1:
        raise ValueError(f'delta: got {delta}; accepted are probabilities above 0 and below 1')
