r"""Products with exponential functions of the distance in trees, and their gradients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from pyg_topomask.graphs.forest import Forest
from pyg_topomask.graphs.tree_state import TreeFactors
from pyg_topomask.machine.backend import kernel
from pyg_topomask.operators.base import MaskOperator
from pyg_topomask.utils.functorch import LoopedFunction, gradients, keep_inputs
from pyg_topomask.utils.precision import wide_dtype


@dataclass(eq=False, repr=False)
class TreeExp(MaskOperator):
    r""":math:`M_{ij} = \exp(a \, \mathrm{dist}(i, j) + b)` within each tree, for :math:`a` and :math:`b` of shape :obj:`[H]`,
    with the length of the edge from each node to its parent, and the two results of :func:`plan_exp`. If entries :obj:`grow`,
    products subtract, and are in float64, as machine code always is.
    """

    a: Tensor
    b: Tensor
    length: Tensor
    contraction: tuple[Tensor, ...]
    walk: tuple[Tensor, ...]
    grow: bool = False

    def apply(self, x: Tensor) -> Tensor:
        dtype = torch.float64 if self.grow else wide_dtype(x)
        a, length = self.a.to(dtype).expand(x.size(1)), self.length.to(dtype)
        product: Tensor = _TreeExp.apply(x.to(dtype), a, length, *self.contraction)
        return (product * self.b.to(dtype).exp().unsqueeze(-1)).to(x.dtype)

    def magnitude(self, x: Tensor) -> Tensor:
        return self.apply(x)

    @property
    def T(self) -> MaskOperator:
        return self

    def has_machine_code(self) -> bool:
        return bool(self.walk)

    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        total = kernel('tree.attend_tree', q.device)(self._factors(self.a.expand(q.size(1))), q, k, v)
        return total.mul_(self.b.to(q.dtype).exp().unsqueeze(-1))

    def attend_backward(self, learnable: Sequence[int], q: Tensor, k: Tensor, v: Tensor, grad: Tensor) -> list[Tensor]:
        a, b, length = self.a.expand(q.size(1)), self.b, self.length
        grad, learn = grad * b.to(q.dtype).exp().unsqueeze(-1), 0 in learnable or 2 in learnable
        *grads, crossing = kernel('tree.attend_tree_backward', q.device)(self._factors(a), q, k, v, grad, learn)
        of_a, of_length = _of_exponent(crossing, a, length) if learn else (a, length)
        learned = ((self.a, of_a), (b, (q * grads[0]).sum((0, 2))), (length, of_length))
        return [*grads, *(each.sum_to_size(given.shape).to(given.dtype) for given, each in map(learned.__getitem__, learnable))]

    def _factors(self, a: Tensor) -> TreeFactors:
        order, above = self.walk
        return TreeFactors.of_exponent(order, above, a, self.length)


def plan_exp(forest: Forest, device: torch.device) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
    r"""Returns the rounds of the contraction of a forest, and for machine code the nodes in another order and their parents."""
    *index, bounds = map(torch.from_numpy, forest.schedule)
    # The bounds stay on the CPU, where the loop over rounds reads them.
    plan = (*(array.to(device) for array in index), bounds)
    if preorder := kernel('tree.preorder', device):
        return plan, tuple(preorder(forest.parent))
    return plan, ()


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
        ordered = length.index_select(0, order)
        grad_inside, grad_product = _sweep(grads[0].index_select(0, order), a, ordered, plan)
        grad_a = grad_length = None
        if any(ctx.needs_input_grad[1:3]):
            # An edge adds its length to the distances of the pairs that it separates: sums over the tree at its upper end,
            # less what they have of the subtree below it.
            inside, product = _sweep(x.index_select(0, order), a, ordered, plan)
            decay, (parent, *_) = _decay(ordered, a).squeeze(-1), plan
            crossing = (inside * grad_product.index_select(0, parent)).sum(-1)
            crossing += (grad_inside * product.index_select(0, parent)).sum(-1)
            crossing -= 2 * decay * (inside * grad_inside).sum(-1)
            crossing = torch.empty_like(crossing).index_copy_(0, order, crossing * decay)
            grad_a, grad_length = _of_exponent(crossing, a, length)
        grad_x = torch.empty_like(x).index_copy_(0, order, grad_product)
        return (grad_x, grad_a, grad_length, None) + (None,) * len(plan)


def _of_exponent(crossing: Tensor, a: Tensor, length: Tensor) -> tuple[Tensor, Tensor]:
    r"""Returns the gradients of :math:`a` and :math:`\ell` from those of their products, :obj:`[N, H]`."""
    return (length.to(crossing) @ crossing).to(a), (crossing @ a.to(crossing)).to(length)


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
