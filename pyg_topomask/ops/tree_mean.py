r"""The mean of products with several forests of the same nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from pyg_topomask.structures import Combination, MaskStructure


@dataclass(frozen=True)
class TreeMeanStructure(Combination):
    r"""The mean of the masks of several forests of the same nodes, given the structure and the tensors of all forests as one,
    with the nodes of the first forest first.
    """

    inner: MaskStructure
    num_trees: int

    def transpose(self, tensors: Sequence[Tensor]) -> tuple[MaskStructure, tuple[Tensor, ...]]:
        inner, transposed = self.inner.transpose(tensors)
        return TreeMeanStructure(inner, self.num_trees), transposed

    def _combine(self, method: str, tensors: Sequence[Tensor], x: Tensor) -> Tensor:
        repeated = x.to(torch.promote_types(x.dtype, torch.float32)).repeat(self.num_trees, 1, 1)
        products = getattr(self.inner, method)(tensors, repeated).reshape(self.num_trees, *x.shape)
        return products.mean(0).to(x.dtype)
