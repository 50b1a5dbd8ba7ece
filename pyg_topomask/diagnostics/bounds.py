r"""What theory guarantees of graph random features."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch_geometric.data import Data

from pyg_topomask.checks import check_above_zero, check_numbers, check_whole, is_number
from pyg_topomask.diagnostics.grf_mask import check_grf_mask
from pyg_topomask.errors import ArgumentError
from pyg_topomask.graph import Graph
from pyg_topomask.masks import GRFMask
from pyg_topomask.walks import GeometricLength
from pyg_topomask.walks.transitions import Transitions

__all__ = ['deviation_bound', 'guaranteed_deviation', 'load_constant', 'sparsity_bound', 'suggest_num_walks']


@torch.no_grad()
def load_constant(mask: GRFMask, graph: Graph | Data, walkwise: bool = False) -> Tensor:
    r"""Returns the constant :math:`c` of the concentration bound, the largest sum of absolute loads that one walk can
    deposit, from `"Linear Transformer Topological Masking with Graph Random Features" <https://arxiv.org/abs/2410.03462>`_
    (Theorem 3.2, Eq. 11 and 21), for any probabilities :math:`p_{ij}` of hops and :math:`S_k` of making :math:`k` hops:

    .. math::
        c = \sum_{k=0}^{L} \frac{|f_k|}{S_k} \left( \max_{(i, j)} \frac{|W_{ij}|}{p_{ij}} \right)^k

    The paper states it for uniform hops, :math:`1 / p_{ij} = d_i`, and halting walks, :math:`S_k = (1 - p_{halt})^k`. It lets
    every hop be the worst one. :obj:`walkwise=True` takes the maximum over the walks that the graph has, the middle term of
    Eq. 21, which the proof allows as well and which is never larger. With :obj:`normalization="sym"` only the factor
    :math:`\sqrt{d_{first} / d_{last}}` remains along a walk of an undirected graph, and it does not grow exponentially.

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
        ValueError: If the mask is no :class:`~pyg_topomask.masks.GRFMask`, or counts visits (:obj:`importance=False`), which
            estimates no function of :math:`\mathbf{W}`.

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
        # The largest sum from each node on, relative to the load there.
        rest = weight[:, -1:].expand(-1, graph.num_nodes)
        for hop_weight in reversed(weight[:, :-1].unbind(1)):
            best = torch.zeros_like(rest).scatter_reduce_(1, row.expand(mask.heads, -1), _times(factor, rest[:, col]), 'amax')
            rest = hop_weight.unsqueeze(1) + best
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
    check_above_zero(t=t)
    check_whole(1, num_walks=num_walks)
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
    check_whole(1, num_walks=num_walks)
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
    check_whole(1, num_walks=num_walks)
    _check_delta(delta)
    GeometricLength(p_halt)
    if max_walk_length is not None:
        check_whole(0, max_walk_length=max_walk_length)
    if p_halt == 0:
        if max_walk_length is None:
            raise ArgumentError('max_walk_length', 'None for p_halt=0, where walks have no end', 'a number of hops', verb='is')
        return 1 + num_walks * max_walk_length
    length = math.log(-math.expm1(math.log1p(-delta) / num_walks)) / math.log1p(-p_halt)
    hops = max(math.ceil(length) - 1, 0)
    return 1 + num_walks * (hops if max_walk_length is None else min(hops, max_walk_length))


def _as_constant(c: Tensor | float) -> Tensor:
    check_numbers(c=c)
    constant = torch.as_tensor(c, dtype=torch.float64)
    if not bool((constant >= 0).all()):
        raise ArgumentError('c', constant.tolist(), 'numbers from 0')
    return constant


def _check_delta(delta: object) -> None:
    if not (is_number(delta) and 0 < delta < 1):
        raise ArgumentError('delta', repr(delta), 'probabilities above 0 and below 1')
