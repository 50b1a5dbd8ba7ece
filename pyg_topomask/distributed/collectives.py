r"""Communication between the processes of a graph, with gradients.

The backward pass of a function sends the gradients in the opposite direction. All processes call the same functions in the same
order.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pyg_topomask.distributed.communication import Processes


class _Sum(torch.autograd.Function):
    @staticmethod
    def forward(x: Tensor, group: Processes) -> Tensor:
        return group.sum(x)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        _, ctx.group = inputs

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        return _Sum.apply(grads[0], ctx.group), None


def sum_over_processes(x: Tensor, group: Processes) -> Tensor:
    r"""Returns the sum over the processes. Differentiable. The backward pass sums the gradients over the processes."""
    return _Sum.apply(x, group)


class _Before(torch.autograd.Function):
    @staticmethod
    def forward(x: Tensor, group: Processes, after: bool) -> Tensor:
        parts = group.stack(x)
        return (parts[group.rank + 1 :] if after else parts[: group.rank]).sum(0)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        _, ctx.group, ctx.after = inputs

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        return _Before.apply(grads[0], ctx.group, not ctx.after), None, None


def sum_before(x: Tensor, group: Processes, after: bool = False) -> Tensor:
    r"""Returns the sum over the processes before this one, or after it. Differentiable."""
    return _Before.apply(x, group, after)


class _Columns(torch.autograd.Function):
    @staticmethod
    def forward(x: Tensor, group: Processes, sizes: tuple[int, ...], back: bool) -> Tensor:
        if back:
            width = x.size(2)
            blocks = group.exchange(x, sizes, [sizes[group.rank]] * group.size)
            return torch.cat(blocks.split(sizes[group.rank]), dim=2) if group.size > 1 else blocks.view(-1, x.size(1), width)
        width = -(-x.size(2) // group.size)
        padded = torch.nn.functional.pad(x, (0, width * group.size - x.size(2)))
        return group.exchange(torch.cat(padded.split(width, dim=2)), [x.size(0)] * group.size, sizes)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        x, ctx.group, ctx.sizes, ctx.back = inputs
        ctx.width = x.size(2)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        grad = _Columns.apply(grads[0], ctx.group, ctx.sizes, not ctx.back)
        return grad[..., : ctx.width], None, None, None


def all_rows(x: Tensor, group: Processes, sizes: tuple[int, ...]) -> Tensor:
    r"""Returns all rows of some columns, :obj:`[N, H, ceil(c / P)]`, given some rows of all columns, :obj:`[n, H, c]`, and the
    numbers of rows of all processes. Each process gets other columns. Columns are padded by zeros. Differentiable.
    """
    return _Columns.apply(x, group, sizes, False)


def some_rows(x: Tensor, group: Processes, sizes: tuple[int, ...], columns: int) -> Tensor:
    r"""Returns some rows of all columns. This is the inverse of :func:`all_rows`. Differentiable."""
    result: Tensor = _Columns.apply(x, group, sizes, True)
    return result[..., :columns]
