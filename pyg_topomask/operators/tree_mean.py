r"""The mean of products with several forests of the same nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from pyg_topomask.operators.structures import Combination, MaskStructure


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

    def has_machine_code(self, learnable: Sequence[int] = ()) -> bool:
        return self.inner.has_machine_code(learnable)

    def attend(self, tensors: Sequence[Tensor], q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        total = self.inner.attend(tensors, *(x.repeat(self.num_trees, 1, 1) for x in (q, k, v)))
        return total.view(self.num_trees, *v.shape).mean(0)

    def attend_backward(
        self, tensors: Sequence[Tensor], learnable: Sequence[int], q: Tensor, k: Tensor, v: Tensor, grad: Tensor
    ) -> list[Tensor]:
        repeated = (x.repeat(self.num_trees, 1, 1) for x in (q, k, v, grad / self.num_trees))
        grads = self.inner.attend_backward(tensors, learnable, *repeated)
        return [*(x.view(self.num_trees, *q.shape[:2], -1).sum(0) for x in grads[:3]), *grads[3:]]

    def factors(self, tensors: Sequence[Tensor]) -> Sequence[Tensor] | None:
        return self.inner.factors(tensors)

    def _combine(self, method: str, tensors: Sequence[Tensor], x: Tensor) -> Tensor:
        repeated = x.to(torch.promote_types(x.dtype, torch.float32)).repeat(self.num_trees, 1, 1)
        products = getattr(self.inner, method)(tensors, repeated).reshape(self.num_trees, *x.shape)
        return products.mean(0).to(x.dtype)
