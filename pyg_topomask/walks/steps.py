r"""The steps of walkers: transitions, with their probabilities and factors of the load, and samplers of dependent walkers, of
which the distribution of a single walker is the same."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch_geometric.utils import lexsort

from pyg_topomask.graphs.edges import FLOWS
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.graphs.sparse_pattern import stable_argsort
from pyg_topomask.utils.random import APART, Uniform

TRANSITIONS = ('uniform', 'weight')


@dataclass(frozen=True)
class Transitions:
    r"""The transitions of walkers from node :math:`i` to node :math:`j` along the edges of row :math:`i` of :math:`\mathbf{W}`,
    with equal probabilities (:obj:`"uniform"`) or probabilities proportional to :math:`|W_{ij}|` (:obj:`"weight"`).

    Args:
        first (torch.Tensor): The first edge in the row of each node, and the number of edges, 0 if walks end, :obj:`[N, 2]`.
        edges (torch.Tensor): The column of each edge in row order, with the two numbers of :obj:`first` for this node and the
            bits of :attr:`factor`, so that a hop takes one lookup, :obj:`[E, 4]`.
        cumulative (torch.Tensor, optional): :math:`i + \sum_{j' \le j} p_{ij'}`, ascending over all edges, in float64,
            :obj:`[E]`, unless all probabilities of a row are equal.
    """

    first: Tensor
    edges: Tensor
    cumulative: Tensor | None

    @property
    def factor(self) -> Tensor:
        r"""The factor of the load for each edge, :math:`W_{ij} / p_{ij}`, :obj:`[E]`."""
        return as_factor(self.edges[:, 3])

    @classmethod
    def of(
        cls, graph: Graph, normalization: str | None, transition: str = 'uniform', flow: str = 'source_to_target'
    ) -> Transitions:
        r"""Returns the transitions of a graph, which stores them."""
        if graph.weight.requires_grad:  # the weights may have changed
            return cls._make(graph, normalization, transition, flow)
        key = (cls.__name__, normalization, transition, flow)
        return graph.cached(key, lambda: cls._make(graph, normalization, transition, flow))

    @classmethod
    @torch.no_grad()
    def _make(cls, graph: Graph, normalization: str | None, transition: str, flow: str) -> Transitions:
        order = order_of_edges(graph, flow)
        row, col = (end.index_select(0, order) for end in graph.row_and_col(flow))
        weight = graph.normalized_weight(normalization, flow).to(graph.weight_dtype).index_select(0, order)
        degree = torch.bincount(row, minlength=graph.num_nodes)
        start = degree.cumsum(0) - degree
        cumulative = None
        if transition == 'uniform':
            factor = weight * degree.to(weight.dtype).index_select(0, row)
        else:
            factor, degree, within = weighted_transitions(weight, row, start, degree)
            cumulative = row + within
        small = max(graph.num_nodes, graph.num_edges) < 2**31
        first = torch.stack([start, degree], dim=1).to(torch.int32 if small else torch.int64)
        narrow = small and factor.dtype == torch.float32
        bits = factor.view(torch.int32) if narrow else factor.double().view(torch.int64)
        columns = col.unsqueeze(1), first.index_select(0, col), bits.unsqueeze(1)
        edges = torch.cat([column.to(bits.dtype) for column in columns], dim=1)
        return cls(first, edges, cumulative)

    def choose(self, position: Tensor, uniform: Tensor) -> Tensor:
        r"""Returns the edge of each walker, given one uniform number each, if the probabilities differ."""
        assert self.cumulative is not None
        edge = torch.searchsorted(self.cumulative, position + uniform, right=True)
        start, degree = self.first.index_select(0, position).unbind(1)
        return edge.clamp(start, start + degree - 1)  # numbers close to 1 may round up to the next node


def weighted_transitions(weight: Tensor, row: Tensor, start: Tensor, degree: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    r"""Returns the factors of the load for probabilities proportional to the sizes of weights, the numbers of edges of rows,
    0 for those without weight, and the sums of the probabilities in a row up to each edge, in float64. Edges are sorted by row.
    """
    size = weight.double().abs()
    total = size.new_zeros(degree.numel()).index_add_(0, row, size)
    running = (size / total.masked_fill(total == 0, 1.0)[row]).cumsum(0)
    before = torch.cat([running.new_zeros(1), running])[start[row]]
    return weight.sign() * total[row].to(weight.dtype), degree.masked_fill(total == 0, 0), running - before


def order_of_edges(graph: Graph, flow: str) -> Tensor:
    r"""Sorts edges by row and column, and parallel edges by weight, so that equal graphs get equal walks in any order of
    edges.
    """
    if graph.unweighted is not None and not has_parallel_edges(graph):
        return graph.cached_of_edges(('order', flow), lambda: stable_argsort(_pairs(graph, flow)))
    pair = _pairs(graph, flow)
    return stable_argsort(pair) if graph.edge_weight is None else lexsort([graph.edge_weight, pair])


def _pairs(graph: Graph, flow: str) -> Tensor:
    row, col = graph.row_and_col(flow)
    return row * graph.num_nodes + col


def has_parallel_edges(graph: Graph) -> bool:
    r"""Returns whether several edges lead from one node to another."""
    return graph.cached_of_edges('parallel', lambda: _pairs(graph, FLOWS[0]).unique().numel() < graph.num_edges)


def as_factor(bits: Tensor) -> Tensor:
    r"""Reinterprets integers as floating point numbers of the same width."""
    return bits.view(torch.float32 if bits.dtype == torch.int32 else torch.float64)


class IIDSampler:
    r"""Independent walkers: the lengths and hops of all walks are independent."""

    #: Whether the walkers come in pairs, so that their number must be even.
    paired = False
    antithetic = False
    coupled = False
    repelling = False

    def lengths(self, uniform: Uniform, walkers: Tensor, survival: Tensor) -> Tensor:
        r"""Returns the number of hops of each walker, sampled from the survival probabilities by inversion."""
        # length >= t if and only if u < S_t, and S is decreasing: count the t >= 1 with S_t > u.
        numbers = uniform(0, walkers)
        return torch.searchsorted(-survival[1:].to(numbers.device, numbers.dtype), -numbers)

    def hops(self, uniform: Uniform, step: int, walkers: Tensor, start: Tensor, position: Tensor, degree: Tensor) -> Tensor:
        r"""Returns the index of the edge that each active walker takes at its hop :obj:`step`, counted from 1. Walkers are in
        ascending order. Their start nodes, current nodes and the degrees of these, above 0, are :obj:`[W]`.
        """
        return _choose(uniform(step, walkers), degree)


class AntitheticSampler(IIDSampler):
    r"""Antithetic termination: the random numbers of a pair of walkers differ by one half, so that they halt at different
    times, from `"Quasi-Monte Carlo Graph Random Features" <https://arxiv.org/abs/2305.12470>`_ (Sec. 3). The halting
    probability before hop :math:`t` is :math:`p_t`. The two walkers halt if

    .. math::
        u_t < p_t \quad \text{and} \quad (u_t + \tfrac{1}{2}) \bmod 1 < p_t, \qquad u_t \sim \mathcal{U}(0, 1)

    respectively, and so never together for :math:`p_t \le 1 / 2`. The number of walks must be even.
    """

    paired = antithetic = True

    def lengths(self, uniform: Uniform, walkers: Tensor, survival: Tensor) -> Tensor:
        second = walkers & 1
        halting = 1.0 - survival[1:] / survival[:-1].clamp(min=torch.finfo(survival.dtype).tiny)
        going, length = torch.ones_like(walkers, dtype=torch.bool), torch.zeros_like(walkers)
        for step, p_halt in enumerate(halting.tolist(), start=1):
            numbers = (uniform(-step, walkers - second) + 0.5 * second).frac()
            going = going & (numbers >= p_halt)
            length += going
        return length


class CoupledSampler(IIDSampler):
    r"""Coupled lengths: the random numbers of the lengths of a pair of walkers add up to 1, so that one walk is long if the
    other is short. Coupling is an idea of `"Variance-Reducing Couplings for Random Features"
    <https://arxiv.org/abs/2405.16541>`_ (abstract); this coupling is our derivation. Among all permutations that match the
    quantiles of both lengths, it has the least variance on all graphs and kernels of the benchmark :obj:`stitching`. The number
    of walks must be even.
    """

    paired = coupled = True

    def lengths(self, uniform: Uniform, walkers: Tensor, survival: Tensor) -> Tensor:
        second = walkers & 1

        def reversed_for_second(stream: int | Tensor, walkers: Tensor) -> Tensor:
            numbers = uniform(stream, walkers - second)
            return torch.where(second == 1, 1.0 - 2.0**-53 - numbers, numbers)  # of the same values, below 1

        return super().lengths(reversed_for_second, walkers, survival)


class RepellingSampler(IIDSampler):
    r"""Repelling walks, from `"Repelling Random Walks" <https://arxiv.org/abs/2310.04854>`_ (Sec. 3): walkers from the same
    start node that meet at a node leave it along different edges. If they outnumber the edges, they are split into blocks of
    at most the degree. The edges :math:`e_1, \dots, e_b` of the :math:`b \le d` walkers of a block
    at a node of degree :math:`d` are sampled without replacement, so each walker still takes every edge with probability
    :math:`1 / d`:

    .. math::
        P(e_1, \dots, e_b) = \frac{(d - b)!}{d!} \text{ if they all differ, else } 0
    """

    repelling = True

    def hops(self, uniform: Uniform, step: int, walkers: Tensor, start: Tensor, position: Tensor, degree: Tensor) -> Tensor:
        numbers = uniform(step, walkers)
        # Any symmetric choice without collisions has the right distribution. First choose independently. Then walkers that
        # collided with an earlier one choose again.
        hop = _choose(numbers, degree)
        block, size, rank = _blocks(start, position, degree)
        crowded = 2 * size >= degree
        if bool(crowded.any()):
            many = crowded.nonzero().squeeze(1)
            hop[many] = _permuted(uniform, step, walkers[many], block[many], rank[many], degree[many]).to(hop.dtype)
        pending, attempt = _met((~crowded).nonzero().squeeze(1), block, hop, rank, degree), 0
        while pending.numel() > 0:
            attempt += 1
            hop[pending] = _choose(uniform(step + attempt * APART, walkers[pending]), degree[pending])
            # Settled walkers come before those that choose again.
            order = rank.clone()
            order[pending] += degree[pending].to(order.dtype)
            pending = _met((~crowded).nonzero().squeeze(1), block, hop, order, 2 * degree)
        return hop


class RepellingAntitheticSampler(RepellingSampler, AntitheticSampler):
    r"""Repelling walks with antithetic termination."""


class RepellingCoupledSampler(RepellingSampler, CoupledSampler):
    r"""Repelling walks with coupled lengths."""


def _choose(numbers: Tensor, degree: Tensor) -> Tensor:
    # The number is at least one rounding unit below 1, so its product with the degree never rounds up to the degree.
    return (numbers * degree).to(degree.dtype)


def _blocks(start: Tensor, position: Tensor, degree: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    r"""Groups walkers by start and position, and splits the groups into blocks of at most the degree. Returns the first walker
    of each walker's block, the size of the block, and the index in the block.
    """
    key = start.long() * (int(position.max()) + 1 if position.numel() > 0 else 1) + position
    order = torch.argsort(key, stable=True)
    _, group, count = torch.unique_consecutive(key[order], return_inverse=True, return_counts=True)
    first = (count.cumsum(0) - count)[group]
    place = torch.arange(order.numel(), device=order.device)
    width = degree[order].long()
    within = place - first
    opening = first + torch.div(within, width, rounding_mode='floor') * width
    size = torch.minimum(width, first + count[group] - opening)
    result = torch.empty(3, order.numel(), dtype=torch.long, device=order.device)
    result[:, order] = torch.stack([order[opening], size, place - opening])
    block, size, rank = result
    return block, size, rank


def _permuted(uniform: Uniform, step: int, walkers: Tensor, block: Tensor, rank: Tensor, degree: Tensor) -> Tensor:
    r"""Assigns the edges of every block to its walkers in random order."""
    first = rank == 0
    opener, width = walkers[first], degree[first].long()
    owner = torch.arange(opener.numel(), device=rank.device).repeat_interleave(width)
    edge = torch.arange(owner.numel(), device=rank.device) - (width.cumsum(0) - width)[owner]
    numbers = uniform(step - (edge + 1) * APART, opener[owner])
    order = lexsort([numbers, owner])
    starts = torch.empty(int(block.max()) + 1 if block.numel() > 0 else 0, dtype=torch.long, device=rank.device)
    starts[block[first]] = width.cumsum(0) - width
    return edge[order][starts[block] + rank]


def _met(walkers: Tensor, block: Tensor, hop: Tensor, order: Tensor, bound: Tensor) -> Tensor:
    r"""Returns which of the given walkers chose the edge of a walker with a lower order in their block."""
    if walkers.numel() == 0:
        return walkers
    by_order = torch.argsort(order[walkers], stable=True)
    walkers = walkers[by_order]
    key = block[walkers] * (int(bound.max()) + 1) + hop[walkers]
    sorting = torch.argsort(key, stable=True)
    key = key[sorting]
    met = torch.zeros_like(key, dtype=torch.bool)
    met[1:] = key[1:] == key[:-1]
    return walkers[sorting[met]]


SAMPLERS: dict[str, type[IIDSampler]] = {
    'iid': IIDSampler,
    'antithetic': AntitheticSampler,
    'coupled': CoupledSampler,
    'repelling': RepellingSampler,
    'repelling_antithetic': RepellingAntitheticSampler,
    'repelling_coupled': RepellingCoupledSampler,
}
