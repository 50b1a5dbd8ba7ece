r"""The mean of products with several forests of the same nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from pyg_topomask.operators.base import MaskOperator
from pyg_topomask.operators.slots import Slots


@dataclass(eq=False, repr=False)
class TreeMean(MaskOperator):
    r"""The mean of the masks of several forests of the same nodes, given the mask of all of them, one after the other."""

    inner: MaskOperator
    num_trees: int

    def apply(self, x: Tensor) -> Tensor:
        return self._mean(self.inner.apply, x)

    def magnitude(self, x: Tensor) -> Tensor:
        return self._mean(self.inner.magnitude, x)

    def _mean(self, multiply: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
        repeated = x.to(torch.promote_types(x.dtype, torch.float32)).repeat(self.num_trees, 1, 1)
        return multiply(repeated).reshape(self.num_trees, *x.shape).mean(0).to(x.dtype)

    def rows(self, slots: Slots, dtype: torch.dtype) -> Tensor:
        return self.inner.rows(slots.repeated(self.num_trees), dtype).unflatten(0, (self.num_trees, -1)).mean(0)

    @property
    def T(self) -> MaskOperator:
        return replace(self, inner=self.inner.T)

    def has_machine_code(self, learnable: Sequence[int] = ()) -> bool:
        return self.inner.has_machine_code(learnable)

    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        total = self.inner.attend(*(x.repeat(self.num_trees, 1, 1) for x in (q, k, v)))
        return total.view(self.num_trees, *v.shape).mean(0)

    def attend_backward(self, learnable: Sequence[int], q: Tensor, k: Tensor, v: Tensor, grad: Tensor) -> list[Tensor]:
        repeated = (x.repeat(self.num_trees, 1, 1) for x in (q, k, v, grad / self.num_trees))
        grads = self.inner.attend_backward(learnable, *repeated)
        return [*(x.view(self.num_trees, *q.shape[:2], -1).sum(0) for x in grads[:3]), *grads[3:]]
