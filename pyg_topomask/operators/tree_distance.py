r"""Products with any function of the distance in trees, and their gradients."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.forest import Forest, Histograms
from pyg_topomask.graphs.tree_state import TreeFactors
from pyg_topomask.machine.backend import kernel, uses_numba
from pyg_topomask.operators.base import MaskOperator
from pyg_topomask.operators.forms import Slots
from pyg_topomask.utils.checks import check_choice
from pyg_topomask.utils.functorch import LoopedFunction
from pyg_topomask.utils.precision import wide_dtype

METHODS = ('auto', 'rings', 'fft')

# The number of tensors after the trees that rings take. Those for machine code follow.
_RINGS = 2
# The cost of an entry of the histograms, in nodes of a ring, without and with machine code.
_ENTRY_COST, _ENTRY_COST_COMPILED = 5, 45
# Sums over subtrees that machine code keeps at a time, one for each node and distance.
_MOST_SUMS = 2**22
# Up to this number of rings, histograms do not pay off, because each node is in several histograms.
_FEW_RINGS = 16
# The largest depth of a tree in units. Histograms are as wide as subtrees.
_MOST_UNITS = 2**20


@dataclass(eq=False, repr=False)
class TreeDistance(MaskOperator):
    r""":math:`M_{ij} = f(\min(\mathrm{dist}(i, j), L))` within each tree, for distances in hops or units, with :math:`f` of
    shape :obj:`[H, L + 1]`, and the plan of :func:`plan_distance` for the same method, or of :func:`plan_units`.
    """

    f: Tensor
    method: str
    plan: tuple[Tensor, ...]

    def apply(self, x: Tensor) -> Tensor:
        dtype = wide_dtype(x)
        product: Tensor = _TreeDistance.apply(x.to(dtype), self.f.to(dtype).expand(x.size(1), -1), self.method, *self.plan)
        return product.to(x.dtype)

    def rows(self, slots: Slots, dtype: torch.dtype) -> Tensor:
        rows = super().rows(slots, dtype)
        if self.method == 'rings':
            return rows
        # Fourier transforms have errors where there is nothing.
        error = 64 * torch.finfo(torch.float64).eps * self.f.detach().abs().amax()
        return rows.masked_fill(rows.abs() < error, 0.0)

    def magnitude(self, x: Tensor) -> Tensor:
        tree, *plan = self.plan
        dtype = wide_dtype(x)
        f, exact = self.f.to(dtype).expand(x.size(1), -1), x.to(dtype)
        if self.method == 'rings':
            # The sums at one distance are differences of larger ones, which hold nodes that are closer by an even number.
            local, constant = _split(f, int(plan[1]))
            bound = local.abs().flip(1)
            for parity in (0, 1):
                bound[:, parity::2] = bound[:, parity::2].cumsum(1)
            bound, constant = bound.flip(1), constant.abs()
            if compiled := _kernel('tree.tree_product', x, plan):
                return compiled(_factors(bound, constant, plan), exact).to(x.dtype)
            return _sum_rings(bound, constant, exact, tree, plan[0]).to(x.dtype)
        # The error of Fourier transforms is relative to the largest sums, with the rounding of float64.
        f = f.abs()
        noise = torch.finfo(torch.float64).eps / torch.finfo(dtype).eps * f.amax(1, keepdim=True) * _tree_sum(exact, tree)
        return (_convolve(f, exact, plan).clamp_(min=0.0) + noise).to(x.dtype)

    @property
    def T(self) -> MaskOperator:
        return self

    def has_machine_code(self) -> bool:
        return self.method == 'rings' and len(self.plan) > 1 + _RINGS

    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        f, (_, *plan) = self.f, self.plan
        return kernel('tree.attend_tree', q.device)(_factors(*_split(f.expand(q.size(1), -1), int(plan[1])), plan), q, k, v)

    def attend_backward(self, learnable: Sequence[int], q: Tensor, k: Tensor, v: Tensor, grad: Tensor) -> list[Tensor]:
        f, (_, *plan) = self.f, self.plan
        split = _split(f.expand(q.size(1), -1), int(plan[1]))
        compiled = kernel('tree.attend_tree_backward', q.device)
        *grads, grad_split = compiled(_factors(*split, plan), q, k, v, grad, bool(learnable))
        return [*grads, *(_joined(grad_split, f.size(1), *split).sum_to_size(f.shape).to(f.dtype) for _ in learnable)]


def choose_method(forest: Forest, max_distance: int, device: torch.device, method: str = 'auto') -> str:
    r"""Returns the method for products with functions of the distance that are constant beyond some distance, by counting
    additions: :obj:`"rings"` (the nodes at each distance from all nodes, one distance at a time) or :obj:`"fft"` (histograms of
    distances from separators of the tree, whose products are convolutions).
    """
    check_choice(METHODS, method=method)
    if method != 'auto':
        return method
    num_rings = min(forest.diameter, max_distance)
    if num_rings <= _FEW_RINGS:
        return 'rings'
    sums, entries = num_rings * forest.num_nodes, len(forest.histograms.member)
    cost = _ENTRY_COST_COMPILED if uses_numba(device) and sums <= _MOST_SUMS else _ENTRY_COST
    return 'rings' if sums <= cost * entries else 'fft'


def plan_distance(forest: Forest, device: torch.device, method: str) -> tuple[Tensor, ...]:
    r"""Returns what products with a function of the distance in hops read, by a method."""
    if method == 'fft':
        return _plan_histograms(forest, device, forest.histograms)
    # The diameter stays on the CPU, where the loop over distances reads it.
    tree, parent = (torch.from_numpy(array).to(device) for array in (forest.tree, forest.parent))
    plan = (tree, parent, torch.tensor(forest.diameter))
    if preorder := kernel('tree.preorder', device):
        return (*plan, *preorder(forest.parent))
    return plan


def plan_units(forest: Forest, device: torch.device, length: Tensor, unit: float) -> tuple[Tensor, ...]:
    r"""Returns what products with a function of the distance in units read. Lengths of the edges to the parents, :obj:`[N]`,
    are rounded to whole units. Raises an error if the unit is too small for them.
    """
    units = (length.detach().double().cpu() / unit).round().clamp(max=2.0**40).long().numpy()
    depth = forest.distance(units)
    deepest = int(depth.max(initial=0))
    if deepest > _MOST_UNITS:
        raise ArgumentError('unit', f'{unit!r} for trees {deepest:,} units deep', f'units for depths of up to {_MOST_UNITS:,}')
    return _plan_histograms(forest, device, forest.histograms_at(depth))


def _plan_histograms(forest: Forest, device: torch.device, histograms: Histograms) -> tuple[Tensor, ...]:
    arrays = forest.tree, histograms.member, histograms.slot, histograms.sign
    # The groups stay on the CPU, where the loop over them reads them.
    return *(torch.from_numpy(array).to(device) for array in arrays), torch.from_numpy(histograms.groups)


class _TreeDistance(LoopedFunction):
    @staticmethod
    def forward(x: Tensor, f: Tensor, method: str, tree: Tensor, *plan: Tensor) -> Tensor:
        if method == 'fft':
            return _convolve(f, x, plan)
        split = _split(f, int(plan[1]))
        if compiled := _kernel('tree.tree_product', x, plan):
            return compiled(_factors(*split, plan), x)
        return _sum_rings(*split, x, tree, plan[0])

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        x, f, ctx.method, *plan = inputs
        ctx.save_for_backward(x, f, *plan)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        x, f, tree, *plan = ctx.saved_tensors
        (grad,) = grads
        grad_x = grad_f = None
        compiled = _kernel('tree.tree_product_backward', x, plan) if ctx.method == 'rings' else None
        if compiled and not torch.is_grad_enabled():
            split, learn = _split(f, int(plan[1])), ctx.needs_input_grad[1]
            grad_x, grad_split = compiled(_factors(*split, plan), x, grad, learn)
            grad_f = _joined(grad_split, f.size(1), *split).to(f.dtype) if learn else None
            return (grad_x, grad_f, None, None) + (None,) * len(plan)
        if ctx.needs_input_grad[0]:
            grad_x = _TreeDistance.apply(grad, f, ctx.method, tree, *plan)
        if ctx.needs_input_grad[1]:
            grad_f = _TreeCorrelation.apply(x, grad, f, ctx.method, tree, *plan)
        return (grad_x, grad_f, None, None) + (None,) * len(plan)


class _TreeCorrelation(LoopedFunction):
    r"""The gradient of the function in a product with :obj:`x`, :math:`\sum_{ij} g_i x_j` over the pairs at each distance."""

    @staticmethod
    def forward(x: Tensor, grad: Tensor, f: Tensor, method: str, tree: Tensor, *plan: Tensor) -> Tensor:
        return _correlate_rings(f, x, grad, tree, *plan[:_RINGS]) if method == 'rings' else _correlate(f, x, grad, plan)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        x, grad, _, ctx.method, *plan = inputs
        ctx.save_for_backward(x, grad, *plan)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        x, grad, *plan = ctx.saved_tensors
        products = (_TreeDistance.apply(other, grads[0], ctx.method, *plan) for other in (grad, x))
        return (*products, None, None) + (None,) * len(plan)


def _tree_sum(x: Tensor, tree: Tensor) -> Tensor:
    # In float64, because these sums run sequentially over whole trees.
    sums = torch.zeros_like(x, dtype=torch.float64).index_add_(0, tree, x.double())
    return sums.to(x.dtype).index_select(0, tree)


def _split(f: Tensor, diameter: int) -> tuple[Tensor, Tensor]:
    r"""Writes a function as a constant, its clipped value, plus a function that is 0 beyond the clip."""
    if diameter < f.size(1):
        return f[:, : diameter + 1], f[:, :0]
    return f[:, :-1] - f[:, -1:], f[:, -1:]


def _kernel(name: str, x: Tensor, plan: Sequence[Tensor]) -> Any:
    return kernel(name, x.device) if len(plan) > _RINGS else None


def _factors(local: Tensor, constant: Tensor, plan: Sequence[Tensor]) -> TreeFactors:
    r"""Returns the mask of a function that is split, for machine code, given the plan after the trees."""
    order, above = plan[_RINGS:]
    local = pad(local, (0, max(0, 1 - local.size(1))))
    return TreeFactors.of_function(order, above, torch.cat([local, pad(constant, (0, 1 - constant.size(1)))], 1))


def _joined(grad: Tensor, size: int, local: Tensor, constant: Tensor) -> Tensor:
    r"""Returns the gradients of a function from those of the parts that :func:`_split` makes of it."""
    of_local = grad[:, : local.size(1)]
    joined = pad(of_local, (0, size - local.size(1)))
    if constant.numel() > 0:
        joined[:, -1] = grad[:, -1] - of_local.sum(1)
    return joined


def _rings(x: Tensor, parent: Tensor) -> Iterator[Tensor]:
    r"""Yields the sums over the nodes at distance 0, 1, ... from each node:

    .. math::
        \mathbf{g}_l(i) = \sum_{c} \mathbf{g}_{l-1}(c), \qquad
        \mathbf{G}_l(i) = \mathbf{g}_l(i) + \mathbf{G}_{l-1}(p) - \mathbf{g}_{l-2}(i)

    over the subtree of node :math:`i`, and over its tree.
    """
    root = (parent == torch.arange(parent.numel(), device=parent.device)).view(-1, 1, 1)
    before, inside, total = torch.zeros_like(x), x, x
    while True:
        yield total
        below = torch.zeros_like(x).index_add_(0, parent, inside.masked_fill(root, 0.0))
        passed = total.index_select(0, parent).sub_(before).masked_fill_(root, 0.0)
        before, inside, total = inside, below, passed.add_(below)


def _sum_rings(local: Tensor, constant: Tensor, x: Tensor, tree: Tensor, parent: Tensor) -> Tensor:
    product = constant * _tree_sum(x, tree) if constant.numel() > 0 else torch.zeros_like(x)
    for value, ring in zip(local.unsqueeze(-1).unbind(1), _rings(x, parent), strict=False):
        product.addcmul_(value, ring)
    return product


def _correlate_rings(f: Tensor, x: Tensor, grad: Tensor, tree: Tensor, parent: Tensor, diameter: Tensor) -> Tensor:
    local, constant = _split(f, int(diameter))
    grad_f = torch.zeros_like(f)
    for distance, ring in zip(range(local.size(1)), _rings(x, parent), strict=False):
        grad_f[:, distance] = torch.einsum('nhc,nhc->h', ring, grad)
    if constant.numel() > 0:
        grad_f[:, -1] = torch.einsum('nhc,nhc->h', _tree_sum(x, tree), grad) - grad_f[:, :-1].sum(1)
    return grad_f


def _histograms(
    tensors: Sequence[Tensor], plan: Sequence[Tensor]
) -> Iterator[tuple[int, Tensor, Tensor, Tensor, list[Tensor]]]:
    r"""Yields for each group of histograms the width, the members, their slots, the signs, and the Fourier transforms of the
    histograms of every tensor, padded to twice the width.
    """
    member, slot, sign, groups = plan
    first = begin = 0
    for width, last, end in groups.tolist():
        if last == first:
            continue
        nodes, place = member[begin:end], slot[begin:end]
        transforms = []
        for x in tensors:
            histogram = x.new_zeros((last - first) * width, *x.shape[1:], dtype=torch.float64)
            histogram.index_add_(0, place, x.index_select(0, nodes).double())
            transforms.append(torch.fft.rfft(histogram.unflatten(0, (-1, width)), n=2 * width, dim=1))
        yield width, nodes, place, sign[first:last], transforms
        first, begin = last, end


def _convolve(f: Tensor, x: Tensor, plan: Sequence[Tensor]) -> Tensor:
    # In float64 too, because histograms are added and subtracted.
    product = torch.zeros_like(x, dtype=torch.float64)
    for width, member, slot, sign, (transform,) in _histograms([x], plan):
        distance = torch.arange(2 * width, device=f.device).clamp_(max=f.size(1) - 1)
        kernel = torch.fft.rfft(f.double()[:, distance], dim=1).t().unsqueeze(-1) * sign.view(-1, 1, 1, 1)
        sums = torch.fft.irfft(kernel * transform.conj_physical(), n=2 * width, dim=1)[:, :width]
        product.index_add_(0, member, sums.flatten(0, 1).index_select(0, slot))
    return product.to(x.dtype)


def _correlate(f: Tensor, x: Tensor, grad: Tensor, plan: Sequence[Tensor]) -> Tensor:
    grad_f = torch.zeros_like(f, dtype=torch.float64)
    for width, _, _, sign, (one, other) in _histograms([x, grad], plan):
        pairs = torch.einsum('q,qwhc,qwhc->hw', sign.to(one.dtype), one, other)
        distance = torch.arange(2 * width, device=f.device).clamp_(max=f.size(1) - 1)
        grad_f.index_add_(1, distance, torch.fft.irfft(pairs, n=2 * width, dim=1))
    return grad_f.to(f.dtype)
