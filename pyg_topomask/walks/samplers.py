r"""How the walkers of one node depend on each other. Every single walker is distributed alike under all of them."""

from __future__ import annotations

import torch
from torch import Tensor

from pyg_topomask.walks.uniform import Uniform

# Streams of random numbers: 0 for lengths, t for the t-th hop, -t for going on after t - 1 hops, and further ones apart.
APART = 1 << 32


class IIDSampler:
    r"""Independent walkers: lengths and hops are drawn independently for every walk."""

    antithetic = False
    repelling = False

    def lengths(self, uniform: Uniform, walkers: Tensor, survival: Tensor) -> Tensor:
        r"""Returns the number of hops of each walker, distributed as the survival probabilities say, by inversion."""
        # length >= t exactly where u < S_t, and S descends: count the t >= 1 with S_t > u.
        numbers = uniform(0, walkers)
        return torch.searchsorted(-survival[1:].to(numbers.device, numbers.dtype), -numbers)

    def hops(self, uniform: Uniform, step: int, walkers: Tensor, start: Tensor, position: Tensor, degree: Tensor) -> Tensor:
        r"""Returns which of the edges of its node each walker takes.

        Args:
            uniform (callable): The source of random numbers.
            step (int): The number of the hop, from 1.
            walkers (torch.Tensor): The walkers that go on, ascending, :obj:`[W]`.
            start (torch.Tensor): The nodes that they started from, :obj:`[W]`.
            position (torch.Tensor): The nodes that they are at, :obj:`[W]`.
            degree (torch.Tensor): The numbers of edges of these, above 0, :obj:`[W]`.
        """
        return _choose(uniform(step, walkers), degree)


class AntitheticSampler(IIDSampler):
    r"""Antithetic termination: the walkers of a pair halt on numbers that differ by one half, so that they halt at different
    times, from `"Quasi-Monte Carlo Graph Random Features" <https://arxiv.org/abs/2305.12470>`_ (Sec. 3). Before hop
    :math:`t` that a walk makes with probability :math:`1 - p_t` after those before, the two halt where

    .. math::
        u_t < p_t \quad \text{and} \quad (u_t + \tfrac{1}{2}) \bmod 1 < p_t, \qquad u_t \sim \mathcal{U}(0, 1)

    and so never both for :math:`p_t \le 1 / 2`. It needs an even number of walks.
    """

    antithetic = True

    def lengths(self, uniform: Uniform, walkers: Tensor, survival: Tensor) -> Tensor:
        second = walkers & 1
        halting = 1.0 - survival[1:] / survival[:-1].clamp(min=torch.finfo(survival.dtype).tiny)
        going, length = torch.ones_like(walkers, dtype=torch.bool), torch.zeros_like(walkers)
        for step, p_halt in enumerate(halting.tolist(), start=1):
            numbers = (uniform(-step, walkers - second) + 0.5 * second).frac()
            going = going & (numbers >= p_halt)
            length += going
        return length


class RepellingSampler(IIDSampler):
    r"""Repelling walks: the walkers of one start node that are at the same node leave it by different edges, in blocks of its
    degree where they outnumber these, from `"Repelling Random Walks" <https://arxiv.org/abs/2310.04854>`_ (Sec. 3). The edges
    :math:`e_1, \dots, e_b` of the :math:`b \le d` walkers of a block at a node of degree :math:`d` are drawn without
    replacement, so that each walker still takes every edge with probability :math:`1 / d`:

    .. math::
        P(e_1, \dots, e_b) = \frac{(d - b)!}{d!} \text{ if they all differ, else } 0
    """

    repelling = True

    def hops(self, uniform: Uniform, step: int, walkers: Tensor, start: Tensor, position: Tensor, degree: Tensor) -> Tensor:
        numbers = uniform(step, walkers)
        # Any way of choosing that treats all edges alike chooses every way of leaving by different edges with the same
        # probability. First independently; then those that met an earlier one on its edge choose again.
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
            # Those that have settled come before those that chose again.
            order = rank.clone()
            order[pending] += degree[pending].to(order.dtype)
            pending = _met((~crowded).nonzero().squeeze(1), block, hop, order, 2 * degree)
        return hop


class RepellingAntitheticSampler(RepellingSampler, AntitheticSampler):
    r"""Repelling walks with antithetic termination."""


def _choose(numbers: Tensor, degree: Tensor) -> Tensor:
    # Below 1 by at least the unit of rounding, a number times the degree never rounds up to the degree.
    return (numbers * degree).to(degree.dtype)


def _blocks(start: Tensor, position: Tensor, degree: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    r"""Groups walkers by start and position, and cuts the groups into blocks of at most the degree. Returns the first walker
    of each one's block, the size of the block, and the place in it.
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
    r"""Sorts the edges of every block by random numbers, and gives the first to its first walker, and so on."""
    first = rank == 0
    opener, width = walkers[first], degree[first].long()
    owner = torch.arange(opener.numel(), device=rank.device).repeat_interleave(width)
    edge = torch.arange(owner.numel(), device=rank.device) - (width.cumsum(0) - width)[owner]
    numbers = uniform(step - (edge + 1) * APART, opener[owner])
    order = torch.argsort(numbers)
    order = order[torch.argsort(owner[order], stable=True)]
    starts = torch.empty(int(block.max()) + 1 if block.numel() > 0 else 0, dtype=torch.long, device=rank.device)
    starts[block[first]] = width.cumsum(0) - width
    return edge[order][starts[block] + rank]


def _met(walkers: Tensor, block: Tensor, hop: Tensor, order: Tensor, bound: Tensor) -> Tensor:
    r"""Returns which of the given walkers chose an edge that one of a lower order in their block chose as well."""
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
    'repelling': RepellingSampler,
    'repelling_antithetic': RepellingAntitheticSampler,
}

#: The samplers that the compiled walks know. Others walk in torch.
COMPILED = frozenset(SAMPLERS.values())
