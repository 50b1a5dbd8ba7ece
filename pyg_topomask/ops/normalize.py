r"""Numbers of attention that neither overflow nor vanish: denominators that are safe for zero rows, and powers of two."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from pyg_topomask.graphs.sparse_pattern import SparsePattern
from pyg_topomask.utils.functorch import readable


def inverse_weight(denominator: Tensor, magnitude: Tensor) -> Tensor:
    r"""Returns the inverse of the denominators of attention, and 0 for zero rows, :obj:`[N, H]`.

    Linear attention divides by :math:`\sum_j M_{ij} \phi(\mathbf{q}_i)^{\top} \phi(\mathbf{k}_j)`, which may be zero (ReLU
    features, an isolated node) or negative (learned coefficients). A row counts as a zero row if its denominator is below the
    rounding error of terms of the given magnitude, the sum of their absolute values, or so small that its inverse overflows.
    Its output and gradient are then 0. For other rows, the sign is kept.
    """
    limits = torch.finfo(denominator.dtype)
    floor = (16 * limits.eps * magnitude).clamp(min=limits.tiny / limits.eps)
    empty = denominator.abs() <= floor
    return denominator.masked_fill(empty, 1.0).reciprocal_().masked_fill_(empty, 0.0)


def quotient(numerator: Tensor, denominator: Tensor, magnitude: Tensor) -> Tensor:
    r"""Divides for autograd. The result and its gradient are 0 where :func:`inverse_weight` of denominator and magnitude
    is 0.
    """
    with torch.no_grad():
        empty = inverse_weight(denominator, magnitude) == 0
    return quotient_unless(empty, numerator, denominator)


def quotient_unless(empty: Tensor, numerator: Tensor, denominator: Tensor) -> Tensor:
    r"""Divides for autograd. The result and its gradient are 0 in the empty rows."""
    return (numerator / denominator.masked_fill(empty, 1.0)).masked_fill(empty, 0.0)


def with_ones(v: Tensor) -> Tensor:
    r"""Appends a column of ones, which makes the denominator one more value."""
    return torch.cat([v, v.new_ones((*v.shape[:-1], 1))], dim=-1)


def gradients_of_sums(grad: Tensor, out: Tensor, inverse: Tensor) -> tuple[Tensor, Tensor]:
    r"""Returns the gradients of numerator, :obj:`[N, H, d]`, and denominator, :obj:`[N, H]`."""
    grad_numerator = grad * inverse.unsqueeze(-1)
    return grad_numerator, -(grad_numerator * out).sum(-1)


def known_positive(*tensors: Tensor) -> bool:
    r"""Returns whether all tensors are known to be nonnegative, so that the denominator is the sum of magnitudes. They are not
    where their numbers are not :func:`readable`.
    """
    return readable(*tensors) and all(x.numel() > 0 and float(x.detach().amin()) >= 0 for x in tensors)


# Products of three rows with norms in these bounds neither overflow nor vanish, nor do their gradients.
_LEAST, _MOST = 2.0**-24, 2.0**24


def row_size(x: Tensor) -> Tensor:
    r"""Returns the sums of absolute values over the last dimension, without a gradient."""
    return x.detach().abs().sum(-1)  # the norm of order 1 takes ten times as long


def at_most(x: Tensor, limit: float) -> bool:
    r"""Returns whether all numbers are at most :obj:`limit`, as far as they are :func:`readable`."""
    return readable(x) and (x.numel() == 0 or float(x.detach().amax()) <= limit)


def moderate(*tensors: Tensor) -> bool:
    r"""Returns whether products of rows cannot overflow, as far as the numbers are :func:`readable`."""
    return readable(*tensors) and all(bool(within(x.detach(), _MOST)) for x in tensors if x.numel() > 0)


def within(x: Tensor, limit: float) -> Tensor:
    r"""Returns whether all numbers are at most :obj:`limit` in absolute value, and none is NaN, as a tensor."""
    least, most = torch.aminmax(x)
    return (least >= -limit) & (most <= limit)


def in_range(*tensors: Tensor, zeros: bool = True) -> bool:
    r"""Returns whether no row needs scaling, as far as the numbers are :func:`readable`. With :obj:`zeros`, rows of zeros need
    no scaling.
    """
    return readable(*tensors) and all(_is_in_range(x, zeros) for x in tensors)


def _is_in_range(x: Tensor, zeros: bool) -> bool:
    size = torch.linalg.vector_norm(x.detach(), dim=-1)  # twice as fast as the sums
    if size.numel() == 0:
        return True
    least, most = map(float, torch.aminmax(size))
    if zeros and least == 0:  # of zeros, or of numbers whose squares vanish
        size = row_size(x)
        least = float(size.masked_fill(size == 0, 1.0).amin())
    return least >= _LEAST and most <= _MOST


def power_of_two(size: Tensor) -> Tensor:
    r"""Returns the largest power of two up to each size, in float32 or float64, exactly, and 1 for sizes that are 0 or not
    finite. Dividing by it changes no digit.

    Example:
        >>> power_of_two(torch.tensor([0.0, 0.3, 5.0]))
        tensor([1.0000, 0.2500, 4.0000])
    """
    integer, exponent = (torch.int64, 0x7FF << 52) if size.dtype == torch.float64 else (torch.int32, 0xFF << 23)
    power = (size.view(integer) & exponent).view(size.dtype)
    return power.masked_fill((power == 0) | ~power.isfinite(), 1.0)


def balanced(
    q: Tensor, k: Tensor, v: Tensor, maximum: Callable[[Tensor], Tensor]
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    r"""Divides queries and keys, :obj:`[*, H, m]`, and values, :obj:`[*, H, d]`, by powers of two, so that linear attention
    stays within the range of the data type. Powers of queries, per row, and of keys, per graph, cancel in linear attention.
    Those of the values are returned, :obj:`[*, H, 1]` or :obj:`None` for ones, and the output is to be multiplied by them.
    Digits do not change, and neither do ordinary numbers. :obj:`maximum` returns the largest entry of each graph and head, at
    each of its nodes.
    """
    if k.numel() == 0 or in_range(q, k, v):
        return q, k, v, None
    sizes = maximum(torch.cat([row_size(k), row_size(v)], dim=-1))
    of_k, of_v = power_of_two(sizes).unsqueeze(-1).chunk(2, dim=-2)
    return q / power_of_two(row_size(q)).unsqueeze(-1), k / of_k, v / of_v, of_v


def capped_queries(q: Tensor, k: Tensor, pattern: SparsePattern) -> Tensor:
    r"""Divides queries whose scores with the keys of a pattern may overflow by powers of two. Softmax then still selects the
    largest scores: they are as far apart as rounding allows, and their exponentials are 1 and 0 before and after.
    """
    if moderate(q, k):
        return q
    of_k = row_size(k)
    row = pattern.row.long().unsqueeze(1).expand(-1, q.size(1))
    of_keys = torch.zeros_like(of_k[: q.size(0)]).scatter_reduce(0, row, of_k.index_select(0, pattern.col), 'amax')
    return capped(q, of_keys)


def capped(q: Tensor, of_keys: Tensor) -> Tensor:
    r"""Likewise, given the largest :func:`row_size` of the keys of each query, :obj:`[N, H]`."""
    # One factor after the other: their product may overflow.
    excess = row_size(q) / torch.finfo(q.dtype).max ** 0.75 * of_keys
    return q / power_of_two(excess.clamp(min=1.0)).unsqueeze(-1)
