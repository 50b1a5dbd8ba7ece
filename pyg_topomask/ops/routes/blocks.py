r"""The blocks route: the mask multiplies unit vectors, which gives its block of each graph in a batch of small ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from pyg_topomask.ops.normalize import gradients_of_sums, inverse_weight, with_ones
from pyg_topomask.ops.sparse import sddmm, spmm
from pyg_topomask.sparse_pattern import SparsePattern
from pyg_topomask.structures import MaskStructure, replaced, structure_from_key

__all__ = ['attend_blocks']


class _Pairs:
    r"""All pairs of nodes of the same graph. A mask of :obj:`heads` heads that multiplies the units gives the rows of its
    blocks, :obj:`[N, heads, n]` for :math:`n` nodes in the largest graph; :obj:`slot` is where each pair is found in them.
    """

    def __init__(self, batch: Tensor, num_graphs: int, heads: int, dtype: torch.dtype) -> None:
        sizes = torch.bincount(batch, minlength=num_graphs)
        first, row_sizes = (sizes.cumsum(0) - sizes)[batch], sizes[batch]
        position = torch.arange(batch.numel(), device=batch.device) - first
        rowptr = torch.nn.functional.pad(row_sizes.cumsum(0), (1, 0))
        row = torch.arange(batch.numel(), device=batch.device).repeat_interleave(row_sizes)
        column = torch.arange(row.numel(), device=batch.device) - rowptr[row]
        col = first[row] + column
        mirrored = rowptr[col] + position[row]
        index = torch.int32 if row.numel() < 2**31 else torch.int64
        rowptr, col, mirrored = (tensor.to(index) for tensor in (rowptr, col, mirrored))
        self.pattern = SparsePattern(rowptr, col, rowptr, col, mirrored)
        self.width = int(sizes.max()) if batch.numel() > 0 else 1
        self.units = torch.nn.functional.one_hot(position, self.width).to(dtype).unsqueeze(1).expand(-1, heads, -1)
        self.slot = row * self.width + column

    def values(self, mask: MaskStructure, tensors: Sequence[Tensor]) -> Tensor:
        r"""Returns the entries of the mask at the pairs, :obj:`[heads, nnz]`."""
        return mask.apply(tensors, self.units).transpose(0, 1).flatten(1).index_select(1, self.slot)


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
    mask, pairs = structure_from_key(structure), _Pairs(batch, num_graphs, heads, q.dtype)
    weight = sddmm(pairs.pattern, q, k).mul_(pairs.values(mask, tensors))
    total = spmm(pairs.pattern, weight, with_ones(v))
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
    mask, pairs = structure_from_key(structure), _Pairs(batch, num_graphs, heads, q.dtype)
    numerator, denominator = gradients_of_sums(grad, out, inverse)

    def values(*changed: Tensor) -> Tensor:
        return pairs.values(mask, replaced(tensors, learnable, changed))

    forward: Any = torch.func.vjp(values, *(tensors[index] for index in learnable)) if learnable else (values(), tuple)
    value, pull = forward
    score = sddmm(pairs.pattern, q, k)
    grad_weight = sddmm(pairs.pattern, torch.cat([numerator, denominator.unsqueeze(-1)], dim=-1), with_ones(v))
    grad_value = score * grad_weight
    grads: list[Tensor] = list(pull(grad_value.sum(0, keepdim=True) if heads == 1 else grad_value)) if learnable else []
    grad_v = spmm(pairs.pattern, score.mul_(value), numerator, transpose=True)
    grad_weight.mul_(value)
    grad_q = spmm(pairs.pattern, grad_weight, k)
    grad_k = spmm(pairs.pattern, grad_weight, q, transpose=True)
    return [grad_q, grad_k, grad_v, *grads]


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
