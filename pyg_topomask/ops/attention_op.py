r"""The custom operators of attention. To torch.compile each is one node, whatever loops and products it takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor

_INPUTS = 'Tensor q, Tensor k, Tensor v, Tensor[] tensors, Tensor[] constants, str structure, int heads'


class Forward(Protocol):
    def __call__(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        tensors: Sequence[Tensor],
        constants: Sequence[Tensor],
        structure: str,
        heads: int,
    ) -> tuple[Tensor, Tensor]: ...


class Backward(Protocol):
    def __call__(
        self,
        grads: tuple[Tensor, Tensor | None],
        outputs: tuple[Tensor, Tensor],
        q: Tensor,
        k: Tensor,
        v: Tensor,
        tensors: Sequence[Tensor],
        constants: Sequence[Tensor],
        structure: str,
        heads: int,
        learnable: Sequence[int],
    ) -> list[Tensor]: ...


def attention_op(
    name: str,
    forward: Forward,
    backward: Backward,
    second: Callable[[Tensor, Sequence[Tensor]], tuple[int, ...]] = lambda q, tensors: q.shape[:2],
) -> Callable[..., tuple[Tensor, Tensor]]:
    r"""Registers the forward and the backward pass of attention as custom operators.

    Both are given queries and keys :obj:`[N, H, m]`, values :obj:`[N, H, d]`, the tensors of the mask, constants without
    gradient, the key of the mask's structure, and the number of heads of the mask, :obj:`1` where all share it.

    Args:
        name (str): The name of the operator in :obj:`torch.ops.pyg_topomask`.
        forward (callable): Returns the output, :obj:`[N, H, d]`, and a second tensor that the backward pass reads.
        backward (callable): Returns the gradients of :obj:`q`, :obj:`k`, :obj:`v`, and of those tensors of the mask whose
            positions are :obj:`learnable`, each in memory of its own. The gradient of the second output is :obj:`None` where
            nothing depends on it.
        second (callable): Returns the shape of the second output. (default: :obj:`[N, H]`)
    """

    def run_backward(
        grad: Tensor,
        grad_second: Tensor | None,
        out: Tensor,
        kept: Tensor,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        tensors: Sequence[Tensor],
        constants: Sequence[Tensor],
        structure: str,
        heads: int,
        learnable: Sequence[int],
    ) -> list[Tensor]:
        return backward((grad, grad_second), (out, kept), q, k, v, tensors, constants, structure, heads, learnable)

    qualified = f'pyg_topomask::{name}'
    op = torch.library.custom_op(qualified, forward, mutates_args=(), schema=f'({_INPUTS}) -> (Tensor, Tensor)')
    op_backward = torch.library.custom_op(
        f'{qualified}_backward',
        run_backward,
        mutates_args=(),
        schema=f'(Tensor grad, Tensor? grad_second, Tensor out, Tensor kept, {_INPUTS}, *, int[] learnable) -> Tensor[]',
    )

    @op.register_fake
    def _(
        q: Tensor, k: Tensor, v: Tensor, tensors: Sequence[Tensor], constants: Sequence[Tensor], structure: str, heads: int
    ) -> tuple[Tensor, Tensor]:
        return v.new_empty(v.shape), q.new_empty(second(q, tensors))

    @op_backward.register_fake
    def _(
        grad: Tensor,
        grad_second: Tensor | None,
        out: Tensor,
        kept: Tensor,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        tensors: Sequence[Tensor],
        constants: Sequence[Tensor],
        structure: str,
        heads: int,
        learnable: Sequence[int],
    ) -> list[Tensor]:
        return [tensor.new_empty(tensor.shape) for tensor in (q, k, v, *(tensors[index] for index in learnable))]

    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        q, k, v, tensors, constants, ctx.structure, ctx.heads = inputs
        ctx.save_for_backward(*output, q, k, v, *tensors, *constants)
        ctx.num_tensors, ctx.num_constants = len(tensors), len(constants)
        ctx.learnable = [index for index, tensor in enumerate(tensors) if tensor.requires_grad]

    def differentiate(ctx: Any, grad: Tensor | None, grad_second: Tensor | None) -> tuple[Any, ...]:
        out, kept, q, k, v, *rest = ctx.saved_tensors
        tensors, constants = rest[: ctx.num_tensors], rest[ctx.num_tensors :]
        grad = torch.zeros_like(out) if grad is None else grad
        static = {'structure': ctx.structure, 'heads': ctx.heads, 'learnable': ctx.learnable}
        grads = op_backward(grad, grad_second, out, kept, q, k, v, tensors, constants, **static)
        grad_tensors: list[Tensor | None] = [None] * ctx.num_tensors
        for index, learned in zip(ctx.learnable, grads[3:], strict=True):
            grad_tensors[index] = learned
        return (*grads[:3], grad_tensors, [None] * ctx.num_constants, None, None)

    op.register_autograd(differentiate, setup_context=setup_context)

    def attend(
        q: Tensor,
        k: Tensor,
        v: Tensor,
        tensors: Sequence[Tensor],
        constants: Sequence[Tensor],
        structure: str = '',
        heads: int = 1,
    ) -> tuple[Tensor, Tensor]:
        results: tuple[Tensor, Tensor] = op(q, k, v, tensors, constants, structure, heads)
        return results

    return attend
