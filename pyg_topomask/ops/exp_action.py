r"""The action of matrix exponentials on dense blocks, by polynomials in a sparse matrix."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from pyg_topomask.ops.sparse import spmm
from pyg_topomask.sparse_pattern import SparsePattern
from pyg_topomask.structures import MaskStructure

__all__ = ['ExpActionStructure', 'chebyshev_coefficients', 'exp_action', 'taylor_coefficients']

# Returns alpha * B u + beta * w for the sparse matrix B.
Step = Callable[[float, Tensor, float, Tensor], Tensor]


def chebyshev_coefficients(z: Tensor, tolerance: float) -> Tensor:
    r"""Returns the coefficients of :math:`\exp(z (t - 1)) = \sum_k c_k T_k(t)` on :math:`-1 \le t \le 1`, as many as the
    tolerance needs; about :math:`\sqrt{2 z \log(1 / \epsilon)}` for large :math:`z`. Differentiable.

    Args:
        z (torch.Tensor): :math:`z \ge 0`, :obj:`[H]`.
        tolerance (float): The largest error :math:`\epsilon` anywhere in the interval, from about :obj:`1e-15`.

    Returns:
        torch.Tensor: :obj:`[H, K + 1]`, in float64.

    Example:
        >>> chebyshev_coefficients(torch.tensor([1.0]), tolerance=0.1)
        tensor([[0.4658, 0.4158, 0.0999, 0.0163]], dtype=torch.float64)
    """
    z, digits = z.double(), math.log(4 / tolerance)
    degree = math.ceil(2 * math.sqrt((float(z.detach().max()) + digits) * digits))
    angle = torch.arange(2 * degree, device=z.device, dtype=z.dtype) * (math.pi / degree)
    series: Tensor = torch.fft.rfft((z.unsqueeze(1) * (angle.cos() - 1)).exp()).real / degree
    series = torch.cat([series[:, :1] / 2, series[:, 1:]], dim=1)
    return _cut(series, tolerance)


def taylor_coefficients(z: Tensor, tolerance: float) -> Tensor:
    r"""Returns the coefficients of :math:`\exp(z (t - 1)) = \sum_k e^{-z} z^k / k! \; t^k`, the probabilities of a Poisson
    variable, as many as the tolerance needs for :math:`|t| \le 1`. Differentiable.

    Args:
        z (torch.Tensor): :math:`z \ge 0`, :obj:`[H]`.
        tolerance (float): The largest error :math:`\epsilon`.

    Returns:
        torch.Tensor: :obj:`[H, K + 1]`, in float64.
    """
    z, digits = z.double(), math.log(4 / tolerance)
    largest = float(z.detach().max())
    degree = math.ceil(largest + digits / 3 + math.sqrt(digits**2 / 9 + 2 * largest * digits))
    k = torch.arange(degree + 1, device=z.device, dtype=z.dtype)
    safe = z.clamp(min=torch.finfo(z.dtype).tiny).unsqueeze(1)
    return _cut((k * safe.log() - safe - torch.lgamma(k + 1)).exp(), tolerance)


def _cut(series: Tensor, tolerance: float) -> Tensor:
    # One term more than the sum needs: its derivative in z falls one term later.
    rest = series.detach().abs().flip(1).cumsum(1).flip(1).amax(0)
    return series[:, : 1 + int((rest > tolerance).sum())]


def exp_action(
    coefficients: Tensor, value: Tensor, pattern: SparsePattern, x: Tensor, method: str, transpose: bool = False
) -> Tensor:
    r"""Multiplies by a polynomial of a sparse matrix that all heads share: :math:`\sum_k c_k T_k(\mathbf{B}) \mathbf{x}` with
    Chebyshev polynomials :math:`T_k`, or :math:`\sum_k c_k \mathbf{B}^k \mathbf{x}`.

    Memory is a few blocks of the size of :obj:`x` whatever the degree, also for the gradients in :obj:`x` and in the
    coefficients; the gradient in :obj:`value` keeps a block for each degree.

    Args:
        coefficients (torch.Tensor): :math:`c`, :obj:`[H, K + 1]`.
        value (torch.Tensor): The entries of :math:`\mathbf{B}`, :obj:`[1, nnz]`.
        pattern (SparsePattern): Their positions.
        x (torch.Tensor): The block, :obj:`[N, H, c]`.
        method (str): :obj:`"chebyshev"` or :obj:`"taylor"`.
        transpose (bool): Multiply by the transpose. (default: :obj:`False`)

    Returns:
        torch.Tensor: :obj:`[N, H, c]`, differentiable in :obj:`coefficients`, :obj:`value` and :obj:`x`.
    """
    work = x.to(torch.promote_types(x.dtype, torch.float32))
    coefficients, value = coefficients.to(work.dtype), value.to(work.dtype)
    if x.numel() == 0:
        return x.clone()
    if value.requires_grad:

        def step(alpha: float, u: Tensor, beta: float, w: Tensor) -> Tensor:
            product = alpha * spmm(pattern, value, u.unsqueeze(1), transpose).squeeze(1)
            return product + beta * w if beta != 0 else product

        terms = _terms(step, work.flatten(1), coefficients.size(1), method)
        pairs = zip(coefficients.unsqueeze(-1).unbind(1), terms, strict=True)
        out = sum((c * term.view_as(work) for c, term in pairs), start=torch.zeros_like(work))
    else:
        out = _Polynomial.apply(work, coefficients, value, method, transpose, *pattern.tensors)
    return out.to(x.dtype)


def _terms(step: Step, x: Tensor, count: int, method: str) -> Iterator[Tensor]:
    r"""Yields :math:`T_k(\mathbf{B}) \mathbf{x}` or :math:`\mathbf{B}^k \mathbf{x}` for :math:`k` from 0."""
    before, current = x, x
    for k in range(count):
        if method == 'chebyshev' and k > 1:
            before, current = current, step(2.0, current, -1.0, before)
        elif k > 0:
            current = step(1.0, current, 0.0, current)
        yield current


def _raw_step(value: Tensor, pattern: SparsePattern, transpose: bool) -> Step:
    rowptr, col, own = pattern.rowptr, pattern.col, value[0]
    if transpose:
        rowptr, col, own = pattern.rowptr_t, pattern.col_t, own.index_select(0, pattern.perm_t)
    size = rowptr.numel() - 1
    matrix = torch.sparse_csr_tensor(rowptr, col, own, (size, size), check_invariants=False)

    def step(alpha: float, u: Tensor, beta: float, w: Tensor) -> Tensor:
        return torch.addmm(w, matrix, u, beta=beta, alpha=alpha)

    return step


class _Polynomial(torch.autograd.Function):
    @staticmethod
    def forward(x: Tensor, coefficients: Tensor, value: Tensor, method: str, transpose: bool, *pattern: Tensor) -> Tensor:
        step, out = _raw_step(value, SparsePattern(*pattern), transpose), torch.zeros_like(x)
        terms = _terms(step, x.flatten(1).contiguous(), coefficients.size(1), method)
        for c, term in zip(coefficients.unsqueeze(-1).unbind(1), terms, strict=True):
            out.addcmul_(c, term.view_as(x))
        return out

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        x, coefficients, value, ctx.method, ctx.transpose, *pattern = inputs
        ctx.save_for_backward(x, coefficients, value, *pattern)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        # Polynomials of the transpose applied to the gradient serve both: none of the forward pass has to be kept.
        x, coefficients, value, *pattern = ctx.saved_tensors
        (grad,), grad_coefficients = grads, torch.zeros_like(coefficients)
        step, grad_x = _raw_step(value, SparsePattern(*pattern), not ctx.transpose), torch.zeros_like(grad)
        terms = _terms(step, grad.flatten(1).contiguous(), coefficients.size(1), ctx.method)
        for k, (c, term) in enumerate(zip(coefficients.unsqueeze(-1).unbind(1), terms, strict=True)):
            grad_x.addcmul_(c, term.view_as(grad))
            if ctx.needs_input_grad[1]:
                grad_coefficients[:, k] = torch.einsum('nhc,nhc->h', term.view_as(x), x)
        return (grad_x, grad_coefficients, None, None, None) + (None,) * len(pattern)


@dataclass(frozen=True)
class ExpActionStructure(MaskStructure):
    r""":math:`\exp(z (\mathbf{B} - \mathbf{I}))` as a polynomial, see :func:`exp_action`. Tensors: its coefficients,
    :obj:`[H, K + 1]`, the entries of :math:`\mathbf{B}`, :obj:`[1, nnz]`, their pattern, the graph of each node, and any
    numbers, one for each graph.
    """

    method: str
    tolerance: float
    transposed: bool = False

    def apply(self, tensors: Sequence[Tensor], x: Tensor) -> Tensor:
        coefficients, value, *pattern, _, _ = tensors
        return exp_action(coefficients, value, SparsePattern(*pattern), x, self.method, self.transposed)

    def magnitude(self, tensors: Sequence[Tensor], x: Tensor) -> Tensor:
        coefficients, value, *rest, batch, graphs = tensors
        pattern = SparsePattern(*rest)
        if self.method == 'taylor':
            return self.apply((coefficients, value.abs(), *pattern.tensors, batch, graphs), x)
        # |exp(B - I)| is at most the exponential with positive entries off the diagonal.
        bound = torch.where(pattern.row == pattern.col, value, value.abs())
        product = self.apply((coefficients, bound, *pattern.tensors, batch, graphs), x).clamp(min=0.0)
        # Chebyshev polynomials err by the tolerance and by rounding relative to the largest entry of the graph.
        error = max(1.0, self.tolerance / (16 * torch.finfo(x.dtype).eps))
        return product + error * _largest(x, batch, graphs.numel())

    def transpose(self, tensors: Sequence[Tensor]) -> tuple[MaskStructure, tuple[Tensor, ...]]:
        return ExpActionStructure(self.method, self.tolerance, not self.transposed), tuple(tensors)


def _largest(x: Tensor, batch: Tensor, num_graphs: int) -> Tensor:
    r"""The largest entry of :math:`\mathbf{x} \ge 0` in each graph, at each of its nodes."""
    index = batch.view(-1, *[1] * (x.dim() - 1)).expand_as(x)
    return x.new_zeros(num_graphs, *x.shape[1:]).scatter_reduce(0, index, x, 'amax').index_select(0, batch)
