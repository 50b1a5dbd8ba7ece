r"""The custom operators of attention. Each is a single node for torch.compile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

_SCHEMA = 'Tensor q, Tensor k, Tensor v, Tensor[] tensors, Tensor[] constants, str structure, int heads'


class AttentionInputs(NamedTuple):
    r"""The inputs of an attention operator.

    Args:
        q (torch.Tensor): Queries, :obj:`[N, H, m]`.
        k (torch.Tensor): Keys, :obj:`[N, H, m]`.
        v (torch.Tensor): Values, :obj:`[N, H, d]`.
        tensors (sequence of torch.Tensor): The tensors of the mask.
        constants (sequence of torch.Tensor): Tensors without gradients, such as the positions of entries.
        structure (str): The key of the mask's structure. (default: :obj:`""`)
        heads (int): The number of heads of the mask, :obj:`1` if all heads share it. (default: :obj:`1`)
    """

    q: Tensor
    k: Tensor
    v: Tensor
    tensors: Sequence[Tensor]
    constants: Sequence[Tensor]
    structure: str = ''
    heads: int = 1


Forward = Callable[[AttentionInputs], tuple[Tensor, Tensor]]
Backward = Callable[
    [tuple[Tensor, Tensor | None], tuple[Tensor, Tensor], AttentionInputs, Sequence[int]],
    list[Tensor],
]


def attention_op(
    name: str,
    forward: Forward,
    backward: Backward,
    second: Callable[[AttentionInputs], tuple[int, ...]] = lambda inputs: inputs.q.shape[:2],
) -> Callable[..., tuple[Tensor, Tensor]]:
    r"""Registers the forward and the backward pass of attention as custom operators. Returns a function that takes the fields
    of :class:`AttentionInputs`.

    Args:
        name (str): The name of the operator in :obj:`torch.ops.pyg_topomask`.
        forward (callable): Takes the inputs. Returns the output, :obj:`[N, H, d]`, and a second tensor for the backward pass.
        backward (callable): Takes the gradients of the two outputs, the outputs, the inputs, and which tensors of the mask are
            learned, by position. Returns the gradients of :obj:`q`, :obj:`k`, :obj:`v` and these tensors, each in
            separate memory. The gradient of the second output is :obj:`None` if nothing depends on it.
        second (callable): Returns the shape of the second output. (default: :obj:`[N, H]`)
    """

    def run(*arguments: Any) -> tuple[Tensor, Tensor]:
        return forward(AttentionInputs(*arguments))

    def run_backward(
        grad: Tensor, grad_second: Tensor | None, out: Tensor, kept: Tensor, learnable: Sequence[int], *arguments: Any
    ) -> list[Tensor]:
        return backward((grad, grad_second), (out, kept), AttentionInputs(*arguments), learnable)

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
        q, k, v, tensors, constants, ctx.structure, ctx.heads = inputs
        ctx.save_for_backward(*output, q, k, v, *tensors, *constants)
        ctx.num_tensors, ctx.num_constants = len(tensors), len(constants)
        ctx.learnable = [index for index, tensor in enumerate(tensors) if tensor.requires_grad]

    def differentiate(ctx: Any, grad: Tensor | None, grad_second: Tensor | None) -> tuple[Any, ...]:
        out, kept, q, k, v, *rest = ctx.saved_tensors
        tensors, constants = rest[: ctx.num_tensors], rest[ctx.num_tensors :]
        grad = torch.zeros_like(out) if grad is None else grad
        inputs = (q, k, v, tensors, constants, ctx.structure, ctx.heads)
        grads = op_backward(grad, grad_second, out, kept, ctx.learnable, *inputs)
        grad_tensors: list[Tensor | None] = [None] * ctx.num_tensors
        for index, learned in zip(ctx.learnable, grads[3:], strict=True):
            grad_tensors[index] = learned
        return (*grads[:3], grad_tensors, [None] * ctx.num_constants, None, None)

    op.register_autograd(differentiate, setup_context=setup_context)

    def attend(*arguments: Any) -> tuple[Tensor, Tensor]:
        results: tuple[Tensor, Tensor] = op(*AttentionInputs(*arguments))
        return results

    return attend
