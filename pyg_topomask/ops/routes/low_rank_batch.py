r"""The low-rank route in a batch: sums over the nodes of each graph, of graphs side by side."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pyg_topomask.ops.normalize import gradients_of_sums, inverse_weight, known_positive, with_ones
from pyg_topomask.ops.routes.groups import Group, Groups
from pyg_topomask.ops.routes.low_rank import weigh

__all__ = ['attend_low_rank_batch']

# Numbers in the sums that are held at a time: those of many small graphs are more than their queries and values.
_SUMS = 2**22


def _groups(q: Tensor, v: Tensor, batch: Tensor, num_graphs: int) -> list[Group]:
    return Groups(batch, num_graphs, max(1, _SUMS // max(1, q.size(1) * q.size(2) * (v.size(2) + 1)))).groups


@torch.library.custom_op(
    'pyg_topomask::attend_low_rank_batch',
    mutates_args=(),
    schema='(Tensor q, Tensor k, Tensor v, Tensor[] factors, Tensor batch, SymInt num_graphs) -> (Tensor, Tensor)',
)
def attend_low_rank_batch(
    q: Tensor, k: Tensor, v: Tensor, factors: list[Tensor], batch: Tensor, num_graphs: int
) -> tuple[Tensor, Tensor]:
    # Without factors the mask is one of ones.
    values = with_ones(v)
    packed = torch.cat([q, k, values, *factors], dim=-1)
    total = packed.new_empty(q.size(0) + 1, *values.shape[1:])
    positive = known_positive(q, k, *factors)
    size = packed.new_empty(q.size(0) + 1, q.size(1), 1)
    for group in _groups(q, v, batch, num_graphs):
        query, key, value, *own = _split(group.take(packed), q, k, values, *factors)
        key.masked_fill_(group.padding.unsqueeze(-1), 0.0)
        found = torch.zeros_like(value)
        for row, column in _ranks(own):
            found += weigh(query, row) @ (weigh(key, column).transpose(-1, -2) @ value)
        group.put(total, found)
        if not positive:
            magnitude = torch.zeros_like(value[..., :1])
            for row, column in _ranks([factor.abs() for factor in own]):
                sums = weigh(key.abs(), column).sum(-2, keepdim=True)
                magnitude += weigh(query.abs(), row) @ sums.transpose(-1, -2)
            group.put(size, magnitude)
    total = total[:-1]
    inverse = inverse_weight(total[..., -1], total[..., -1] if positive else size[:-1, :, 0])
    return total[..., :-1] * inverse.unsqueeze(-1), inverse


def _split(packed: Tensor, *parts: Tensor) -> list[Tensor]:
    return list(packed.split([part.size(-1) for part in parts], dim=-1))


def _ranks(factors: list[Tensor]) -> list[tuple[Tensor | None, Tensor | None]]:
    if not factors:
        return [(None, None)]
    rows, columns = factors
    return list(zip(rows.split(1, -1), columns.split(1, -1), strict=True))


@attend_low_rank_batch.register_fake
def _(q: Tensor, k: Tensor, v: Tensor, factors: list[Tensor], batch: Tensor, num_graphs: int) -> tuple[Tensor, Tensor]:
    return v.new_empty(v.shape), q.new_empty(q.shape[:2])


@torch.library.custom_op(
    'pyg_topomask::attend_low_rank_batch_backward',
    mutates_args=(),
    schema='(Tensor grad, Tensor out, Tensor inverse, Tensor q, Tensor k, Tensor v, Tensor[] factors, Tensor batch, '
    'SymInt num_graphs) -> Tensor[]',
)
def _attend_backward(
    grad: Tensor,
    out: Tensor,
    inverse: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    factors: list[Tensor],
    batch: Tensor,
    num_graphs: int,
) -> list[Tensor]:
    numerator, denominator = gradients_of_sums(grad, out, inverse)
    parts = (q, k, with_ones(v), torch.cat([numerator, denominator.unsqueeze(-1)], dim=-1), *factors)
    packed = torch.cat(parts, dim=-1)
    results = (q, k, v, *factors)
    found = packed.new_empty(q.size(0) + 1, q.size(1), sum(part.size(-1) for part in results))
    for group in _groups(q, v, batch, num_graphs):
        query, key, value, gradient, *own = _split(group.take(packed), *parts)
        for part in (key, gradient):
            part.masked_fill_(group.padding.unsqueeze(-1), 0.0)
        grad_query, grad_key = torch.zeros_like(query), torch.zeros_like(key)
        grad_value = torch.zeros_like(value[..., :-1])
        grad_rows: list[Tensor] = []
        grad_columns: list[Tensor] = []
        for row, column in _ranks(own):
            weighted = weigh(key, column)
            sums, grad_sums = weighted.transpose(-1, -2) @ value, weigh(query, row).transpose(-1, -2) @ gradient
            own_query, own_key = gradient @ sums.transpose(-1, -2), value @ grad_sums.transpose(-1, -2)
            grad_query += weigh(own_query, row)
            grad_key += weigh(own_key, column)
            grad_value += weighted @ grad_sums[..., :-1]
            if own:
                grad_rows.append((query * own_query).sum(-1, keepdim=True))
                grad_columns.append((key * own_key).sum(-1, keepdim=True))
        group.put(found, torch.cat([grad_query, grad_key, grad_value, *grad_rows, *grad_columns], dim=-1))
    # Copies, also where a part is contiguous as it is: outputs of an operator share no memory.
    return [part.clone(memory_format=torch.contiguous_format) for part in _split(found[:-1], *results)]


@_attend_backward.register_fake
def _(
    grad: Tensor,
    out: Tensor,
    inverse: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    factors: list[Tensor],
    batch: Tensor,
    num_graphs: int,
) -> list[Tensor]:
    return [tensor.new_empty(tensor.shape) for tensor in (q, k, v, *factors)]


def _setup(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    q, k, v, factors, batch, ctx.num_graphs = inputs
    ctx.save_for_backward(*output, q, k, v, batch, *factors)


def _backward(ctx: Any, grad: Tensor, _: Tensor | None) -> tuple[Any, ...]:
    out, inverse, q, k, v, batch, *factors = ctx.saved_tensors
    grads = _attend_backward(grad, out, inverse, q, k, v, factors, batch, ctx.num_graphs)
    return (*grads[:3], grads[3:], None, None)


attend_low_rank_batch.register_autograd(_backward, setup_context=_setup)
