r"""Attention on a large graph whose nodes get other numbers, by which neighbors are near in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks import Mask
from pyg_topomask.utils.functorch import LoopedFunction


def on_near_graph(
    graph: Graph,
    mask: Mask,
    generator: torch.Generator | None,
    attend: Callable[..., Tensor],
    *features: Tensor,
) -> Tensor:
    r"""Returns :obj:`attend(operator, *features)` for the operator of a mask and features of the nodes, in rows. If
    :meth:`~pyg_topomask.graphs.Graph.near` has a graph for it, rows are permuted there and back.
    """
    near = graph.near(mask, generator)
    if near is None:
        return attend(mask(graph, generator), *features)
    inside = (_Permuted.apply(x, near.order, near.place) for x in features)
    return _Permuted.apply(attend(mask(near), *inside), near.place, near.order)


class _Permuted(LoopedFunction):
    r"""Permutes rows. The gradient takes the inverse permutation, which is faster than adding to rows."""

    @staticmethod
    def forward(x: Tensor, order: Tensor, place: Tensor) -> Tensor:
        return x.index_select(0, order)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        _, *permutations = inputs
        ctx.save_for_backward(*permutations)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        order, place = ctx.saved_tensors
        return _Permuted.apply(grads[0], place, order), None, None
