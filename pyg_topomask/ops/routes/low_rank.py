r"""The low-rank route: sums over the nodes of one graph, or of each graph of a batch, side by side."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Any

import torch
from torch import Tensor

from pyg_topomask.graphs.segments import Segments, groups_of_constants
from pyg_topomask.machine.backend import kernel
from pyg_topomask.ops.attention_op import AttentionInputs, attention_op, outputs_of_sums
from pyg_topomask.ops.normalize import gradients_of_sums, inverse_weight, known_positive, quotient, with_ones
from pyg_topomask.utils.functorch import keep_inputs

# Nodes of a block in sums over all nodes. The rounding errors of one long sum would add up.
_BLOCK = 4096


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
        return torch.stack([_sum_of_products(weigh(k, rank), v) for rank in _each_rank(weight)])

    setup_context = staticmethod(keep_inputs)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        k, v, weight = ctx.saved_tensors
        keys = (torch.einsum('nhd,hmd->nhm', v, sums) for sums in grad)
        grad_k, grad_weight = _unweigh(k, keys, weight)
        values = (
            torch.einsum('nhm,hmd->nhd', weigh(k, rank), sums) for rank, sums in zip(_each_rank(weight), grad, strict=True)
        )
        return grad_k, reduce(Tensor.add_, values), grad_weight


class ReadSums(torch.autograd.Function):
    r"""Returns :math:`\sum_r w_{nr} \mathbf{S}_r^{\top} \mathbf{q}_n`, :obj:`[N, H, d]`, for sums :obj:`[R, H, m, d]`."""

    generate_vmap_rule = True

    @staticmethod
    def forward(q: Tensor, sums: Tensor, weight: Tensor) -> Tensor:
        terms = (
            torch.einsum('nhm,hmd->nhd', weigh(q, rank), total) for rank, total in zip(_each_rank(weight), sums, strict=True)
        )
        return reduce(Tensor.add_, terms)

    setup_context = staticmethod(keep_inputs)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        q, sums, weight = ctx.saved_tensors
        grad_sums = torch.stack([_sum_of_products(weigh(q, rank), grad) for rank in _each_rank(weight)])
        grad_q, grad_weight = _unweigh(q, (torch.einsum('nhd,hmd->nhm', grad, total) for total in sums), weight)
        return grad_q, grad_sums, grad_weight


def _sum_of_products(x: Tensor, y: Tensor) -> Tensor:
    r"""Returns :math:`\sum_n \mathbf{x}_n \mathbf{y}_n^{\top}`, :obj:`[H, m, d]`, block by block."""
    if isinstance(x.size(0), torch.SymInt):  # an exported program has no loop over so many blocks
        return torch.einsum('nhm,nhd->hmd', x, y)
    blocks = zip(x.split(_BLOCK), y.split(_BLOCK), strict=True)
    return torch.stack([torch.einsum('nhm,nhd->hmd', *block) for block in blocks]).sum(0)


def _each_rank(weight: Tensor | None) -> tuple[Tensor | None, ...]:
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


# Numbers in the sums that are held at a time: those of many small graphs are more than their queries and values.
_SUMS = 2**22


def graphs_at_a_time(heads: int, num_features: int, num_channels: int) -> int:
    r"""Returns how many graphs are summed up side by side."""
    return max(1, _SUMS // max(1, heads * num_features * (num_channels + 1)))


def _forward(inputs: AttentionInputs) -> tuple[Tensor, Tensor]:
    q, k, v, tensors, constants, *_ = inputs
    # Without factors the mask is one of ones.
    positive = known_positive(q, k, *tensors)
    if compiled := kernel('batches.attend_low_rank_batch', q.device):
        total, size = compiled(constants[0], q, k, with_ones(v), tensors, not positive)
        inverse = inverse_weight(total[..., -1], total[..., -1] if positive else size)
        return total[..., :-1] * inverse.unsqueeze(-1), inverse
    values = with_ones(v)
    packed = torch.cat([q, k, values, *tensors], dim=-1)
    total = packed.new_empty(q.size(0) + 1, *values.shape[1:])
    size = packed.new_empty(q.size(0) + 1, q.size(1), 1)
    for group in groups_of_constants(constants, q.size(0), graphs_at_a_time(q.size(1), q.size(2), v.size(2))):
        query, key, value, *factors = _split(group.take(packed), q, k, values, *tensors)
        key.masked_fill_(group.padding.unsqueeze(-1), 0.0)
        weighted_sum = torch.zeros_like(value)
        for row, column in _pairs_of_ranks(factors):
            weighted_sum += weigh(query, row) @ (weigh(key, column).transpose(-1, -2) @ value)
        group.put(total, weighted_sum)
        if not positive:
            magnitude = torch.zeros_like(value[..., :1])
            for row, column in _pairs_of_ranks([factor.abs() for factor in factors]):
                sums = weigh(key.abs(), column).sum(-2, keepdim=True)
                magnitude += weigh(query.abs(), row) @ sums.transpose(-1, -2)
            group.put(size, magnitude)
    total = total[:-1]
    inverse = inverse_weight(total[..., -1], total[..., -1] if positive else size[:-1, :, 0])
    return total[..., :-1] * inverse.unsqueeze(-1), inverse


def _split(packed: Tensor, *pieces: Tensor) -> list[Tensor]:
    return list(packed.split([piece.size(-1) for piece in pieces], dim=-1))


def _pairs_of_ranks(factors: list[Tensor]) -> list[tuple[Tensor | None, Tensor | None]]:
    if not factors:
        return [(None, None)]
    rows, columns = factors
    return list(zip(rows.split(1, -1), columns.split(1, -1), strict=True))


def _backward(
    grads: tuple[Tensor, Tensor | None], outputs: tuple[Tensor, Tensor], inputs: AttentionInputs, learnable: Sequence[int]
) -> list[Tensor]:
    q, k, v, tensors, constants, *_ = inputs
    numerator, denominator = gradients_of_sums(grads[0], *outputs)
    upstream = torch.cat([numerator, denominator.unsqueeze(-1)], dim=-1)
    if compiled := kernel('batches.attend_low_rank_batch_backward', q.device):
        grads_of_all = compiled(constants[0], q, k, with_ones(v), tensors, upstream)
        return [*grads_of_all[:3], *(grads_of_all[3 + index] for index in learnable)]
    pieces = (q, k, with_ones(v), upstream, *tensors)
    packed, differentiated = torch.cat(pieces, dim=-1), (q, k, v, *tensors)
    grad_packed = packed.new_empty(q.size(0) + 1, q.size(1), sum(each.size(-1) for each in differentiated))
    for group in groups_of_constants(constants, q.size(0), graphs_at_a_time(q.size(1), q.size(2), v.size(2))):
        query, key, value, gradient, *factors = _split(group.take(packed), *pieces)
        for padded in (key, gradient):
            padded.masked_fill_(group.padding.unsqueeze(-1), 0.0)
        grad_query, grad_key = torch.zeros_like(query), torch.zeros_like(key)
        grad_value = torch.zeros_like(value[..., :-1])
        grad_rows: list[Tensor] = []
        grad_columns: list[Tensor] = []
        for row, column in _pairs_of_ranks(factors):
            weighted = weigh(key, column)
            sums, grad_sums = weighted.transpose(-1, -2) @ value, weigh(query, row).transpose(-1, -2) @ gradient
            weighted_query, weighted_key = gradient @ sums.transpose(-1, -2), value @ grad_sums.transpose(-1, -2)
            grad_query += weigh(weighted_query, row)
            grad_key += weigh(weighted_key, column)
            grad_value += weighted @ grad_sums[..., :-1]
            if factors:
                grad_rows.append((query * weighted_query).sum(-1, keepdim=True))
                grad_columns.append((key * weighted_key).sum(-1, keepdim=True))
        group.put(grad_packed, torch.cat([grad_query, grad_key, grad_value, *grad_rows, *grad_columns], dim=-1))
    grad_q, grad_k, grad_v, *grad_factors = _split(grad_packed[:-1], *differentiated)
    needed = (grad_q, grad_k, grad_v, *(grad_factors[index] for index in learnable))
    # Copies, also of what is contiguous as it is: outputs of an operator share no memory.
    return [each.clone(memory_format=torch.contiguous_format) for each in needed]


def _plain(inputs: AttentionInputs, inverse: Tensor) -> tuple[Tensor, Tensor]:
    q, k, v, factors, (ptr, *_), *_ = inputs
    values, graph = with_ones(v).unsqueeze(2), Segments.from_ptr(ptr, q.size(0)).index
    total = torch.zeros_like(values.squeeze(2))
    for row, column in _pairs_of_ranks(list(factors)):
        product = weigh(k, column).unsqueeze(3) * values
        sums = product.new_zeros(ptr.numel() - 1, *product.shape[1:]).index_add(0, graph, product)
        total = total + torch.einsum('nhm,nhmd->nhd', weigh(q, row), sums.index_select(0, graph))
    return outputs_of_sums(total, inverse)


attend_low_rank_batch = attention_op('attend_low_rank_batch', _forward, _backward, _plain)
