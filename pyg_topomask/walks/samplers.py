r"""Samplers of dependent walkers. The distribution of a single walker is the same for all samplers."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.utils import lexsort

from pyg_topomask.utils.random import APART, Uniform


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
