r"""The blocks of masks on batches of small graphs, as combinations of blocks that no parameter changes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from pyg_topomask.graphs.segments import Segments
from pyg_topomask.utils.functorch import outside_transforms

__all__ = ['PreparedBlocks']


@dataclass(frozen=True)
class PreparedBlocks:
    r"""The blocks of a mask in the graphs of a batch, as combinations of blocks that no parameter changes:
    :math:`\mathbf{M}_h = \mathbf{L}_h \sum_k c_{hk} \mathbf{B}_k \mathbf{R}_h` with diagonal matrices :math:`\mathbf{L}_h` and
    :math:`\mathbf{R}_h`. The :math:`\mathbf{L}_h` are positive and not stored, because they cancel in normalized attention.

    A mask may also be a function of labels of the pairs, such as distances. The entries of :math:`\mathbf{B}_k` are then 1 at
    the pairs with label :math:`k`, and 0 elsewhere, and only the labels are stored.

    Args:
        coefficients (torch.Tensor): :math:`c`, :obj:`[H, K]`.
        make (callable): Returns the entries of :math:`\mathbf{B}` at all pairs of nodes of the same graph, by row,
            :obj:`[K, num_pairs]`, for the division of the nodes into graphs and a data type, or the labels in int16,
            :obj:`[labels, num_pairs]`.
        cache (dict, optional): Stores :math:`\mathbf{B}` for all heads, layers and steps. :obj:`None` if :math:`\mathbf{B}` is
            learned. It is then made at every call, and gradients flow to it.
        cost (int): Multiplications that :obj:`make` takes for each node of the largest graph.
        column_scale (torch.Tensor, optional): The diagonals of :math:`\mathbf{R}`, :obj:`[N, H]`. (default: :obj:`None`, ones)
        magnitude (callable, optional): Returns a second bound, beside :math:`|\mathbf{M}| \mathbf{x}`, that detects rows
            without weight, for :math:`\mathbf{x} \ge 0`, :obj:`[N, H, m]`. (default: :obj:`None`, nothing)
        labels (int): The number of labels of each pair, whose coefficients are added up, or 0 for the entries of
            :math:`\mathbf{B}`. (default: :obj:`0`)
    """

    coefficients: Tensor
    make: Callable[[Segments, torch.dtype], Tensor]
    cache: dict[Hashable, Any] | None
    cost: int
    column_scale: Tensor | None = None
    magnitude: Callable[[Tensor], Tensor] | None = None
    labels: int = 0

    @property
    def count(self) -> int:
        r"""The numbers that are stored for each pair of nodes."""
        return self.labels or self.coefficients.size(1)

    def terms(self, segments: Segments, dtype: torch.dtype) -> Tensor:
        r"""Returns the entries of :math:`\mathbf{B}` or the labels of all pairs of nodes of the same graph, by row,
        :obj:`[count, num_pairs]`.
        """
        if self.cache is None:
            return self.make(segments, dtype)
        return self._stored(self.cache, segments, torch.int16 if self.labels else dtype)

    @outside_transforms
    def _stored(self, cache: dict[Hashable, Any], segments: Segments, dtype: torch.dtype) -> Tensor:
        if dtype not in cache:
            with torch.inference_mode(False), torch.no_grad():
                cache[dtype] = self.make(segments, dtype)
        terms: Tensor = cache[dtype]
        return terms

    def scaled(self, scale: Tensor) -> PreparedBlocks:
        factor, unscaled = scale.to(self.coefficients.dtype).view(-1, 1), self.magnitude

        def magnitude(x: Tensor) -> Tensor:
            assert unscaled is not None
            return factor.abs().to(x.dtype) * unscaled(x)

        changed = None if unscaled is None else magnitude
        return replace(self, coefficients=factor * self.coefficients, magnitude=changed)


def units_of(segments: Segments, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    r"""Returns the unit vector of the position of each node in its graph, :obj:`[N, n]` for :math:`n` nodes in the largest one,
    and the places of all pairs of nodes of the same graph in such a matrix, by row, :obj:`[num_pairs]`.
    """
    units = torch.zeros(segments.num_nodes, segments.largest, dtype=dtype, device=segments.device)
    units.scatter_(1, segments.position.unsqueeze(1), 1.0)
    slots, size = torch.arange(segments.largest, device=segments.device), segments.sizes[segments.index]
    return units, (slots < size.unsqueeze(1)).flatten().nonzero().squeeze(1)


def blocks_of(multiply: Callable[[Tensor], Iterable[Tensor]], basis: Tensor, segments: Segments) -> Tensor:
    r"""Returns the entries of combinations :math:`\sum_k u_{jk} \mathbf{T}_k` at all pairs of nodes of the same graph, by row,
    :obj:`[J, num_pairs]`. :obj:`multiply` yields the products :math:`\mathbf{T}_k \mathbf{x}`, of which one is valid until two
    more have been drawn. The basis is :math:`u`, in the data type of the result.
    """
    units, place = units_of(segments, basis.dtype)
    blocks = units.new_zeros(basis.size(0), segments.num_pairs)
    for factors, rows in zip(basis.t().tolist(), multiply(units), strict=True):
        term = rows.flatten()[place]
        for block, factor in zip(blocks, factors, strict=True):
            if factor != 0:
                block.add_(term, alpha=factor)
    return blocks
