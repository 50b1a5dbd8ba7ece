r"""The low-rank route: sums over the nodes of one graph."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from pyg_topomask.ops.normalize import inverse_weight, known_positive

__all__ = ['attend_low_rank']


def attend_low_rank(q: Tensor, k: Tensor, v: Tensor, factors: tuple[Tensor, Tensor]) -> Tensor:
    r"""Sums over the nodes of one graph, :math:`\mathbf{A} (\mathbf{B}^{\top} ...)`, rank by rank."""
    left, right = (factor.to(q.dtype) for factor in factors)
    numerator, denominator = _sum_ranks(q, k, v, left, right)
    with torch.no_grad():
        magnitude = denominator
        if not known_positive(q, k, left, right):
            magnitude = _sum_ranks(q.abs(), k.abs(), v[..., :0], left.abs(), right.abs())[1]
        empty = inverse_weight(denominator, magnitude) == 0
    return (numerator / denominator.masked_fill(empty, 1.0).unsqueeze(-1)).masked_fill(empty.unsqueeze(-1), 0.0)


def _sum_ranks(q: Tensor, k: Tensor, v: Tensor, left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
    r"""Returns numerators, :obj:`[N, H, d]`, and denominators, :obj:`[N, H]`."""
    pairs = list(zip(left.split(1, -1), right.split(1, -1), strict=True))
    if len(pairs) == 1:
        return _sum_rank(q, k, v, *pairs[0])
    numerator, denominator = v.new_zeros(*q.shape[:2], v.size(-1)), q.new_zeros(q.shape[:2])
    for pair in pairs:  # without checkpoints every rank would keep its own keys for the backward pass
        own: tuple[Tensor, Tensor] = checkpoint(_sum_rank, q, k, v, *pair, use_reentrant=False)
        numerator, denominator = numerator + own[0], denominator + own[1]
    return numerator, denominator


def _sum_rank(q: Tensor, k: Tensor, v: Tensor, left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
    # A factor that all nodes share, as the ones of unmasked attention, multiplies the sums alone.
    keys = k if _shared(right) else right * k
    total, size = _Sums.apply(keys, v)
    for factor in (left, right):
        if _shared(factor):
            total, size = total * factor[0].unsqueeze(-1), size * factor[0]
    numerator, denominator = torch.einsum('nhm,hmd->nhd', q, total), torch.einsum('nhm,hm->nh', q, size)
    return (numerator, denominator) if _shared(left) else (left * numerator, left.squeeze(-1) * denominator)


def _shared(factor: Tensor) -> bool:
    return factor.size(0) > 1 and factor.stride(0) == 0


class _Sums(torch.autograd.Function):
    r"""Returns :math:`\sum_n \mathbf{k}_n \mathbf{v}_n^{\top}`, :obj:`[H, m, d]`, and :math:`\sum_n \mathbf{k}_n`,
    :obj:`[H, m]`. The gradient of the keys lies in memory as they do; that of an einsum is transposed, which makes all that
    multiplies it several times slower.
    """

    @staticmethod
    def forward(k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        return torch.einsum('nhm,nhd->hmd', k, v), k.sum(0)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: tuple[Tensor, Tensor]) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, grad_total: Tensor, grad_size: Tensor) -> tuple[Tensor, Tensor]:
        k, v = ctx.saved_tensors
        return torch.einsum('nhd,hmd->nhm', v, grad_total) + grad_size, torch.einsum('nhm,hmd->nhd', k, grad_total)
