r"""The custom operators of attention, each a single node for torch.compile, and what their second derivatives are made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from pyg_topomask.graphs.segments import Segments
from pyg_topomask.graphs.sparse_pattern import SparsePattern
from pyg_topomask.operators.base import MaskOperator
from pyg_topomask.operators.description import build
from pyg_topomask.operators.sparse_matmul import sddmm, spmm
from pyg_topomask.ops.normalize import quotient_unless, with_ones
from pyg_topomask.utils.functorch import gradients, outside_transforms, transformable, transforms_in_operator

_SCHEMA = 'Tensor q, Tensor k, Tensor v, Tensor[] tensors, Tensor[] constants, str text, int heads'


class AttentionInputs(NamedTuple):
    r"""Queries and keys, :obj:`[N, H, m]`, values, :obj:`[N, H, d]`, the tensors of the mask, constants without gradients, such
    as the positions of entries, what describes the mask beside them, and its number of heads, 1 if all heads share it.
    """

    q: Tensor
    k: Tensor
    v: Tensor
    tensors: Sequence[Tensor]
    constants: Sequence[Tensor]
    text: str = ''
    heads: int = 1

    def mask(self, learnable: Sequence[int] = (), learned: Sequence[Tensor] = ()) -> MaskOperator:
        r"""Returns the mask, with other tensors in some places."""
        return build(self.text, replaced(self.tensors, learnable, learned))


def replaced(tensors: Sequence[Tensor], indices: Sequence[int], replacements: Sequence[Tensor]) -> list[Tensor]:
    r"""Returns the tensors with some of them replaced, to differentiate a product with respect to these."""
    merged = list(tensors)
    for index, replacement in zip(indices, replacements, strict=True):
        merged[index] = replacement
    return merged


Forward = Callable[[AttentionInputs], tuple[Tensor, Tensor]]
Backward = Callable[
    [tuple[Tensor, Tensor | None], tuple[Tensor, Tensor], AttentionInputs, Sequence[int]],
    list[Tensor],
]
Plain = Callable[[AttentionInputs, Tensor], tuple[Tensor, Tensor]]


def attention_op(
    name: str,
    forward: Forward,
    backward: Backward,
    plain: Plain,
    second: Callable[[AttentionInputs], tuple[int, ...]] = lambda inputs: inputs.q.shape[:2],
) -> Callable[..., tuple[Tensor, Tensor]]:
    r"""Registers the forward and the backward pass of attention as custom operators. Returns a function that takes the fields
    of :class:`AttentionInputs`, and works under the transforms of ``torch.func``.

    First derivatives use :obj:`backward`. Second and higher derivatives differentiate :obj:`plain`.

    Args:
        name (str): The name of the operator in :obj:`torch.ops.pyg_topomask`.
        forward (callable): Takes the inputs. Returns the output, :obj:`[N, H, d]`, and a second tensor for the backward pass.
        backward (callable): Takes the gradients of the two outputs, the outputs, the inputs, and which tensors of the mask are
            learned, by position. Returns the gradients of :obj:`q`, :obj:`k`, :obj:`v` and these tensors, each in
            separate memory. The gradient of the second output is :obj:`None` if nothing depends on it.
        plain (callable): Takes the inputs and the second output. Returns both outputs, by operations that autograd
            differentiates.
        second (callable): Returns the shape of the second output. (default: :obj:`[N, H]`)
    """

    def run(*arguments: Any) -> tuple[Tensor, Tensor]:
        return forward(AttentionInputs(*arguments))

    def run_backward(
        grad: Tensor, grad_second: Tensor | None, out: Tensor, kept: Tensor, learnable: Sequence[int], *arguments: Any
    ) -> list[Tensor]:
        # Under create_graph=True, autograd would otherwise follow what is differentiated within.
        with torch.no_grad(), torch.autocast(grad.device.type, enabled=False), transforms_in_operator():
            grads = backward((grad, grad_second), (out, kept), AttentionInputs(*arguments), learnable)
            return [each.contiguous() for each in grads]  # as compiled code expects

    qualified = f'pyg_topomask::{name}'
    op = torch.library.custom_op(qualified, run, mutates_args=(), schema=f'({_SCHEMA}) -> (Tensor, Tensor)')
    op_backward = torch.library.custom_op(
        f'{qualified}_backward',
        run_backward,
        mutates_args=(),
        schema=f'(Tensor grad, Tensor? grad_second, Tensor out, Tensor kept, int[] learnable, {_SCHEMA}) -> Tensor[]',
    )

    @op.register_fake
    def _(*arguments: Any) -> tuple[Tensor, Tensor]:
        inputs = AttentionInputs(*arguments)
        return inputs.v.new_empty(inputs.v.shape), inputs.q.new_empty(second(inputs))

    @op_backward.register_fake
    def _(
        grad: Tensor, grad_second: Tensor | None, out: Tensor, kept: Tensor, learnable: Sequence[int], *arguments: Any
    ) -> list[Tensor]:
        inputs = AttentionInputs(*arguments)
        learned = (inputs.tensors[index] for index in learnable)
        return [tensor.new_empty(tensor.shape) for tensor in (inputs.q, inputs.k, inputs.v, *learned)]

    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        q, k, v, tensors, constants, ctx.text, ctx.heads = inputs
        ctx.save_for_backward(*output, q, k, v, *tensors, *constants)
        ctx.num_tensors, ctx.num_constants = len(tensors), len(constants)
        ctx.learnable = [index for index, tensor in enumerate(tensors) if tensor.requires_grad]

    def differentiate(ctx: Any, grad: Tensor | None, grad_second: Tensor | None) -> tuple[Any, ...]:
        out, kept, *inputs = ctx.saved_tensors
        grad = torch.zeros_like(out) if grad is None else grad
        grads = differentiated(grad, grad_second, out, kept, ctx.learnable, *_arguments(ctx, inputs))
        return _of_arguments(ctx, grads)

    def setup_second_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        grad, grad_second, _, kept, ctx.learnable, *arguments = inputs
        q, k, v, tensors, constants, ctx.text, ctx.heads = arguments
        ctx.save_for_backward(grad, grad_second, kept, q, k, v, *tensors, *constants)
        ctx.num_tensors, ctx.num_constants = len(tensors), len(constants)

    def differentiate_again(ctx: Any, *upstream: Any) -> tuple[Any, ...]:
        grad, grad_second, kept, *inputs = ctx.saved_tensors
        arguments = AttentionInputs(*_arguments(ctx, inputs))

        def attend(q: Tensor, k: Tensor, v: Tensor, *learned: Tensor) -> tuple[Tensor, Tensor]:
            tensors = replaced(arguments.tensors, ctx.learnable, learned)
            return plain(AttentionInputs(q, k, v, tensors, *arguments[4:]), kept)

        def first(grad: Tensor, grad_second: Tensor, *inputs: Tensor) -> tuple[Tensor, ...]:
            return gradients(attend, (grad, grad_second), *inputs)

        of_second = torch.zeros_like(kept) if grad_second is None else grad_second
        inputs = [*arguments[:3], *(arguments.tensors[index] for index in ctx.learnable)]
        grads: Sequence[Tensor | None] = upstream[0] if isinstance(upstream[0], (list, tuple)) else upstream
        given = [torch.zeros_like(x) if grad is None else grad for grad, x in zip(grads, inputs, strict=True)]
        again = gradients(first, given, grad, of_second, *inputs)
        # What depends on the outputs depends on the inputs, through which it is differentiated.
        of_learnable = None if ctx.learnable else list[None]()  # an empty list counts as one of tensors
        return again[0], None if grad_second is None else again[1], None, None, of_learnable, *_of_arguments(ctx, again[2:])

    op.register_autograd(differentiate, setup_context=setup_context)
    op_backward.register_autograd(differentiate_again, setup_context=setup_second_context)
    differentiated = transformable(op_backward, setup_second_context, differentiate_again)
    attended = transformable(op, setup_context, differentiate)

    def attend(*arguments: Any) -> tuple[Tensor, Tensor]:
        return attended(*AttentionInputs(*arguments))

    return attend


def _arguments(ctx: Any, inputs: Sequence[Tensor]) -> tuple[Any, ...]:
    r"""Returns the arguments of the operator from the tensors that were saved."""
    q, k, v, *rest = inputs
    return q, k, v, rest[: ctx.num_tensors], rest[ctx.num_tensors :], ctx.text, ctx.heads


def _of_arguments(ctx: Any, grads: Sequence[Tensor]) -> tuple[Any, ...]:
    r"""Returns the gradients of all arguments of the operator from those of q, k, v and what is learned."""
    of_tensors: list[Tensor | None] = [None] * ctx.num_tensors
    for index, learned in zip(ctx.learnable, grads[3:], strict=True):
        of_tensors[index] = learned
    return (*grads[:3], of_tensors, [None] * ctx.num_constants, None, None)


def outputs_of_sums(total: Tensor, inverse: Tensor) -> tuple[Tensor, Tensor]:
    r"""Returns the outputs of an attention operator from numerators and denominators, :obj:`[N, H, d + 1]`, and the inverse
    denominators, 0 for zero rows, :obj:`[N, H]`.
    """
    return quotient_unless((inverse == 0).unsqueeze(-1), total[..., :-1], total[..., -1:]), inverse


def attend_at(pattern: SparsePattern, mask: Tensor, inputs: AttentionInputs, inverse: Tensor) -> tuple[Tensor, Tensor]:
    r"""Masked linear attention with a mask of given entries, :obj:`[H or 1, nnz]`."""
    weight = sddmm(pattern, inputs.q, inputs.k) * mask
    return outputs_of_sums(spmm(pattern, weight, with_ones(inputs.v)), inverse)


@outside_transforms
def all_pairs(segments: Segments) -> tuple[SparsePattern, Tensor]:
    r"""Returns the pattern of all pairs of nodes of the same graph, by row, and the position of the second node in its graph,
    :obj:`[num_pairs]`.
    """
    count = segments.sizes[segments.index]
    row = torch.arange(segments.num_nodes, device=count.device).repeat_interleave(count)
    position = torch.arange(row.numel(), device=count.device) - (count.cumsum(0) - count)[row]
    size = segments.num_nodes
    return SparsePattern.from_sorted(row, segments.first[row] + position, size, size), position
