r"""The masks of trees as the kernels read them."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from pyg_topomask.machine.threads import Array, array_of


class TreeFactors(NamedTuple):
    r"""What the mask of each head is made of, in float64: for :math:`\exp(a \, \mathrm{dist})` the factors of edges on the way
    up and down, :obj:`[H, N]`; for other functions of the distance ones, :obj:`[1, N]`, and the function.

    Args:
        order (torch.Tensor): The nodes, see :func:`~pyg_topomask.machine.tree.preorder`.
        above (torch.Tensor): The places of their parents.
        decay (torch.Tensor): :math:`e^{a \ell}` of the edge above each node, in this order.
        gain (torch.Tensor): :math:`1 - e^{2 a \ell}`.
        f (torch.Tensor): The function, :obj:`[H, L + 1]`: numbers that differ between distances, and one that is added to all.
            :obj:`[H, 0]` for exponential functions.
    """

    order: Tensor
    above: Tensor
    decay: Tensor
    gain: Tensor
    f: Tensor

    @classmethod
    def of_exponent(cls, order: Tensor, above: Tensor, a: Tensor, length: Tensor) -> TreeFactors:
        exponent = torch.outer(a.detach().double(), length.detach().double().index_select(0, order))
        return cls(order, above, exponent.exp(), -(2 * exponent).expm1(), exponent.new_empty(a.numel(), 0))

    @classmethod
    def of_function(cls, order: Tensor, above: Tensor, f: Tensor) -> TreeFactors:
        ones = torch.ones(1, order.numel(), dtype=torch.float64).expand(f.size(0), -1)
        return cls(order, above, ones, ones, f.detach().double())

    def part(self, first: int, last: int, head: int) -> tuple[Array, ...]:
        r"""Returns what machine code reads for a head of some trees."""
        above = array_of(self.above)[first:last] - first
        return above, array_of(self.decay[head])[first:last], array_of(self.gain[head])[first:last], array_of(self.f[head])
