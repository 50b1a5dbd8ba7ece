r"""Products with a sparse matrix whose values differ between heads, and their gradients, which are again such products."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from pyg_topomask.graphs.sparse_pattern import SparsePattern
from pyg_topomask.utils.functorch import LoopedFunction, is_exporting, keep_inputs

warnings.filterwarnings('ignore', message='Sparse CSR tensor support is in beta state', category=UserWarning)


def spmm(pattern: SparsePattern, value: Tensor, x: Tensor, transpose: bool = False) -> Tensor:
    r"""Sparse matrix times dense matrix, per head: :math:`\mathbf{y}_i = \sum_j s_{ij} \mathbf{x}_j`, for entries :obj:`[H,
    nnz]` or :obj:`[1, nnz]` at the pattern, and :obj:`x` of shape :obj:`[num_cols, H, c]`. Differentiable in both.
    """
    if is_exporting():
        return _exported_spmm(value, x, transpose, list(pattern.tensors))
    return _SpMM.apply(value, x, transpose, *pattern.tensors)


def sddmm(pattern: SparsePattern, a: Tensor, b: Tensor) -> Tensor:
    r"""Sampled dense-dense product, per head: :math:`s_{ij} = \mathbf{a}_i^{\top} \mathbf{b}_j` at the entries of the pattern,
    :obj:`[H, nnz]`, for factors :obj:`[num_rows, H, c]` and :obj:`[num_cols, H, c]`. Differentiable in both.
    """
    return _SDDMM.apply(a, b, *pattern.tensors)


def multiply(rowptr: Tensor, col: Tensor, value: Tensor, x: Tensor, out: Tensor | None = None) -> Tensor:
    r"""Multiplies one CSR matrix of values :obj:`[nnz]` with :obj:`x` of shape :obj:`[num_cols, c]`. Not differentiable."""
    num_rows = rowptr.numel() - 1
    if out is None:
        out = x.new_empty(num_rows, x.size(1))
    if col.numel() == 0 or out.numel() == 0:
        return out.zero_()
    matrix = torch.sparse_csr_tensor(rowptr, col, value, (num_rows, x.size(0)), check_invariants=False)
    return product(matrix, x, out)


def product(matrix: Tensor, x: Tensor, out: Tensor) -> Tensor:
    r"""Writes the product of a CSR tensor with a dense matrix to :obj:`out`, whatever that holds. Not differentiable."""
    if x.device.type != 'cpu' or not torch.backends.mkl.is_available():
        return torch.mm(matrix, x, out=out)
    if x.size(1) == 1:  # in two thirds of the time
        torch.mv(matrix, x[:, 0], out=out[:, 0])
        return out
    return out.addmm_(matrix, x, beta=0.0)  # torch.mm makes a matrix of zeros first, and copies it


def sample(rowptr: Tensor, col: Tensor, a: Tensor, b: Tensor) -> Tensor:
    r"""Returns the entries of :math:`\mathbf{A} \mathbf{B}^{\top}` at CSR positions, :obj:`[nnz]`. Not differentiable."""
    value = a.new_zeros(col.numel())
    if col.numel() == 0 or a.size(1) == 0:
        return value
    matrix = torch.sparse_csr_tensor(rowptr, col, value, (a.size(0), b.size(0)), check_invariants=False)
    torch.sparse.sampled_addmm(matrix, a, b.t(), beta=0.0, out=matrix)
    return value


class _SpMM(LoopedFunction):
    @staticmethod
    def forward(value: Tensor, x: Tensor, transpose: bool, *pattern: Tensor) -> Tensor:
        matrix = SparsePattern(*pattern)
        rowptr, col = (matrix.rowptr_t, matrix.col_t) if transpose else (matrix.rowptr, matrix.col)
        value = value.index_select(1, matrix.perm_t) if transpose else value
        out = x.new_empty(rowptr.numel() - 1, x.size(1), x.size(2))
        # Head by head: narrow blocks stay in cache, and one head's values make one CSR matrix.
        for head in range(x.size(1)):
            multiply(rowptr, col, value[head if value.size(0) > 1 else 0], x[:, head], out[:, head])
        return out

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        value, x, ctx.transpose, *pattern = inputs
        ctx.save_for_backward(value, x, *pattern)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        value, x, *tensors = ctx.saved_tensors
        pattern, (grad,) = SparsePattern(*tensors), grads
        grad_value = grad_x = None
        if ctx.needs_input_grad[0]:
            grad_value = sddmm(pattern, x, grad) if ctx.transpose else sddmm(pattern, grad, x)
            if value.size(0) == 1:
                grad_value = grad_value.sum(0, keepdim=True)
        if ctx.needs_input_grad[1]:
            grad_x = spmm(pattern, value, grad, not ctx.transpose)
        return (grad_value, grad_x, None) + (None,) * len(tensors)


# A custom operator, because torch.export reads no CSR tensors.
@torch.library.custom_op(
    'pyg_topomask::spmm', mutates_args=(), schema='(Tensor value, Tensor x, bool transpose, Tensor[] pattern) -> Tensor'
)
def _exported_spmm(value: Tensor, x: Tensor, transpose: bool, pattern: Sequence[Tensor]) -> Tensor:
    return _SpMM.forward(value, x, transpose, *pattern)


@_exported_spmm.register_fake
def _(value: Tensor, x: Tensor, transpose: bool, pattern: Sequence[Tensor]) -> Tensor:
    matrix = SparsePattern(*pattern)
    rowptr = matrix.rowptr_t if transpose else matrix.rowptr
    return x.new_empty(rowptr.numel() - 1, x.size(1), x.size(2))


def _set_up(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    value, x, transpose, pattern = inputs
    _SpMM.setup_context(ctx, (value, x, transpose, *pattern), output)


def _backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    grad_value, grad_x, _, *of_pattern = _SpMM.backward(ctx, grad)
    return grad_value, grad_x, None, of_pattern


_exported_spmm.register_autograd(_backward, setup_context=_set_up)


class _SDDMM(LoopedFunction):
    @staticmethod
    def forward(a: Tensor, b: Tensor, *pattern: Tensor) -> Tensor:
        rowptr, col, *_ = pattern
        heads = [sample(rowptr, col, a[:, head], b[:, head]) for head in range(a.size(1))]
        return torch.stack(heads) if heads else a.new_empty(0, col.numel())

    setup_context = staticmethod(keep_inputs)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        a, b, *tensors = ctx.saved_tensors
        pattern, (grad,) = SparsePattern(*tensors), grads
        grad_a = spmm(pattern, grad, b) if ctx.needs_input_grad[0] else None
        grad_b = spmm(pattern, grad, a, transpose=True) if ctx.needs_input_grad[1] else None
        return (grad_a, grad_b) + (None,) * len(tensors)
