r"""Sums of loads, weighted by learned coefficients, as an operator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from pyg_topomask.graphs.sparse_pattern import SparsePattern
from pyg_topomask.operators.sparse_matmul import multiply
from pyg_topomask.utils.functorch import transformable


def combine_loads(pattern: SparsePattern, load: Tensor, coefficients: Tensor) -> Tensor:
    r"""Sums loads, weighted by the coefficients of their kinds, :obj:`[H, kinds]`, for all heads in one product."""
    return _combined_loads(coefficients.contiguous(), load, False, list(pattern.tensors))


# A custom operator, because torch.compile does not trace sparse tensors.
@torch.library.custom_op(
    'pyg_topomask::combine_loads',
    mutates_args=(),
    schema='(Tensor coefficients, Tensor load, bool transpose, Tensor[] pattern) -> Tensor',
)
def _combine_loads(coefficients: Tensor, load: Tensor, transpose: bool, pattern: Sequence[Tensor]) -> Tensor:
    loads = SparsePattern(*pattern)
    rowptr, col = (loads.rowptr_t, loads.col_t) if transpose else (loads.rowptr, loads.col)
    out = coefficients.new_empty(coefficients.size(0), rowptr.numel() - 1)
    # Heads are contiguous columns of the product, so nothing is permuted before or after.
    multiply(rowptr, col, load.index_select(0, loads.perm_t) if transpose else load, coefficients.t(), out=out.t())
    return out


@_combine_loads.register_fake
def _(coefficients: Tensor, load: Tensor, transpose: bool, pattern: Sequence[Tensor]) -> Tensor:
    num_rows = pattern[2 if transpose else 0].shape[0] - 1
    return coefficients.new_empty(coefficients.shape[0], num_rows)


def _setup(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    _, load, ctx.transpose, pattern = inputs
    ctx.save_for_backward(load, *pattern)


def _backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    load, *pattern = ctx.saved_tensors
    return _combined_loads(grad.contiguous(), load, not ctx.transpose, pattern), None, None, [None] * len(pattern)


_combine_loads.register_autograd(_backward, setup_context=_setup)
_combined_loads = transformable(_combine_loads, _setup, _backward)
