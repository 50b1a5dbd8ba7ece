r"""The products route: the mask multiplies all products of features and values at once, and autograd keeps them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pyg_topomask.capabilities import Product
from pyg_topomask.functorch import LoopedFunction, keep_inputs
from pyg_topomask.ops.normalize import quotient, with_ones
from pyg_topomask.ops.routes.features import outer


@torch.compiler.disable  # the compiler traces no sparse products but those within a custom operator
def attend_products(q: Tensor, k: Tensor, v: Tensor, mask: Product) -> Tensor:
    r"""Takes two products with the mask per step instead of three on the features route, and :math:`O(N H m d)` memory instead
    of :math:`O(N H (m + d))`.
    """
    product = mask(_Outer.apply(k, with_ones(v))).unflatten(2, (k.size(2), -1))
    numerator, denominator = _Read.apply(q, product).split([v.size(-1), 1], -1)
    with torch.no_grad():
        magnitude = (q.abs() * mask.magnitude(k.abs())).sum(-1, keepdim=True)
    return quotient(numerator, denominator, magnitude)


class _Outer(LoopedFunction):
    r""":func:`outer`, whose own gradients would make blocks as large as the products again."""

    @staticmethod
    def forward(k: Tensor, v: Tensor) -> Tensor:
        return outer(k, v)

    setup_context = staticmethod(keep_inputs)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor]:
        k, v = ctx.saved_tensors
        grad = grads[0].unflatten(2, (k.size(2), -1))
        return torch.einsum('nhsd,nhd->nhs', grad, v), torch.einsum('nhsd,nhs->nhd', grad, k)


class _Read(LoopedFunction):
    r"""Returns :math:`\sum_s q_s \mathbf{p}_s` for products :obj:`[N, H, m, d]`, without the slow outer products of einsum in
    the backward pass.
    """

    @staticmethod
    def forward(q: Tensor, product: Tensor) -> Tensor:
        return torch.einsum('nhs,nhsd->nhd', q, product)

    setup_context = staticmethod(keep_inputs)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor]:
        q, product = ctx.saved_tensors
        return torch.einsum('nhd,nhsd->nhs', grads[0], product), outer(q, grads[0]).view_as(product)
