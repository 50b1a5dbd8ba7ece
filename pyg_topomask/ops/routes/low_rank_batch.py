r"""The low-rank route in a batch: sums over the nodes of each graph, of graphs side by side."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from pyg_topomask.graphs.segments import Segments, groups_of_constants
from pyg_topomask.machine.backend import kernel
from pyg_topomask.ops.attention_op import AttentionInputs, attention_op
from pyg_topomask.ops.normalize import gradients_of_sums, inverse_weight, known_positive, with_ones
from pyg_topomask.ops.routes.low_rank import weigh
from pyg_topomask.ops.routes.plain import outputs_of_sums

# Numbers in the sums that are held at a time: those of many small graphs are more than their queries and values.
_SUMS = 2**22


def graphs_at_a_time(heads: int, num_features: int, num_channels: int) -> int:
    r"""Returns how many graphs are summed up side by side."""
    return max(1, _SUMS // max(1, heads * num_features * (num_channels + 1)))


def _forward(inputs: AttentionInputs) -> tuple[Tensor, Tensor]:
    q, k, v, tensors, constants, *_ = inputs
    # Without factors the mask is one of ones.
    positive = known_positive(q, k, *tensors)
    if compiled := kernel('attend_low_rank_batch', q.device):
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
        for row, column in _ranks(factors):
            weighted_sum += weigh(query, row) @ (weigh(key, column).transpose(-1, -2) @ value)
        group.put(total, weighted_sum)
        if not positive:
            magnitude = torch.zeros_like(value[..., :1])
            for row, column in _ranks([factor.abs() for factor in factors]):
                sums = weigh(key.abs(), column).sum(-2, keepdim=True)
                magnitude += weigh(query.abs(), row) @ sums.transpose(-1, -2)
            group.put(size, magnitude)
    total = total[:-1]
    inverse = inverse_weight(total[..., -1], total[..., -1] if positive else size[:-1, :, 0])
    return total[..., :-1] * inverse.unsqueeze(-1), inverse


def _split(packed: Tensor, *pieces: Tensor) -> list[Tensor]:
    return list(packed.split([piece.size(-1) for piece in pieces], dim=-1))


def _ranks(factors: list[Tensor]) -> list[tuple[Tensor | None, Tensor | None]]:
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
    if compiled := kernel('attend_low_rank_batch_backward', q.device):
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
        for row, column in _ranks(factors):
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
    for row, column in _ranks(list(factors)):
        product = weigh(k, column).unsqueeze(3) * values
        sums = product.new_zeros(ptr.numel() - 1, *product.shape[1:]).index_add(0, graph, product)
        total = total + torch.einsum('nhm,nhmd->nhd', weigh(q, row), sums.index_select(0, graph))
    return outputs_of_sums(total, inverse)


attend_low_rank_batch = attention_op('attend_low_rank_batch', _forward, _backward, _plain)
