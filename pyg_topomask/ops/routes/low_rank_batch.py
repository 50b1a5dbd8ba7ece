r"""The low-rank route in a batch: sums over the nodes of each graph, of graphs side by side."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from pyg_topomask.ops.normalize import gradients_of_sums, inverse_weight, known_positive, with_ones
from pyg_topomask.ops.routes.groups import Group, Groups

__all__ = ['attend_low_rank_batch']

# Numbers in the sums that are held at a time: those of many small graphs are more than their queries and values.
_SUMS = 2**22


def _groups(q: Tensor, v: Tensor, batch: Tensor, num_graphs: int) -> list[Group]:
    return Groups(batch, num_graphs, max(1, _SUMS // max(1, q.size(1) * q.size(2) * (v.size(2) + 1)))).groups


@torch.library.custom_op(
    'pyg_topomask::attend_low_rank_batch',
    mutates_args=(),
    schema='(Tensor q, Tensor k, Tensor v, Tensor left, Tensor right, Tensor batch, SymInt num_graphs) -> (Tensor, Tensor)',
)
def attend_low_rank_batch(
    q: Tensor, k: Tensor, v: Tensor, left: Tensor, right: Tensor, batch: Tensor, num_graphs: int
) -> tuple[Tensor, Tensor]:
    packed = torch.cat([q, k, with_ones(v), left, right], dim=-1)
    total = packed.new_empty(q.size(0) + 1, q.size(1), v.size(2) + 1)
    positive = known_positive(q, k, left, right)
    size = packed.new_empty(q.size(0) + 1, q.size(1), 1)
    for group in _groups(q, v, batch, num_graphs):
        query, key, value, rows, columns = _split(group.take(packed), q, v, left)
        key.masked_fill_(group.padding.unsqueeze(-1), 0.0)
        own = torch.zeros_like(value)
        for row, column in _ranks(rows, columns):
            own += (row * query) @ ((column * key).transpose(-1, -2) @ value)
        group.put(total, own)
        if not positive:
            magnitude = torch.zeros_like(rows[..., :1])
            for row, column in _ranks(rows.abs(), columns.abs()):
                sums = (column * key.abs()).sum(-2, keepdim=True)
                magnitude += row * (query.abs() @ sums.transpose(-1, -2))
            group.put(size, magnitude)
    total = total[:-1]
    magnitude = total[..., -1] if positive else size[:-1, :, 0]
    inverse = inverse_weight(total[..., -1], magnitude)
    return total[..., :-1] * inverse.unsqueeze(-1), inverse


def _split(packed: Tensor, q: Tensor, v: Tensor, left: Tensor, *more: int) -> tuple[Tensor, ...]:
    parts: tuple[Tensor, ...] = packed.split([q.size(2), q.size(2), v.size(2) + 1, left.size(2), left.size(2), *more], dim=-1)
    return parts


def _ranks(rows: Tensor, columns: Tensor) -> Iterable[tuple[Tensor, Tensor]]:
    return zip(rows.split(1, -1), columns.split(1, -1), strict=True)


@attend_low_rank_batch.register_fake
def _(q: Tensor, k: Tensor, v: Tensor, left: Tensor, right: Tensor, batch: Tensor, num_graphs: int) -> tuple[Tensor, Tensor]:
    return v.new_empty(v.shape), q.new_empty(q.shape[:2])


@torch.library.custom_op(
    'pyg_topomask::attend_low_rank_batch_backward',
    mutates_args=(),
    schema='(Tensor grad, Tensor out, Tensor inverse, Tensor q, Tensor k, Tensor v, Tensor left, Tensor right, Tensor batch, '
    'SymInt num_graphs) -> (Tensor, Tensor, Tensor, Tensor, Tensor)',
)
def _attend_backward(
    grad: Tensor,
    out: Tensor,
    inverse: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    left: Tensor,
    right: Tensor,
    batch: Tensor,
    num_graphs: int,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    numerator, denominator = gradients_of_sums(grad, out, inverse)
    packed = torch.cat([q, k, with_ones(v), left, right, numerator, denominator.unsqueeze(-1)], dim=-1)
    found = packed.new_empty(q.size(0) + 1, q.size(1), packed.size(2) - v.size(2) - 1)
    for group in _groups(q, v, batch, num_graphs):
        query, key, value, rows, columns, gradient = _split(group.take(packed), q, v, left, v.size(2) + 1)
        for part in (key, gradient):
            part.masked_fill_(group.padding.unsqueeze(-1), 0.0)
        grad_query, grad_key, grad_value = torch.zeros_like(query), torch.zeros_like(key), torch.zeros_like(value)
        grad_rows, grad_columns = [], []
        for row, column in _ranks(rows, columns):
            weighted = column * key
            sums, grad_sums = weighted.transpose(-1, -2) @ value, (row * query).transpose(-1, -2) @ gradient
            grad_query.addcmul_(row, grad_weighted := gradient @ sums.transpose(-1, -2))
            grad_rows.append((query * grad_weighted).sum(-1, keepdim=True))
            grad_key.addcmul_(column, grad_weighted := value @ grad_sums.transpose(-1, -2))
            grad_columns.append((key * grad_weighted).sum(-1, keepdim=True))
            grad_value += weighted @ grad_sums
        group.put(found, torch.cat([grad_query, grad_key, grad_value, *grad_rows, *grad_columns], dim=-1))
    grad_q, grad_k, grad_v, grad_left, grad_right = _split(found[:-1], q, v, left)
    return (
        grad_q.contiguous(),
        grad_k.contiguous(),
        grad_v[..., :-1].contiguous(),
        grad_left.contiguous(),
        grad_right.contiguous(),
    )


@_attend_backward.register_fake
def _(
    grad: Tensor,
    out: Tensor,
    inverse: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    left: Tensor,
    right: Tensor,
    batch: Tensor,
    num_graphs: int,
) -> tuple[Tensor, ...]:
    return tuple(tensor.new_empty(tensor.shape) for tensor in (q, k, v, left, right))


def _setup(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    *tensors, ctx.num_graphs = inputs
    ctx.save_for_backward(*output, *tensors)


def _backward(ctx: Any, grad: Tensor, _: Tensor | None) -> tuple[Any, ...]:
    return (*_attend_backward(grad, *ctx.saved_tensors, ctx.num_graphs), None, None)


attend_low_rank_batch.register_autograd(_backward, setup_context=_setup)
