r"""Theoretical bounds of graph random features."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch_geometric.data import Data

from pyg_topomask.apps.diagnostics.measured import check_grf_mask
from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks import GRFMask
from pyg_topomask.utils.checks import as_numbers, check_above_zero, check_whole, is_number
from pyg_topomask.walks import GeometricLength
from pyg_topomask.walks.steps import Transitions


@torch.no_grad()
def load_constant(mask: GRFMask, graph: Graph | Data, walkwise: bool = False) -> Tensor:
    r"""Returns the constant :math:`c` of the concentration bound, which is the largest sum of absolute loads of a walk, from
    `"Linear Transformer Topological Masking with Graph Random Features" <https://arxiv.org/abs/2410.03462>`_ (Theorem 3.2, Eq.
    11 and 21), for any transition probabilities :math:`p_{ij}` and probabilities :math:`S_k` of at least :math:`k` hops:

    .. math::
        c = \sum_{k=0}^{L} \frac{|f_k|}{S_k} \left( \max_{(i, j)} \frac{|W_{ij}|}{p_{ij}} \right)^k

    The paper states it for uniform hops, :math:`1 / p_{ij} = d_i`, and halting walks, :math:`S_k = (1 - p_{halt})^k`. This
    assumes that every hop is the worst one. :obj:`walkwise=True` takes the maximum over the walks of the graph, the middle term
    of Eq. 21. The proof also holds for this constant, which is never larger. With :obj:`normalization="sym"`, the factors along
    a walk of an undirected graph reduce to :math:`\sqrt{d_{first} / d_{last}}`, so they do not grow exponentially.

    If queries and keys have different constants (:obj:`asymmetric="pairs"`), :math:`c^4` is :math:`(c^{(1)} c^{(2)})^2`. Keys
    without walks (:obj:`asymmetric=True`) have :math:`c^{(2)} = 1`. If the mask has a power that no walk reaches
    (:math:`f_k \ne 0 = S_k`), there is no guarantee, and :math:`c` is infinite.

    Args:
        mask (GRFMask): The mask.
        graph (Graph or torch_geometric.data.Data): The graphs.
        walkwise (bool): Take the maximum over walks, in :math:`O(H L E)`. (default: :obj:`False`)

    Returns:
        torch.Tensor: :obj:`[heads]`, in float64.

    Example:
        >>> data = Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=2)
        >>> load_constant(GRFMask(p_halt=0.5, max_walk_length=2, modulation=torch.ones(3)), data)
        tensor([7.], dtype=torch.float64)
    """
    check_grf_mask(mask)
    graph = Graph.of(graph)
    settings = mask.walk_settings
    transitions = Transitions.of(graph, settings.normalization, settings.transition, settings.flow)
    factor, col = transitions.factor.double().abs(), transitions.edges[:, 0].long()
    row = graph.row_and_col(settings.flow)[0].sort().values
    survival = settings.survival.to(factor.device)

    def largest(f: Tensor) -> Tensor:
        weight = (f.double().abs() / survival).nan_to_num(nan=0.0, posinf=math.inf)
        if not walkwise or graph.num_nodes == 0:
            growth = factor.max() if factor.numel() > 0 else factor.new_zeros(())
            return _times(weight, growth ** torch.arange(weight.size(1), device=weight.device)).sum(1)
        # The largest sum from each node onward, relative to the load at the node.
        rest = weight[:, -1:].expand(-1, graph.num_nodes)
        for hop_weight in reversed(weight[:, :-1].unbind(1)):
            best = torch.zeros_like(rest).scatter_reduce_(1, row.expand(mask.heads, -1), _times(factor, rest[:, col]), 'amax')
            rest = hop_weight.unsqueeze(1) + best
        return rest.amax(1)

    query = largest(mask.f)
    key = torch.ones_like(query) if mask.asymmetric is True else largest(mask.key_f)
    return _times(query, key).sqrt()


def _times(a: Tensor, b: Tensor) -> Tensor:
    r"""The product with :math:`0 \cdot \infty = 0`."""
    return (a * b).nan_to_num(nan=0.0, posinf=math.inf)


def deviation_bound(t: float, num_walks: int, c: Tensor | float) -> Tensor:
    r"""Returns a bound on the probability that an entry of the mask deviates by more than :math:`t`, from `"Linear Transformer
    Topological Masking with Graph Random Features" <https://arxiv.org/abs/2410.03462>`_ (Theorem 3.2, Eq. 11):

    .. math::
        P(|\hat{M}_{ij} - M_{ij}| > t) \le \min \left( 1, \,
        2 \exp \left( - \frac{t^2 n^3}{2 (2n - 1)^2 c^4} \right) \right)

    It holds for independent walkers (:obj:`sampler="iid"`) and :math:`i \ne j`. With two independent ensembles, or with keys
    without walks, it also holds on the diagonal, where a single ensemble is biased. The bound is larger for two walks than for
    one, and decreases from two walks on.

    Args:
        t (float): The deviation, above 0.
        num_walks (int): Walks per node :math:`n`.
        c (torch.Tensor or float): The constant, from :func:`load_constant`, of any shape.

    Returns:
        torch.Tensor: Of the shape of :obj:`c`, in float64.

    Example:
        >>> deviation_bound(t=2.0, num_walks=16, c=1.0)
        tensor(0.0004, dtype=torch.float64)
    """
    check_above_zero(t=t)
    check_whole(1, num_walks=num_walks)
    exponent = t**2 * (num_walks**3 / (2 * (2 * num_walks - 1) ** 2)) / _as_constant(c) ** 4
    return (2 * (-exponent).exp()).clamp(max=1.0)


def guaranteed_deviation(num_walks: int, delta: float, c: Tensor | float) -> Tensor:
    r"""Returns the deviation at which :func:`deviation_bound` is :math:`\delta` (Eq. 11, solved for :math:`t`). An entry
    deviates by at most :math:`t = c^2 (2n - 1) \sqrt{2 \ln(2 / \delta) / n^3}` with probability :math:`1 - \delta`.

    Args:
        num_walks (int): Walks per node :math:`n`.
        delta (float): The probability of a larger deviation, in :math:`(0, 1)`.
        c (torch.Tensor or float): The constant.

    Returns:
        torch.Tensor: Of the shape of :obj:`c`, in float64.

    Example:
        >>> guaranteed_deviation(num_walks=16, delta=0.05, c=1.0)
        tensor(1.3157, dtype=torch.float64)
    """
    check_whole(1, num_walks=num_walks)
    _check_delta(delta)
    return _as_constant(c) ** 2 * ((2 * num_walks - 1) * math.sqrt(2 * math.log(2 / delta) / num_walks**3))


def suggest_num_walks(t: float, delta: float, c: Tensor | float) -> int:
    r"""Returns the smallest number of walks for which :func:`deviation_bound` is at most :math:`\delta` (Eq. 11, solved for
    :math:`n`). The bound is far from tight, and fewer walks are often enough.

    Args:
        t (float): The deviation that may be exceeded with probability :obj:`delta`, above 0.
        delta (float): The probability, in :math:`(0, 1)`.
        c (torch.Tensor or float): The constant, of which the largest is used. No number helps if its fourth power is infinite.

    Example:
        >>> suggest_num_walks(t=2.0, delta=0.05, c=1.0)
        7
    """
    check_above_zero(t=t)
    _check_delta(delta)
    constant = _as_constant(c)
    if constant.numel() == 0 or not bool((constant**4 / t**2).isfinite().all()):
        raise ArgumentError('c', f'{constant.tolist()} for t={t}', 'finite numbers, whose fourth power is finite too')
    largest = constant.max()

    def enough(num_walks: int) -> bool:
        return bool(deviation_bound(t, num_walks, largest) <= delta)

    if enough(1):
        return 1
    low, high = 2, 4  # if one walk is not enough, two walks are not enough either
    while not enough(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def sparsity_bound(num_walks: int, p_halt: float, delta: float, max_walk_length: int | None = None) -> int:
    r"""Returns a bound on the number of nonzero entries of a graph random feature, including the start node, that holds with
    probability :math:`1 - \delta`, from `"Linear Transformer Topological Masking with Graph Random Features"
    <https://arxiv.org/abs/2410.03462>`_ (Lemma 3.3). With probability :math:`(1 - (1 - p_{halt})^{h + 1})^n`, all :math:`n`
    walkers make at most :math:`h` hops, and visit at most :math:`1 + n h` nodes:

    .. math::
        1 + n (\lceil b \rceil - 1), \qquad b = \frac{\log(1 - (1 - \delta)^{1/n})}{\log(1 - p_{halt})}

    In the lemma, :math:`b` is the number of nodes of a walk, and :math:`n b` counts the start node :math:`n` times. As printed,
    the lemma does not round :math:`b`, and fails if :math:`b` exceeds an integer by less than :math:`1 / n`. For :math:`n = 1`,
    :math:`p_{halt} = 0.5` and :math:`\delta = 0.3`, it allows one entry, and half of all walks have more.

    The lengths must be independent, so antithetic walkers are excluded. For any lengths, there are at most
    :math:`1 + n L` entries.

    Args:
        num_walks (int): Walks per node :math:`n`.
        p_halt (float): The probability that a walk halts before a hop, in :math:`[0, 1)`.
        delta (float): The probability of more entries, in :math:`(0, 1)`.
        max_walk_length (int, optional): The largest number of hops :math:`L`, needed if :obj:`p_halt` is 0.
            (default: :obj:`None`)

    Example:
        >>> sparsity_bound(num_walks=4, p_halt=0.5, delta=0.1)
        21
    """
    check_whole(1, num_walks=num_walks)
    _check_delta(delta)
    GeometricLength(p_halt)
    if max_walk_length is not None:
        check_whole(0, max_walk_length=max_walk_length)
    if p_halt == 0:
        if max_walk_length is None:
            raise ArgumentError('max_walk_length', 'None for p_halt=0, where walks have no end', 'a number of hops')
        return 1 + num_walks * max_walk_length
    length = math.log(-math.expm1(math.log1p(-delta) / num_walks)) / math.log1p(-p_halt)
    hops = max(math.ceil(length) - 1, 0)
    return 1 + num_walks * (hops if max_walk_length is None else min(hops, max_walk_length))


def _as_constant(c: Tensor | float) -> Tensor:
    constant = as_numbers(torch.float64, c=c)
    if not bool((constant >= 0).all()):
        raise ArgumentError('c', constant.tolist(), 'numbers from 0')
    return constant


def _check_delta(delta: object) -> None:
    if not (is_number(delta) and 0 < delta < 1):
        raise ArgumentError('delta', repr(delta), 'probabilities above 0 and below 1')
