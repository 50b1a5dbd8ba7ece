r"""The action of polynomials in a sparse matrix on dense blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from pyg_topomask.graphs.segments import Segments
from pyg_topomask.graphs.sparse_pattern import SparsePattern
from pyg_topomask.machine.backend import kernel
from pyg_topomask.operators.base import MaskOperator
from pyg_topomask.operators.forms import blocks_of, units_of
from pyg_topomask.operators.sparse_matmul import product, sample, spmm
from pyg_topomask.utils.functorch import LoopedFunction, gradients
from pyg_topomask.utils.precision import widened

# Numbers in a chunk of columns that stays in the cache of a core, and in that of all.
_NEAR, _FAR = 200_000, 2**21
# Columns of a chunk in the cache of all, and a multiple that products are fast for.
_WIDE, _FAST = 32, 16

# Returns alpha * B u + beta * w for the sparse matrix B, perhaps in the place of the last tensor.
Step = Callable[[float, Tensor, float, Tensor, Tensor | None], Tensor]


@dataclass(eq=False, repr=False)
class Polynomial(MaskOperator):
    r"""A polynomial of a sparse matrix, shared by all heads: :math:`\sum_k c_k \mathbf{B}^k`, or :math:`\sum_k c_k
    T_k(\mathbf{B})` with Chebyshev polynomials :math:`T_k`.

    Args:
        coefficients (torch.Tensor): :math:`c`, :obj:`[H or 1, K + 1]`.
        value (torch.Tensor): The entries of :math:`\mathbf{B}`, :obj:`[1, nnz]`.
        pattern (SparsePattern): Their positions.
        method (str): :obj:`"chebyshev"` or :obj:`"powers"`.
        transposed (bool): Multiply by the transpose. (default: :obj:`False`)
    """

    coefficients: Tensor
    value: Tensor
    pattern: SparsePattern
    method: str
    transposed: bool = False

    def apply(self, x: Tensor) -> Tensor:
        return polynomial_action(self.coefficients, self.value, self.pattern, x, self.method, self.transposed)

    def has_machine_code(self) -> bool:
        return True

    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return kernel('polynomial.attend_polynomial', q.device)(*self._arguments(q.dtype), q, k, v)

    def attend_backward(self, learnable: Sequence[int], q: Tensor, k: Tensor, v: Tensor, grad: Tensor) -> list[Tensor]:
        compiled, arguments = kernel('polynomial.attend_polynomial_backward', q.device), self._arguments(q.dtype)
        grads, grad_coefficients, grad_value = compiled(*arguments, q, k, v, grad, 1 in learnable)
        learned = [grad_coefficients.to(self.coefficients.dtype)]
        if grad_value is not None:
            learned.append(_gradient_of_value(grad_value, self.value, self.pattern, self.transposed))
        return [*grads, *(learned[index] for index in learnable)]

    def _arguments(self, dtype: torch.dtype) -> tuple[SparsePattern, Tensor, Tensor, str]:
        matrix = _matrix(self.value.to(dtype), self.pattern.tensors, self.transposed)
        return *matrix, self.coefficients.to(dtype), self.method

    @property
    def T(self) -> MaskOperator:
        return replace(self, transposed=not self.transposed)


def polynomial_action(
    coefficients: Tensor, value: Tensor, pattern: SparsePattern, x: Tensor, method: str, transpose: bool = False
) -> Tensor:
    r"""Multiplies a block :obj:`[N, H, c]` by a :class:`Polynomial` of a sparse matrix. Differentiable in the coefficients, the
    entries and the block.

    Memory is a few blocks of the size of :obj:`x` for any degree, including the gradients. That in :obj:`value` computes the
    terms again, of a few columns at a time.
    """
    work = widened(x)
    coefficients, value = coefficients.to(work.dtype), value.to(work.dtype)
    if x.numel() == 0:
        return x.clone()
    if work.stride(1) == 0 and not work.requires_grad:
        out = _SharedPolynomial.apply(
            work[:, 0], coefficients.expand(x.size(1), -1), value, method, transpose, *pattern.tensors
        )
    else:
        out = _Polynomial.apply(work, coefficients, value, method, transpose, *pattern.tensors)
    return out.to(x.dtype)


def _plain(x: Tensor, coefficients: Tensor, value: Tensor, method: str, transpose: bool, pattern: SparsePattern) -> Tensor:
    r"""The action of the polynomial by operations that autograd differentiates. It keeps a block for each degree."""

    def step(alpha: float, u: Tensor, beta: float, w: Tensor, spare: Tensor | None) -> Tensor:
        product = alpha * spmm(pattern, value, u.unsqueeze(1), transpose).squeeze(1)
        return product + beta * w if beta != 0 else product

    terms = _terms(step, x.flatten(1), coefficients.size(1), method)
    pairs = zip(coefficients.unsqueeze(-1).unbind(1), terms, strict=True)
    return sum((c * term.view(x.shape) for c, term in pairs), start=torch.zeros_like(x))


def polynomial_terms(
    value: Tensor, pattern: SparsePattern, x: Tensor, count: int, method: str, transpose: bool = False
) -> Iterator[Tensor]:
    r"""Yields :math:`T_k(\mathbf{B}) \mathbf{x}` or :math:`\mathbf{B}^k \mathbf{x}`, :obj:`[N, c]`, for :obj:`count` :math:`k`
    from 0, without gradients. A term is valid until two more have been drawn.
    """
    return _terms(_raw_step(value.unsqueeze(0), pattern, transpose), x, count, method)


def polynomial_blocks(value: Tensor, pattern: SparsePattern, basis: Tensor, method: str, segments: Segments) -> Tensor:
    r"""Returns the entries of polynomials of a sparse matrix with coefficients :obj:`[J, K + 1]`, in the data type of the
    entries, at all pairs of nodes of the same graph, by row, :obj:`[J, num_pairs]`. Differentiable in the entries and the
    coefficients.
    """
    if value.requires_grad:
        return _PolynomialBlocks.apply(basis, value.unsqueeze(0), method, segments, *pattern.tensors)
    if compiled := kernel('polynomial.polynomial_blocks', value.device):
        return compiled(pattern, value, basis, method, segments)
    return blocks_of(lambda x: polynomial_terms(value, pattern, x, basis.size(1), method), basis, segments)


def _matrix(value: Tensor, pattern: Sequence[Tensor], transpose: bool) -> tuple[SparsePattern, Tensor]:
    r"""Returns pattern and entries of a matrix, :obj:`[nnz]`, or of its transpose."""
    matrix = SparsePattern(*pattern)
    return (matrix.T, value[0].index_select(0, matrix.perm_t)) if transpose else (matrix, value[0])


def _gradient_of_value(grad: Tensor, value: Tensor, pattern: SparsePattern, transpose: bool) -> Tensor:
    r"""Returns the gradient of the entries, :obj:`[1, nnz]`, given that of the entries that :func:`_matrix` returns."""
    grad = pattern.from_transpose(grad) if transpose else grad
    return grad.unsqueeze(0).to(value.dtype)


def _terms(step: Step, x: Tensor, count: int, method: str) -> Iterator[Tensor]:
    r"""Yields :math:`T_k(\mathbf{B}) \mathbf{x}` or :math:`\mathbf{B}^k \mathbf{x}` for :math:`k` from 0. A term is valid
    until two more have been drawn.
    """
    before, current = x, x
    for k in range(count):
        if k > 0:
            factors = (2.0, current, -1.0, before) if method == 'chebyshev' and k > 1 else (1.0, current, 0.0, current)
            before, current = current, step(*factors, None if before is x else before)
        yield current


def _raw_step(value: Tensor, pattern: SparsePattern, transpose: bool) -> Step:
    rowptr, col, entries = pattern.rowptr, pattern.col, value[0]
    if transpose:
        rowptr, col, entries = pattern.rowptr_t, pattern.col_t, entries.index_select(0, pattern.perm_t)
    size = rowptr.numel() - 1
    matrix = torch.sparse_csr_tensor(rowptr, col, entries, (size, size), check_invariants=False)

    def step(alpha: float, u: Tensor, beta: float, w: Tensor, spare: Tensor | None) -> Tensor:
        if beta == 0.0 and alpha == 1.0:
            return product(matrix, u, torch.empty_like(u) if spare is None else spare)
        return torch.addmm(w, matrix, u, beta=beta, alpha=alpha, out=spare)

    return step


def _gradients_of_matrix(
    value: Tensor,
    pattern: SparsePattern,
    transpose: bool,
    method: str,
    terms: Sequence[Tensor],
    upstream: Callable[[int], Tensor],
) -> tuple[Tensor, Tensor]:
    r"""Returns the gradients of the entries, :obj:`[1, nnz]`, and of :math:`\mathbf{x}`, given the terms :math:`\mathbf{B}^k
    \mathbf{x}` or :math:`T_k(\mathbf{B}) \mathbf{x}`, and the gradient of term :math:`k` as a function: the recurrence of the
    terms, backwards.
    """
    step, last, after = _raw_step(value, pattern, not transpose), upstream(len(terms) - 1), None
    of_entries = torch.zeros_like(value)
    for k in range(len(terms) - 2, -1, -1):
        factor = 2.0 if method == 'chebyshev' and k > 0 else 1.0
        row, col = (terms[k], last) if transpose else (last, terms[k])
        of_entries[0].add_(sample(pattern.rowptr, pattern.col, row, col), alpha=factor)
        grad = step(factor, last, 1.0, upstream(k), None)
        last, after = grad if after is None or method == 'powers' else grad.sub_(after), last
    return of_entries, last


def _kept_terms(step: Step, x: Tensor, count: int, method: str) -> list[Tensor]:
    return list(_terms(lambda alpha, u, beta, w, spare: step(alpha, u, beta, w, None), x, count, method))


def _by_column(coefficients: Tensor, x: Tensor) -> Tensor:
    r"""Coefficients for each column of :obj:`x.flatten(1)`, rather than for each head, :obj:`[K + 1, H c]`."""
    return coefficients.t().unsqueeze(-1).expand(-1, *x.shape[1:]).flatten(1)


def _chunks(x: Tensor, wide: int = _WIDE) -> list[slice]:
    r"""Cuts the columns so that the terms of a chunk stay in the cache of a CPU, also on large graphs."""
    columns = x[0].numel()
    width = columns
    if x.device.type == 'cpu':
        width = max(_NEAR // x.size(0), min(_FAR // x.size(0), wide), _FAST) // _FAST * _FAST
    return [slice(start, start + width) for start in range(0, columns, width)]


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    x, coefficients, value, ctx.method, ctx.transpose, *pattern = inputs
    ctx.save_for_backward(x, coefficients, value, *pattern)


class _Polynomial(LoopedFunction):
    @staticmethod
    def forward(x: Tensor, coefficients: Tensor, value: Tensor, method: str, transpose: bool, *pattern: Tensor) -> Tensor:
        if compiled := kernel('polynomial.polynomial_action', x.device):
            return compiled(*_matrix(value, pattern, transpose), coefficients, method, x)
        step, columns = _raw_step(value, SparsePattern(*pattern), transpose), x.flatten(1)
        by_column, out = _by_column(coefficients, x), torch.empty_like(columns)
        for chunk in _chunks(x):
            total = torch.zeros_like(columns[:, chunk], memory_format=torch.contiguous_format)
            terms = _terms(step, columns[:, chunk].contiguous(), coefficients.size(1), method)
            for c, term in zip(by_column[:, chunk], terms, strict=True):
                total.addcmul_(c, term)
            out[:, chunk] = total
        return out.view(x.shape)

    setup_context = staticmethod(_keep)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        # Polynomials of the transpose applied to the gradient serve both: none of the forward pass has to be kept.
        x, coefficients, value, *pattern = ctx.saved_tensors
        if torch.is_grad_enabled():

            def plain(x: Tensor, coefficients: Tensor, value: Tensor) -> Tensor:
                return _plain(x, coefficients, value, ctx.method, ctx.transpose, SparsePattern(*pattern))

            return (*gradients(plain, grads, x, coefficients, value), None, None) + (None,) * len(pattern)
        learned = ctx.needs_input_grad[2]
        if compiled := kernel('polynomial.polynomial_action_backward', x.device):
            matrix = _matrix(value, pattern, ctx.transpose)
            *found, grad = compiled(*matrix, coefficients, ctx.method, x, grads[0], learned)
            grad = _gradient_of_value(grad, value, SparsePattern(*pattern), ctx.transpose) if learned else None
            return (*found, grad, None, None) + (None,) * len(pattern)
        if learned:
            return (*_backward_with_entries(ctx, grads[0]), None, None) + (None,) * len(pattern)
        step, columns, given = _raw_step(value, SparsePattern(*pattern), not ctx.transpose), grads[0].flatten(1), x.flatten(1)
        by_column, grad_x = _by_column(coefficients, x), torch.empty_like(columns)
        grad_columns = torch.zeros_like(by_column)
        for chunk in _chunks(x):
            total = torch.zeros_like(columns[:, chunk], memory_format=torch.contiguous_format)
            inputs = given[:, chunk].contiguous()
            product = torch.empty_like(inputs)
            terms = _terms(step, columns[:, chunk].contiguous(), coefficients.size(1), ctx.method)
            for k, (c, term) in enumerate(zip(by_column[:, chunk], terms, strict=True)):
                total.addcmul_(c, term)
                if ctx.needs_input_grad[1]:
                    grad_columns[k, chunk] = torch.mul(term, inputs, out=product).sum(0)
            grad_x[:, chunk] = total
        return (grad_x.view(x.shape), _of_heads(grad_columns, coefficients, x), None, None, None) + (None,) * len(pattern)


def _of_heads(grad_columns: Tensor, coefficients: Tensor, x: Tensor) -> Tensor:
    r"""Adds up gradients of coefficients of the columns of :obj:`x.flatten(1)`, :obj:`[K + 1, H c]`, by head."""
    grad_heads = grad_columns.view(-1, *x.shape[1:]).sum(2).t()
    return grad_heads.sum(0, keepdim=True) if coefficients.size(0) == 1 else grad_heads


def _backward_with_entries(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    r"""Returns the gradients of :obj:`x`, the coefficients and the entries."""
    x, coefficients, value, *tensors = ctx.saved_tensors
    pattern, by_column, grad_value = SparsePattern(*tensors), _by_column(coefficients, x), torch.zeros_like(value)
    step, grad_columns, grad_x = _raw_step(value, pattern, ctx.transpose), torch.empty_like(by_column), x.new_empty(x.shape)
    for chunk in _chunks(x, _FAST):
        columns, factors = grad.flatten(1)[:, chunk].contiguous(), by_column[:, chunk]
        terms = _kept_terms(step, x.flatten(1)[:, chunk].contiguous(), coefficients.size(1), ctx.method)
        grad_columns[:, chunk] = torch.stack([(term * columns).sum(0) for term in terms])

        def upstream(k: int, factors: Tensor = factors, columns: Tensor = columns) -> Tensor:
            return factors[k] * columns

        of_entries, of_x = _gradients_of_matrix(value, pattern, ctx.transpose, ctx.method, terms, upstream)
        grad_value += of_entries
        grad_x.flatten(1)[:, chunk] = of_x
    return grad_x, _of_heads(grad_columns, coefficients, x), grad_value


class _SharedPolynomial(LoopedFunction):
    r"""Polynomials of every head of one block, :obj:`[N, c]`, that takes no gradient: its terms serve all heads."""

    @staticmethod
    def forward(x: Tensor, coefficients: Tensor, value: Tensor, method: str, transpose: bool, *pattern: Tensor) -> Tensor:
        step, out = _raw_step(value, SparsePattern(*pattern), transpose), x.new_empty(coefficients.size(0), *x.shape)
        for chunk in _chunks(x):
            total = torch.zeros_like(out[..., chunk], memory_format=torch.contiguous_format)
            terms = _terms(step, x[:, chunk].contiguous(), coefficients.size(1), method)
            for c, term in zip(coefficients.t()[..., None, None], terms, strict=True):
                total.addcmul_(c, term)
            out[..., chunk] = total
        return out.transpose(0, 1)

    setup_context = staticmethod(_keep)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        x, coefficients, value, *pattern = ctx.saved_tensors
        if torch.is_grad_enabled():

            def plain(coefficients: Tensor, value: Tensor) -> Tensor:
                shared = x.unsqueeze(1).expand(-1, coefficients.size(0), -1)
                return _plain(shared, coefficients, value, ctx.method, ctx.transpose, SparsePattern(*pattern))

            return (None, *gradients(plain, grads, coefficients, value), None, None) + (None,) * len(pattern)
        matrix, learned = SparsePattern(*pattern), ctx.needs_input_grad[2]
        step, grad = _raw_step(value, matrix, ctx.transpose), torch.zeros_like(coefficients)
        grad_value = torch.zeros_like(value) if learned else None
        for chunk in _chunks(x):
            upstream, given = grads[0][..., chunk].transpose(0, 1).flatten(1), x[:, chunk].contiguous()
            terms = (_kept_terms if learned else _terms)(step, given, coefficients.size(1), ctx.method)
            for k, term in enumerate(terms):
                grad[:, k] += upstream @ term.flatten()
            if grad_value is not None:
                of_terms = (coefficients.t() @ upstream).view(-1, *given.shape)
                of_chunk = list(terms), of_terms.__getitem__
                grad_value += _gradients_of_matrix(value, matrix, ctx.transpose, ctx.method, *of_chunk)[0]
        return (None, grad, grad_value, None, None) + (None,) * len(pattern)


class _PolynomialBlocks(LoopedFunction):
    r"""Entries of polynomials at all pairs of nodes of the same graph. The backward pass computes the terms again."""

    @staticmethod
    def forward(basis: Tensor, value: Tensor, method: str, segments: Segments, *pattern: Tensor) -> Tensor:
        return polynomial_blocks(value[0].detach(), SparsePattern(*pattern), basis, method, segments)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        basis, value, ctx.method, ctx.segments, *pattern = inputs
        ctx.save_for_backward(basis, value, *pattern)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        basis, value, *tensors = ctx.saved_tensors
        pattern, learned = SparsePattern(*tensors), ctx.needs_input_grad[0]
        compiled = kernel('polynomial.polynomial_blocks_backward', value.device)
        if compiled and not torch.is_grad_enabled():
            given = pattern, value[0], basis, ctx.method, ctx.segments, grads[0]
            grad_value, grad_basis = compiled(*given, learned)
            return (grad_basis if learned else None, grad_value.unsqueeze(0), None, None) + (None,) * len(tensors)
        units, place = units_of(ctx.segments, value.dtype)
        if torch.is_grad_enabled():

            def plain(basis: Tensor, value: Tensor) -> Tensor:
                shared = units.unsqueeze(1).expand(-1, basis.size(0), -1)
                blocks = _plain(shared, basis, value, ctx.method, False, pattern)
                return blocks.transpose(0, 1).flatten(1).index_select(1, place)

            return (*gradients(plain, grads, basis, value), None, None) + (None,) * len(tensors)
        step, grad_basis, grad_value = _raw_step(value, pattern, False), torch.zeros_like(basis), torch.zeros_like(value)
        upstream = units.new_zeros(basis.size(0), units.numel()).index_copy_(1, place, grads[0]).view(-1, *units.shape)
        for chunk in _chunks(units):
            terms = _kept_terms(step, units[:, chunk].contiguous(), basis.size(1), ctx.method)
            of_blocks = upstream[..., chunk].flatten(1)
            of_terms = (basis.t() @ of_blocks).view(-1, *terms[0].shape)
            grad_value += _gradients_of_matrix(value, pattern, False, ctx.method, terms, of_terms.__getitem__)[0]
            if learned:
                grad_basis += of_blocks @ torch.stack(terms).flatten(1).t()
        return (grad_basis, grad_value, None, None) + (None,) * len(tensors)
