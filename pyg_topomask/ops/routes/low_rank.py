r"""The low-rank route: sums over the nodes of one graph."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import Any

import torch
from torch import Tensor

from pyg_topomask.ops.normalize import known_positive, quotient, with_ones
from pyg_topomask.utils.functorch import keep_inputs

# Nodes of a block in sums over all nodes. The rounding errors of one long sum would add up.
BLOCK = 4096


def attend_low_rank(q: Tensor, k: Tensor, v: Tensor, factors: tuple[Tensor, Tensor]) -> Tensor:
    r"""Sums over the nodes of one graph, :math:`\mathbf{A} (\mathbf{B}^{\top} ...)`, rank by rank."""
    left, right = (factor.to(q.dtype) for factor in factors)
    numerator, denominator = _attend(q, k, v, left, right)
    with torch.no_grad():
        magnitude = denominator
        if not known_positive(q, k, left, right):
            magnitude = _attend(q.abs(), k.abs(), v[..., :0], left.abs(), right.abs())[1]
    return quotient(numerator, denominator.unsqueeze(-1), magnitude.unsqueeze(-1))


def _attend(q: Tensor, k: Tensor, v: Tensor, left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
    r"""Returns numerators, :obj:`[N, H, d]`, and denominators, :obj:`[N, H]`."""
    scale = scale_of_shared(left, right)
    if scale is not None:
        total, size = scale.unsqueeze(-1) * SumOverNodes.apply(k, v, None)[0], scale * k.sum(0)
        return torch.einsum('nhm,hmd->nhd', q, total), torch.einsum('nhm,hm->nh', q, size)
    numerator, denominator = ReadSums.apply(q, SumOverNodes.apply(k, with_ones(v), right), left).split([v.size(-1), 1], -1)
    return numerator, denominator.squeeze(-1)


def scale_of_shared(left: Tensor, right: Tensor) -> Tensor | None:
    r"""Returns the value of a constant mask, :obj:`[H, 1]`: all nodes share their factors, as the ones of unmasked attention.
    :obj:`None` for other masks, and for any number of nodes in an exported program.
    """
    if isinstance(left.size(0), torch.SymInt):
        return None
    if all(factor.size(0) > 1 and factor.stride(0) == 0 for factor in (left, right)):
        return (left[0] * right[0]).sum(-1, keepdim=True)
    return None


class SumOverNodes(torch.autograd.Function):
    r"""Returns :math:`\sum_n w_{nr} \mathbf{k}_n \mathbf{v}_n^{\top}`, :obj:`[R, H, m, d]`, for weights :obj:`[N, H, R]`, or
    one rank of ones. The backward pass recomputes the weighted keys, and their gradient has the same memory layout. The
    gradient of an einsum is transposed, and slow to multiply.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(k: Tensor, v: Tensor, weight: Tensor | None) -> Tensor:
        return torch.stack([_sum_of_products(weigh(k, rank), v) for rank in _ranks(weight)])

    setup_context = staticmethod(keep_inputs)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        k, v, weight = ctx.saved_tensors
        keys = (torch.einsum('nhd,hmd->nhm', v, sums) for sums in grad)
        grad_k, grad_weight = _unweigh(k, keys, weight)
        values = (torch.einsum('nhm,hmd->nhd', weigh(k, rank), sums) for rank, sums in zip(_ranks(weight), grad, strict=True))
        return grad_k, reduce(Tensor.add_, values), grad_weight


class ReadSums(torch.autograd.Function):
    r"""Returns :math:`\sum_r w_{nr} \mathbf{S}_r^{\top} \mathbf{q}_n`, :obj:`[N, H, d]`, for sums :obj:`[R, H, m, d]`."""

    generate_vmap_rule = True

    @staticmethod
    def forward(q: Tensor, sums: Tensor, weight: Tensor) -> Tensor:
        terms = (torch.einsum('nhm,hmd->nhd', weigh(q, rank), total) for rank, total in zip(_ranks(weight), sums, strict=True))
        return reduce(Tensor.add_, terms)

    setup_context = staticmethod(keep_inputs)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        q, sums, weight = ctx.saved_tensors
        grad_sums = torch.stack([_sum_of_products(weigh(q, rank), grad) for rank in _ranks(weight)])
        grad_q, grad_weight = _unweigh(q, (torch.einsum('nhd,hmd->nhm', grad, total) for total in sums), weight)
        return grad_q, grad_sums, grad_weight


def _sum_of_products(x: Tensor, y: Tensor) -> Tensor:
    r"""Returns :math:`\sum_n \mathbf{x}_n \mathbf{y}_n^{\top}`, :obj:`[H, m, d]`, block by block."""
    if isinstance(x.size(0), torch.SymInt):  # an exported program has no loop over so many blocks
        return torch.einsum('nhm,nhd->hmd', x, y)
    blocks = zip(x.split(BLOCK), y.split(BLOCK), strict=True)
    return torch.stack([torch.einsum('nhm,nhd->hmd', *block) for block in blocks]).sum(0)


def _ranks(weight: Tensor | None) -> tuple[Tensor | None, ...]:
    return (None,) if weight is None else weight.split(1, -1)


def weigh(x: Tensor, rank: Tensor | None) -> Tensor:
    r"""Returns :obj:`x` times the factors of one rank, :obj:`[..., 1]`, or times ones."""
    return x if rank is None else rank * x


def _unweigh(x: Tensor, grads: Iterable[Tensor], weight: Tensor | None) -> tuple[Tensor, Tensor | None]:
    r"""Returns the gradients of :obj:`x` and of the weights from those of :obj:`x` weighed by each rank."""
    if weight is None:
        (grad,) = grads
        return grad, None
    grad_x, grad_weight = torch.zeros_like(x), []
    for rank, grad in zip(weight.split(1, -1), grads, strict=True):
        grad_x = torch.addcmul(grad_x, rank, grad)  # not in place: torch.func may batch the gradient alone
        grad_weight.append((x * grad).sum(-1, keepdim=True))
    return grad_x, torch.cat(grad_weight, -1).sum_to_size(weight.shape)
