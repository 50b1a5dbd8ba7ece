r"""Products with exponential functions of the distance in trees, and their gradients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from pyg_topomask.functorch import LoopedFunction, gradients, keep_inputs
from pyg_topomask.ops.forest import Forest
from pyg_topomask.structures import MaskStructure


@dataclass(frozen=True)
class TreeExpStructure(MaskStructure):
    r""":math:`M_{ij} = \exp(a \, \mathrm{dist}(i, j) + b)` within each tree. Tensors: :math:`a` and :math:`b`, :obj:`[H]`, the
    length of the edge from each node to its parent, :obj:`[N]`, and those of :func:`plan_exp`.
    """

    def apply(self, tensors: Sequence[Tensor], x: Tensor) -> Tensor:
        a, b, length, *plan = tensors
        dtype = torch.promote_types(x.dtype, torch.float32)
        product: Tensor = _TreeExp.apply(x.to(dtype), a.to(dtype).expand(x.size(1)), length.to(dtype), *plan)
        return (product * b.to(dtype).exp().unsqueeze(-1)).to(x.dtype)

    def magnitude(self, tensors: Sequence[Tensor], x: Tensor) -> Tensor:
        return self.apply(tensors, x)

    def transpose(self, tensors: Sequence[Tensor]) -> tuple[MaskStructure, tuple[Tensor, ...]]:
        return self, tuple(tensors)


def plan_exp(forest: Forest, device: torch.device) -> tuple[TreeExpStructure, tuple[Tensor, ...]]:
    r"""Returns the structure of products with :math:`\exp(a \, \mathrm{dist} + b)`, and its tensors after :math:`a`, :math:`b`
    and the lengths: the contraction, round by round.

    Args:
        forest (Forest): The forest.
        device (torch.device): The device of the tensors.
    """
    *index, bounds = map(torch.from_numpy, forest.schedule)
    # The bounds stay on the CPU, where the loop over rounds reads them.
    return TreeExpStructure(), (*(array.to(device) for array in index), bounds)


def _exp_product(x: Tensor, a: Tensor, length: Tensor, order: Tensor, *plan: Tensor) -> Tensor:
    product = _sweep(x.index_select(0, order), a, length.index_select(0, order), plan)[1]
    return torch.empty_like(product).index_copy_(0, order, product)


class _TreeExp(LoopedFunction):
    @staticmethod
    def forward(x: Tensor, a: Tensor, length: Tensor, order: Tensor, *plan: Tensor) -> Tensor:
        return _exp_product(x, a, length, order, *plan)

    setup_context = staticmethod(keep_inputs)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        x, a, length, order, *plan = ctx.saved_tensors
        if torch.is_grad_enabled():

            def plain(x: Tensor, a: Tensor, length: Tensor) -> Tensor:
                return _exp_product(x, a, length, order, *plan)

            return (*gradients(plain, grads, x, a, length), None) + (None,) * len(plan)
        length = length.index_select(0, order)
        grad_inside, grad_product = _sweep(grads[0].index_select(0, order), a, length, plan)
        grad_a = grad_length = None
        if any(ctx.needs_input_grad[1:3]):
            # An edge adds its length to the distances of the pairs that it separates: sums over the tree at its upper end,
            # less what they have of the subtree below it.
            inside, product = _sweep(x.index_select(0, order), a, length, plan)
            decay, (parent, *_) = _decay(length, a).squeeze(-1), plan
            crossing = (inside * grad_product.index_select(0, parent)).sum(-1)
            crossing += (grad_inside * product.index_select(0, parent)).sum(-1)
            crossing -= 2 * decay * (inside * grad_inside).sum(-1)
            crossing *= decay
            grad_a = length @ crossing
            grad_length = torch.empty_like(length).index_copy_(0, order, crossing @ a)
        grad_x = torch.empty_like(x).index_copy_(0, order, grad_product)
        return (grad_x, grad_a, grad_length, None) + (None,) * len(plan)


def _decay(length: Tensor, a: Tensor) -> Tensor:
    r"""Returns the factors of edges, :obj:`[N, H, 1]`."""
    return torch.outer(length, a).exp_().unsqueeze(-1)


def _sweep(x: Tensor, a: Tensor, length: Tensor, plan: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    r"""Returns :math:`\sum_j \exp(a \, \mathrm{dist}(i, j)) \mathbf{x}_j` over the subtree of each node, and over its tree:

    .. math::
        \mathbf{s}_i = \mathbf{x}_i + \sum_{c} e^{a \ell_c} \mathbf{s}_c, \qquad
        \mathbf{w}_i = e^{a \ell_i} \mathbf{w}_p + (1 - e^{2 a \ell_i}) \mathbf{s}_i

    Nodes are in the order of the plan. May overwrite :obj:`x`.
    """
    gain = torch.outer(length, 2 * a).expm1_().neg().unsqueeze(-1)
    _, up, down, bounds = plan
    steps = bounds.tolist()
    span, inside, factors = length.clone(), x, []
    for first, leaves, end in steps:
        factor, below = _decay(span[first:end], a), down[first:leaves]
        inside = _add(inside, up[first:end], factor * inside[first:end])
        lower = span.index_select(0, below)
        factors.append((factor, _decay(lower, a)))
        span = _add(span, below, span[first:leaves].clone())
    for (first, leaves, _), (_, factor) in zip(reversed(steps), reversed(factors), strict=True):
        inside = _add(inside, slice(first, leaves), factor * inside.index_select(0, down[first:leaves]))
    first_root = steps[-1][-1] if steps else 0
    product = torch.cat([gain[:first_root] * inside[:first_root], inside[first_root:]])
    for (first, leaves, _), (_, factor) in zip(steps, factors, strict=True):
        product = _add(product, down[first:leaves], factor * product[first:leaves])
    for (first, _, end), (factor, _) in zip(reversed(steps), reversed(factors), strict=True):
        product = _add(product, slice(first, end), factor * product.index_select(0, up[first:end]))
    return inside, product


def _add(x: Tensor, rows: Tensor | slice, y: Tensor) -> Tensor:
    r"""Adds to some rows, in place unless autograd follows."""
    if torch.is_grad_enabled():
        rows = rows if isinstance(rows, Tensor) else torch.arange(rows.start, rows.stop, device=x.device)
        return x.index_add(0, rows, y)
    if isinstance(rows, Tensor):
        return x.index_add_(0, rows, y)
    x[rows] += y
    return x
