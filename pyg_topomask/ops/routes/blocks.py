r"""The blocks route: the mask multiplies unit vectors, which gives its block of each graph in a batch of small ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from pyg_topomask.ops.normalize import gradients_of_sums, inverse_weight, with_ones
from pyg_topomask.ops.routes.groups import Groups
from pyg_topomask.structures import MaskStructure, replaced, structure_from_key

__all__ = ['attend_blocks']


class _Blocks(Groups):
    r"""The graphs of a batch in groups, and unit vectors, :obj:`[N, heads, n]` for :math:`n` nodes in the largest graph. A mask
    of :obj:`heads` heads multiplies these to the rows of its blocks, which are 0 at padding.
    """

    def __init__(self, batch: Tensor, num_graphs: int, heads: int, dtype: torch.dtype) -> None:
        super().__init__(batch, num_graphs)
        self.units = torch.nn.functional.one_hot(self.position, self.largest).to(dtype).unsqueeze(1).expand(-1, heads, -1)

    def rows(self, mask: MaskStructure, tensors: Sequence[Tensor]) -> Tensor:
        r"""Returns the rows of the blocks, :obj:`[N, heads, n]`."""
        return mask.apply(tensors, self.units)


def _pairs(x: Tensor, y: Tensor) -> Tensor:
    return x @ y.transpose(-1, -2)


@torch.library.custom_op(
    'pyg_topomask::attend_blocks',
    mutates_args=(),
    schema='(Tensor q, Tensor k, Tensor v, Tensor[] tensors, str structure, Tensor batch, int num_graphs, int heads) '
    '-> (Tensor, Tensor)',
)
def attend_blocks(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    tensors: Sequence[Tensor],
    structure: str,
    batch: Tensor,
    num_graphs: int,
    heads: int,
) -> tuple[Tensor, Tensor]:
    mask, blocks = structure_from_key(structure), _Blocks(batch, num_graphs, heads, q.dtype)
    rows, packed = blocks.rows(mask, tensors), torch.cat([q, k, with_ones(v)], dim=-1)
    total = packed.new_empty(q.size(0) + 1, q.size(1), v.size(2) + 1)
    for group in blocks.groups:
        query, key, value = group.take(packed).split([q.size(2), q.size(2), v.size(2) + 1], dim=-1)
        weight = _pairs(query, key).mul_(group.take(rows)[..., : group.width])
        group.put(total, weight @ value)
    total = total[:-1]
    # Where rounding leaves something of entries that are zero, their own sizes do not tell.
    magnitude = (q.abs() * mask.magnitude(tensors, k.abs())).sum(-1)
    inverse = inverse_weight(total[..., -1], magnitude)
    return total[..., :-1] * inverse.unsqueeze(-1), inverse


@attend_blocks.register_fake
def _(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    tensors: Sequence[Tensor],
    structure: str,
    batch: Tensor,
    num_graphs: int,
    heads: int,
) -> tuple[Tensor, Tensor]:
    return v.new_empty(v.shape), q.new_empty(q.shape[:2])


@torch.library.custom_op(
    'pyg_topomask::attend_blocks_backward',
    mutates_args=(),
    schema='(Tensor grad, Tensor out, Tensor inverse, Tensor q, Tensor k, Tensor v, Tensor[] tensors, int[] learnable, '
    'str structure, Tensor batch, int num_graphs, int heads) -> Tensor[]',
)
def _attend_blocks_backward(
    grad: Tensor,
    out: Tensor,
    inverse: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    tensors: Sequence[Tensor],
    learnable: Sequence[int],
    structure: str,
    batch: Tensor,
    num_graphs: int,
    heads: int,
) -> list[Tensor]:
    mask, blocks = structure_from_key(structure), _Blocks(batch, num_graphs, heads, q.dtype)

    def rows_of(*changed: Tensor) -> Tensor:
        return blocks.rows(mask, replaced(tensors, learnable, changed))

    forward: Any = torch.func.vjp(rows_of, *(tensors[index] for index in learnable)) if learnable else (rows_of(), tuple)
    rows, pull = forward
    numerator, denominator = gradients_of_sums(grad, out, inverse)
    packed = torch.cat([q, k, with_ones(v), numerator, denominator.unsqueeze(-1)], dim=-1)
    found = packed.new_empty(q.size(0) + 1, q.size(1), 2 * q.size(2) + v.size(2))
    grad_rows = packed.new_zeros(q.size(0) + 1, q.size(1), rows.size(2)) if learnable else None
    for group in blocks.groups:
        widths = [q.size(2), q.size(2), v.size(2) + 1, v.size(2) + 1]
        query, key, value, gradient = group.take(packed).split(widths, dim=-1)
        gradient.masked_fill_(group.padding.unsqueeze(-1), 0.0)
        score, grad_weight = _pairs(query, key), _pairs(gradient, value)
        if grad_rows is not None:
            group.put(grad_rows, score * grad_weight)
        own = group.take(rows)[..., : group.width]
        grad_value = score.mul_(own).transpose(-1, -2) @ gradient[..., :-1]
        grad_weight.mul_(own)
        group.put(found, torch.cat([grad_weight @ key, grad_weight.transpose(-1, -2) @ query, grad_value], dim=-1))
    grads: list[Tensor] = []
    if grad_rows is not None:
        grad_rows = grad_rows[:-1]
        grads = list(pull(grad_rows.sum(1, keepdim=True) if heads == 1 else grad_rows))
    parts = found[:-1].split([q.size(2), q.size(2), v.size(2)], dim=-1)
    # Copies, also where a part is contiguous as it is: outputs of an operator share no memory.
    return [*(part.clone(memory_format=torch.contiguous_format) for part in parts), *grads]


@_attend_blocks_backward.register_fake
def _(
    grad: Tensor,
    out: Tensor,
    inverse: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    tensors: Sequence[Tensor],
    learnable: Sequence[int],
    structure: str,
    batch: Tensor,
    num_graphs: int,
    heads: int,
) -> list[Tensor]:
    return [tensor.new_empty(tensor.shape) for tensor in (q, k, v, *(tensors[index] for index in learnable))]


def _setup(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    q, k, v, tensors, structure, batch, num_graphs, heads = inputs
    ctx.save_for_backward(*output, q, k, v, batch, *tensors)
    ctx.structure, ctx.num_graphs, ctx.heads = structure, num_graphs, heads
    ctx.learnable = [index for index, tensor in enumerate(tensors) if tensor.requires_grad]


def _backward(ctx: Any, grad: Tensor, _: Tensor | None) -> tuple[Any, ...]:
    out, inverse, q, k, v, batch, *tensors = ctx.saved_tensors
    others = ctx.learnable, ctx.structure, batch, ctx.num_graphs, ctx.heads
    grads = _attend_blocks_backward(grad, out, inverse, q, k, v, tensors, *others)
    grad_tensors: list[Tensor | None] = [None] * len(tensors)
    for index, own in zip(ctx.learnable, grads[3:], strict=True):
        grad_tensors[index] = own
    return (*grads[:3], grad_tensors, None, None, None, None)


attend_blocks.register_autograd(_backward, setup_context=_setup)
