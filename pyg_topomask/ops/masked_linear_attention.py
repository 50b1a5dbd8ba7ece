r"""The combine step: linear attention under any mask operator, without forming the attention matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from pyg_topomask.operators import MaskOperator
from pyg_topomask.ops.normalize import inverse_weight
from pyg_topomask.ops.sparse import entries_of, multiply, sample, sddmm, spmm
from pyg_topomask.sparse_pattern import SparsePattern
from pyg_topomask.structures import structure_from_key

__all__ = ['ROUTES', 'choose_route', 'masked_linear_attention']

ROUTES = ('auto', 'features', 'edges', 'low_rank')

# Entries in all heads up to which the edges route is chosen: its gradients take some ten numbers for each.
_CHOSEN = 2**27
# Rows that the edges route computes at a time.
_ROWS = 2**15
# Numbers in the block of mask inputs that the features route holds at a time.
_BLOCK = 2**21


def masked_linear_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: MaskOperator,
    route: str = 'auto',
    rows: Tensor | None = None,
) -> Tensor:
    r"""Linear attention whose scores are multiplied by a mask, from `"From block-Toeplitz matrices to differential equations
    on graphs" <https://arxiv.org/abs/2107.07999>`_ (Algorithm 1) and `"Linear Transformer Topological Masking with Graph
    Random Features" <https://arxiv.org/abs/2410.03462>`_ (Eq. 2, 7 and 12):

    .. math::
        \mathbf{y}_i = \frac{\sum_j M_{ij} \, (\mathbf{q}_i^{\top} \mathbf{k}_j) \, \mathbf{v}_j}
        {\sum_j M_{ij} \, (\mathbf{q}_i^{\top} \mathbf{k}_j)}

    The :math:`N \times N` matrix is never formed, and memory stays :math:`O(N H (m + d))` plus the mask's own tensors, also
    for the backward pass, which recomputes what it needs. Sums are accumulated in float32 or better, also under autocast. A
    row whose weights are all zero gives 0, with gradient 0.

    Args:
        q (torch.Tensor): Query features :math:`\phi(\mathbf{q})`, :obj:`[N, H, m]`.
        k (torch.Tensor): Key features :math:`\phi(\mathbf{k})`, :obj:`[N, H, m]`.
        v (torch.Tensor): Values, :obj:`[N, H, d]`.
        mask (MaskOperator): The bound mask, :math:`H \times N \times N`.
        route (str): One of :obj:`"auto"`, :obj:`"features"` (the mask multiplies one slice of features at a time; any mask),
            :obj:`"edges"` (scores at the entries of a sparse mask), :obj:`"low_rank"` (sums over each graph; masks of low
            rank). (default: :obj:`"auto"`)
        rows (torch.Tensor, optional): The nodes whose outputs are wanted, :obj:`[R]`; :obj:`q` then holds their queries alone,
            :obj:`[R, H, m]`. For masks of low rank on one graph, on the route of that name. (default: :obj:`None`, all nodes)

    Returns:
        torch.Tensor: :obj:`[N, H, d]`, or :obj:`[R, H, d]`, in the data type of :obj:`v`.

    Raises:
        ValueError: If shapes disagree, or the mask does not offer the route, or has too many entries for it.

    Example:
        >>> import torch
        >>> from pyg_topomask.graph import Graph
        >>> from pyg_topomask.masks import PackingMask
        >>> q = k = v = torch.ones(3, 2, 4)
        >>> mask = PackingMask(heads=2)(Graph.from_tensors(torch.empty(2, 0, dtype=torch.long), num_nodes=3))
        >>> masked_linear_attention(q, k, v, mask).shape
        torch.Size([3, 2, 4])
    """
    if rows is not None:
        if rows.dim() != 1 or q.shape != (rows.numel(), *k.shape[1:]):
            raise ValueError(
                f'rows: got shape {tuple(rows.shape)} for q of shape {tuple(q.shape)} and k of shape {tuple(k.shape)}; '
                f'accepted are [R] with [R, H, m] and [N, H, m]'
            )
        if mask.factors is None or mask.num_graphs > 1 or route not in ('auto', 'low_rank'):
            raise ValueError(f'rows: got rows of {mask!r} on route {route!r}; accepted are masks of low rank on one graph')
    check_shapes(q if rows is None else k, k, v, mask)
    if mask.parts is not None:
        heads = [part.heads for part in mask.parts]
        split = zip(q.split(heads, 1), k.split(heads, 1), v.split(heads, 1), mask.parts, strict=True)
        return torch.cat([masked_linear_attention(*own, route) for own in split], dim=1)
    route = choose_route(mask, q.size(-1), v.size(-1), route)
    dtype = torch.promote_types(torch.promote_types(q.dtype, v.dtype), torch.float32)
    with torch.autocast(device_type=q.device.type, enabled=False):
        out: Tensor
        q, k, values = q.to(dtype), k.to(dtype), v.to(dtype)
        if route == 'edges':
            entries = entries_of(mask)
            out = _attend_entries(q, k, values, entries.value.to(dtype), list(entries.pattern.tensors))[0]
        elif route == 'low_rank' and mask.num_graphs <= 1:
            assert mask.factors is not None
            left, right = mask.factors
            out = _attend_low_rank(q, k, values, (left if rows is None else left.index_select(0, rows), right))
        else:  # the structure of a mask of low rank sums over each graph itself
            out = _attend_features(q, k, values, list(mask.tensors), mask.structure.key)[0]
        return out.to(v.dtype)


def choose_route(mask: MaskOperator, num_features: int, num_channels: int, route: str = 'auto') -> str:
    r"""Returns the route that :func:`masked_linear_attention` takes for a mask, by counting multiplications.

    The edges route is chosen up to :obj:`2**27` entries in all heads, for its memory; beyond, the features route is slower and
    takes less.

    Args:
        mask (MaskOperator): The bound mask.
        num_features (int): The number of query and key features :math:`m`.
        num_channels (int): The number of value channels :math:`d`.
        route (str): The route asked for. (default: :obj:`"auto"`)

    Returns:
        str: :obj:`"features"`, :obj:`"edges"` or :obj:`"low_rank"`.
    """
    offered = {'features'}
    if mask.entries is not None:
        offered.add('edges')
    if mask.factors is not None:
        offered.add('low_rank')
    if route not in ROUTES or (route != 'auto' and route not in offered):
        raise ValueError(f'route: got {route!r}; this mask accepts {sorted({"auto", *offered})}')
    if route != 'auto':
        return route
    if mask.factors is not None:
        return 'low_rank'
    if mask.entries is not None and mask.num_entries is not None:
        by_features = mask.cost * num_features * (num_channels + 1)
        by_edges = mask.num_entries * (num_features + num_channels + 1)
        if by_edges <= by_features and mask.num_entries * mask.heads <= _CHOSEN:
            return 'edges'
    return 'features'


def check_shapes(q: Tensor, k: Tensor, v: Tensor, mask: MaskOperator) -> None:
    if q.dim() != 3 or q.shape != k.shape:
        raise ValueError(f'k: got shape {tuple(k.shape)} for q of shape {tuple(q.shape)}; accepted are equal shapes [N, H, m]')
    if v.dim() != 3 or v.shape[:2] != q.shape[:2]:
        raise ValueError(f'v: got shape {tuple(v.shape)} for q of shape {tuple(q.shape)}; accepted is [N, H, d]')
    if mask.num_nodes != q.size(0) or mask.heads not in (1, q.size(1)):
        raise ValueError(
            f'mask: got {mask.heads} heads and {mask.num_nodes} nodes for q of shape {tuple(q.shape)}; accepted is a mask '
            f'bound to the same nodes, with 1 or {q.size(1)} heads'
        )


def _with_ones(v: Tensor) -> Tensor:
    r"""Appends a column of ones, which makes the denominator one more value."""
    return torch.cat([v, v.new_ones((*v.shape[:-1], 1))], dim=-1)


def _grad_total(grad: Tensor, out: Tensor, inverse: Tensor) -> tuple[Tensor, Tensor]:
    r"""Returns the gradients of numerator, :obj:`[N, H, d]`, and denominator, :obj:`[N, H]`."""
    grad_numerator = grad * inverse.unsqueeze(-1)
    return grad_numerator, -(grad_numerator * out).sum(-1)


def _known_positive(*tensors: Tensor) -> bool:
    r"""Whether no number is negative, so that magnitudes add up to the denominator, as far as a look at the numbers is cheap:
    a GPU would have to be waited for, and tracing breaks.
    """
    if torch.compiler.is_compiling() or any(tensor.device.type != 'cpu' or tensor.numel() == 0 for tensor in tensors):
        return False
    return all(float(tensor.detach().amin()) >= 0 for tensor in tensors)


# The low-rank route ---------------------------------------------------------------------------------------------------


def _attend_low_rank(q: Tensor, k: Tensor, v: Tensor, factors: tuple[Tensor, Tensor]) -> Tensor:
    r"""Sums over the nodes of one graph, :math:`\mathbf{A} (\mathbf{B}^{\top} ...)`, rank by rank."""
    left, right = (factor.to(q.dtype) for factor in factors)
    numerator, denominator = _sum_ranks(q, k, v, left, right)
    with torch.no_grad():
        magnitude = denominator
        if not _known_positive(q, k, left, right):
            magnitude = _sum_ranks(q.abs(), k.abs(), v[..., :0], left.abs(), right.abs())[1]
        empty = inverse_weight(denominator, magnitude) == 0
    return (numerator / denominator.masked_fill(empty, 1.0).unsqueeze(-1)).masked_fill(empty.unsqueeze(-1), 0.0)


def _sum_ranks(q: Tensor, k: Tensor, v: Tensor, left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
    r"""Returns numerators, :obj:`[N, H, d]`, and denominators, :obj:`[N, H]`."""
    pairs = list(zip(left.split(1, -1), right.split(1, -1), strict=True))
    if len(pairs) == 1:
        return _sum_rank(q, k, v, *pairs[0])
    numerator, denominator = v.new_zeros(*q.shape[:2], v.size(-1)), q.new_zeros(q.shape[:2])
    for pair in pairs:  # without checkpoints every rank would keep its own keys for the backward pass
        own: tuple[Tensor, Tensor] = checkpoint(_sum_rank, q, k, v, *pair, use_reentrant=False)
        numerator, denominator = numerator + own[0], denominator + own[1]
    return numerator, denominator


def _sum_rank(q: Tensor, k: Tensor, v: Tensor, left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
    # A factor that all nodes share, as the ones of unmasked attention, multiplies the sums alone.
    keys = k if _shared(right) else right * k
    total, size = torch.einsum('nhm,nhd->hmd', keys, v), keys.sum(0)
    for factor in (left, right):
        if _shared(factor):
            total, size = total * factor[0].unsqueeze(-1), size * factor[0]
    numerator, denominator = torch.einsum('nhm,hmd->nhd', q, total), torch.einsum('nhm,hm->nh', q, size)
    return (numerator, denominator) if _shared(left) else (left * numerator, left.squeeze(-1) * denominator)


def _shared(factor: Tensor) -> bool:
    return factor.size(0) > 1 and factor.stride(0) == 0


# The edges route ------------------------------------------------------------------------------------------------------


@torch.library.custom_op(
    'pyg_topomask::attend_entries',
    mutates_args=(),
    schema='(Tensor q, Tensor k, Tensor v, Tensor mask, Tensor[] pattern) -> (Tensor, Tensor)',
)
def _attend_entries(q: Tensor, k: Tensor, v: Tensor, mask: Tensor, pattern: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    rowptr, col, *_ = pattern
    out, inverse = v.new_empty(v.shape), q.new_empty(q.shape[:2])
    ones = v.new_ones(v.size(0), 1)
    # Blocks of rows keep what is computed in cache; a GPU takes all rows at once.
    num_rows = q.size(0)
    block = _ROWS if q.device.type == 'cpu' else max(num_rows, 1)
    for head in range(q.size(1)):
        query, key, value = (tensor[:, head].contiguous() for tensor in (q, k, v))
        for start in range(0, num_rows, block):
            rows = slice(start, min(start + block, num_rows))
            pointers = rowptr[start : rows.stop + 1]
            own = slice(int(pointers[0]), int(pointers[-1])) if block < num_rows else slice(None)
            local = (pointers - pointers[0], col[own])
            weight = sample(*local, query[rows], key)
            weight *= mask[head if mask.size(0) > 1 else 0, own]
            total, denominator = multiply(*local, weight, value), multiply(*local, weight, ones)
            magnitude = denominator if _known_positive(weight) else multiply(*local, weight.abs_(), ones)
            scale = inverse_weight(denominator, magnitude)
            torch.mul(total, scale, out=out[rows, head])
            inverse[rows, head] = scale.squeeze(1)
    return out, inverse


@_attend_entries.register_fake
def _(q: Tensor, k: Tensor, v: Tensor, mask: Tensor, pattern: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    return v.new_empty(v.shape), q.new_empty(q.shape[:2])


@torch.library.custom_op(
    'pyg_topomask::attend_entries_backward',
    mutates_args=(),
    schema='(Tensor grad, Tensor out, Tensor inverse, Tensor q, Tensor k, Tensor v, Tensor mask, Tensor[] pattern) '
    '-> (Tensor, Tensor, Tensor, Tensor)',
)
def _attend_entries_backward(
    grad: Tensor, out: Tensor, inverse: Tensor, q: Tensor, k: Tensor, v: Tensor, mask: Tensor, pattern: Sequence[Tensor]
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    own = SparsePattern(*pattern)
    grad_numerator, grad_denominator = _grad_total(grad, out, inverse)
    grad_q, grad_k, grad_v, grad_mask = q.new_empty(q.shape), k.new_empty(k.shape), v.new_empty(v.shape), torch.zeros_like(mask)
    for head in range(q.size(1)):  # one after the other: there are many entries
        one = slice(head, head + 1)
        shared = one if mask.size(0) > 1 else slice(None)
        query, key, upstream = q[:, one], k[:, one], grad_numerator[:, one]
        grad_weight = sddmm(own, upstream, v[:, one])
        grad_weight += grad_denominator[:, head].repeat_interleave(own.rowptr.diff(), output_size=own.nnz)
        weight = sddmm(own, query, key)
        grad_mask[shared] += weight * grad_weight
        grad_v[:, one] = spmm(own, weight.mul_(mask[shared]), upstream, transpose=True)
        grad_weight.mul_(mask[shared])
        grad_q[:, one] = spmm(own, grad_weight, key)
        grad_k[:, one] = spmm(own, grad_weight, query, transpose=True)
    return grad_q, grad_k, grad_v, grad_mask


@_attend_entries_backward.register_fake
def _(
    grad: Tensor, out: Tensor, inverse: Tensor, q: Tensor, k: Tensor, v: Tensor, mask: Tensor, pattern: Sequence[Tensor]
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    return q.new_empty(q.shape), k.new_empty(k.shape), v.new_empty(v.shape), mask.new_empty(mask.shape)


def _setup_entries(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    q, k, v, mask, pattern = inputs
    ctx.save_for_backward(*output, q, k, v, mask, *pattern)


def _backward_entries(ctx: Any, grad: Tensor, _: Tensor | None) -> tuple[Any, ...]:
    out, inverse, q, k, v, mask, *pattern = ctx.saved_tensors
    return (*_attend_entries_backward(grad, out, inverse, q, k, v, mask, pattern), [None] * len(pattern))


_attend_entries.register_autograd(_backward_entries, setup_context=_setup_entries)


# The features route ---------------------------------------------------------------------------------------------------


def _slices(k: Tensor, v: Tensor) -> list[slice]:
    r"""Cuts the features so that a block of outer products fits the cache, and small graphs take one step."""
    width = max(1, _BLOCK // max(1, v.numel()))
    return [slice(start, start + width) for start in range(0, k.size(-1), width)]


def _outer(k: Tensor, values: Tensor) -> Tensor:
    return (k.unsqueeze(-1) * values.unsqueeze(-2)).flatten(2)


@torch.library.custom_op(
    'pyg_topomask::attend_features',
    mutates_args=(),
    schema='(Tensor q, Tensor k, Tensor v, Tensor[] tensors, str structure) -> (Tensor, Tensor)',
)
def _attend_features(q: Tensor, k: Tensor, v: Tensor, tensors: Sequence[Tensor], structure: str) -> tuple[Tensor, Tensor]:
    mask, values = structure_from_key(structure), _with_ones(v)
    total = torch.zeros_like(values)
    for part in _slices(k, values):
        product = mask.apply(tensors, _outer(k[..., part], values)).unflatten(2, (-1, values.size(-1)))
        total += torch.einsum('nhs,nhsd->nhd', q[..., part], product)
    magnitude = (q.abs() * mask.magnitude(tensors, k.abs())).sum(-1)
    inverse = inverse_weight(total[..., -1], magnitude)
    return total[..., :-1] * inverse.unsqueeze(-1), inverse


@_attend_features.register_fake
def _(q: Tensor, k: Tensor, v: Tensor, tensors: Sequence[Tensor], structure: str) -> tuple[Tensor, Tensor]:
    return v.new_empty(v.shape), q.new_empty(q.shape[:2])


@torch.library.custom_op(
    'pyg_topomask::attend_features_backward',
    mutates_args=(),
    schema='(Tensor grad, Tensor out, Tensor inverse, Tensor q, Tensor k, Tensor v, Tensor[] tensors, int[] learnable, '
    'str structure) -> Tensor[]',
)
def _attend_features_backward(
    grad: Tensor,
    out: Tensor,
    inverse: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    tensors: Sequence[Tensor],
    learnable: Sequence[int],
    structure: str,
) -> list[Tensor]:
    own, values = structure_from_key(structure), _with_ones(v)
    numerator, denominator = _grad_total(grad, out, inverse)
    grad = torch.cat([numerator, denominator.unsqueeze(-1)], dim=-1)
    grad_q, grad_k, grad_values = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(values)
    grads = [torch.zeros_like(tensors[index]) for index in learnable]

    def apply(x: Tensor, *changed: Tensor) -> Tensor:
        merged = list(tensors)
        for index, tensor in zip(learnable, changed, strict=True):
            merged[index] = tensor
        return own.apply(merged, x)

    for part in _slices(k, values):
        x = _outer(k[..., part], values)
        forward: Any = torch.func.vjp(apply, x, *(tensors[index] for index in learnable))
        product, pull = forward
        product = product.unflatten(2, (-1, values.size(-1)))
        grad_q[..., part] = torch.einsum('nhd,nhsd->nhs', grad, product)
        slice_grads: list[Tensor] = list(pull(_outer(q[..., part], grad)))
        grad_x = slice_grads.pop(0).unflatten(2, (-1, values.size(-1)))
        grad_k[..., part] = torch.einsum('nhsd,nhd->nhs', grad_x, values)
        grad_values += torch.einsum('nhsd,nhs->nhd', grad_x, k[..., part])
        for total, slice_grad in zip(grads, slice_grads, strict=True):
            total += slice_grad
    return [grad_q, grad_k, grad_values[..., :-1].contiguous(), *grads]


@_attend_features_backward.register_fake
def _(
    grad: Tensor,
    out: Tensor,
    inverse: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    tensors: Sequence[Tensor],
    learnable: Sequence[int],
    structure: str,
) -> list[Tensor]:
    return [tensor.new_empty(tensor.shape) for tensor in (q, k, v, *(tensors[index] for index in learnable))]


def _setup_features(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    q, k, v, tensors, structure = inputs
    ctx.save_for_backward(*output, q, k, v, *tensors)
    ctx.structure = structure
    ctx.learnable = [index for index, tensor in enumerate(tensors) if tensor.requires_grad]


def _backward_features(ctx: Any, grad: Tensor, _: Tensor | None) -> tuple[Any, ...]:
    out, inverse, q, k, v, *tensors = ctx.saved_tensors
    grads = _attend_features_backward(grad, out, inverse, q, k, v, tensors, ctx.learnable, ctx.structure)
    grad_tensors: list[Tensor | None] = [None] * len(tensors)
    for index, own in zip(ctx.learnable, grads[3:], strict=True):
        grad_tensors[index] = own
    return (*grads[:3], grad_tensors, None)


_attend_features.register_autograd(_backward_features, setup_context=_setup_features)
