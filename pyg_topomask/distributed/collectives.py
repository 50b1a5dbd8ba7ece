r"""Communication between the processes of a graph, with gradients.

Each function is a linear map of what the processes hold. Its backward pass is the transposed map, which sends the gradients in
the opposite direction. All processes call the same functions in the same order.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from pyg_topomask.distributed.communication import Processes

Map = Callable[..., tuple[Tensor, ...]]


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(multiply: Map, transpose: Map, *tensors: Tensor) -> tuple[Tensor, ...]:
        return multiply(*tensors)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        ctx.multiply, ctx.transpose, *_ = inputs

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        return None, None, *_Linear.apply(ctx.transpose, ctx.multiply, *grads)


def linear(multiply: Map, transpose: Map, *tensors: Tensor) -> tuple[Tensor, ...]:
    r"""Returns the tensors that a linear map makes of some, given the transposed map as well. Differentiable."""
    return _Linear.apply(multiply, transpose, *tensors)


def sum_over_processes(x: Tensor, group: Processes) -> Tensor:
    r"""Returns the sum over the processes. Differentiable. The backward pass sums the gradients over the processes."""

    def total(x: Tensor) -> tuple[Tensor]:
        return (group.sum(x),)

    return linear(total, total, x)[0]


def sum_before(x: Tensor, group: Processes, after: bool = False) -> Tensor:
    r"""Returns the sum over the processes before this one, or after it. Differentiable."""

    def total(after: bool, x: Tensor) -> tuple[Tensor]:
        parts = group.stack(x)
        return ((parts[group.rank + 1 :] if after else parts[: group.rank]).sum(0),)

    return linear(partial(total, after), partial(total, not after), x)[0]


def all_rows(x: Tensor, group: Processes, sizes: tuple[int, ...]) -> Tensor:
    r"""Returns all rows of some columns, :obj:`[N, H, ceil(c / P)]`, given some rows of all columns, :obj:`[n, H, c]`, and the
    numbers of rows of all processes. Each process gets other columns. Columns are padded by zeros. Differentiable.
    """
    return linear(partial(_all_rows, group, sizes), partial(_some_rows, group, sizes, x.size(2)), x)[0]


def some_rows(x: Tensor, group: Processes, sizes: tuple[int, ...], columns: int) -> Tensor:
    r"""Returns some rows of all columns. This is the inverse of :func:`all_rows`. Differentiable."""
    return linear(partial(_some_rows, group, sizes, columns), partial(_all_rows, group, sizes), x)[0]


def _all_rows(group: Processes, sizes: tuple[int, ...], x: Tensor) -> tuple[Tensor]:
    width = -(-x.size(2) // group.size)
    padded = torch.nn.functional.pad(x, (0, width * group.size - x.size(2)))
    return (group.exchange(torch.cat(padded.split(width, dim=2)), [x.size(0)] * group.size, sizes),)


def _some_rows(group: Processes, sizes: tuple[int, ...], columns: int, x: Tensor) -> tuple[Tensor]:
    own = sizes[group.rank]
    blocks = group.exchange(x, sizes, [own] * group.size)
    return (torch.cat(blocks.split(own), dim=2)[..., :columns],)
