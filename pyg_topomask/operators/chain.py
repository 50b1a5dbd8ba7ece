r"""Matrix products of masks."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pyg_topomask.operators.base import MaskOperator, check_graphs, common_heads
from pyg_topomask.operators.description import describe


@dataclass(eq=False, repr=False)
class Chain(MaskOperator):
    r"""The matrix product of masks, :math:`\mathbf{M}_1 \mathbf{M}_2 \cdots`."""

    links: tuple[MaskOperator, ...]

    def __post_init__(self) -> None:
        self.segments, self.heads = check_graphs(self.links), common_heads(self.links)
        self.cost = sum(link.cost for link in self.links)

    def apply(self, x: Tensor) -> Tensor:
        for link in reversed(self.links):
            x = link.apply(x)
        return x

    def magnitude(self, x: Tensor) -> Tensor:
        for link in reversed(self.links):
            x = link.magnitude(x)
        return x

    @property
    def T(self) -> MaskOperator:
        return Chain(tuple(link.T for link in reversed(self.links)))

    def diagonal(self) -> Tensor | None:
        root = self.root()
        squared = None if root is None else root.entries
        if squared is None:
            return None
        entries = squared()
        diagonal = entries.value.new_zeros(entries.pattern.num_rows, entries.value.size(0))
        return diagonal.index_add(0, entries.pattern.row, entries.value.square().t())

    def root(self) -> MaskOperator | None:
        first, *rest = self.links
        if len(rest) != 1:
            return None
        (tensors, text), (others, of_other) = describe(first.T), describe(rest[0])
        if text != of_other:
            return None
        same = all(one is other or torch.equal(one, other) for one, other in zip(tensors, others, strict=True))
        return first if same else None
