r"""The combine step: linear attention with any mask operator, without forming the attention matrix of large graphs."""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch

import torch
from torch import Tensor

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.segments import Segments
from pyg_topomask.operators.base import Heads, MaskOperator
from pyg_topomask.operators.description import describe
from pyg_topomask.operators.forms import PreparedBlocks
from pyg_topomask.ops.normalize import balanced, quotient
from pyg_topomask.ops.routes.blocks import attend_blocks, attend_prepared_blocks
from pyg_topomask.ops.routes.choice import choose_route, prepared_blocks
from pyg_topomask.ops.routes.edges import attend_entries
from pyg_topomask.ops.routes.features import attend_features
from pyg_topomask.ops.routes.low_rank import attend_low_rank, attend_low_rank_batch, graphs_at_a_time, scale_of_shared
from pyg_topomask.utils.checks import check_nodes
from pyg_topomask.utils.precision import wide_dtype


def masked_linear_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: MaskOperator,
    route: str = 'auto',
    rows: Tensor | None = None,
) -> Tensor:
    r"""Linear attention with scores multiplied by a mask, from `"From block-Toeplitz matrices to differential equations
    on graphs" <https://arxiv.org/abs/2107.07999>`_ (Algorithm 1) and `"Linear Transformer Topological Masking with Graph
    Random Features" <https://arxiv.org/abs/2410.03462>`_ (Eq. 2, 7 and 12):

    .. math::
        \mathbf{y}_i = \frac{\sum_j M_{ij} \, (\mathbf{q}_i^{\top} \mathbf{k}_j) \, \mathbf{v}_j}
        {\sum_j M_{ij} \, (\mathbf{q}_i^{\top} \mathbf{k}_j)}

    The :math:`N \times N` matrix is not formed, except by the route :obj:`"blocks"` on small graphs. Memory is
    :math:`O(N H (m + d))` plus the tensors of the mask. This includes the backward pass, which recomputes intermediate results.
    Sums are accumulated at least in float32, also under autocast. A row with zero weights has output 0 and gradient 0. Second
    and higher derivatives are supported. They take :math:`O(N H m d)` memory, or one number per entry of the mask and head.

    Args:
        q (torch.Tensor): Query features :math:`\phi(\mathbf{q})`, :obj:`[N, H, m]`.
        k (torch.Tensor): Key features :math:`\phi(\mathbf{k})`, :obj:`[N, H, m]`.
        v (torch.Tensor): Values, :obj:`[N, H, d]`.
        mask (MaskOperator): The bound mask, :math:`H \times N \times N`.
        route (str): One of :obj:`"auto"`; :obj:`"features"`, which multiplies one slice of features by the mask at a time;
            :obj:`"blocks"`, which forms the mask of each graph, for batches of small graphs; :obj:`"edges"`, which computes
            scores at the entries of a sparse mask; and :obj:`"low_rank"`, which computes sums over each graph for low-rank
            masks. (default: :obj:`"auto"`)
        rows (torch.Tensor, optional): Compute only the outputs of these nodes, :obj:`[R]`; :obj:`q` then contains only their
            queries, :obj:`[R, H, m]`. This works for low-rank masks on one graph, with the route :obj:`"low_rank"`.
            (default: :obj:`None`, all nodes)

    Returns:
        torch.Tensor: :obj:`[N, H, d]`, or :obj:`[R, H, d]`, in the data type of :obj:`v`.

    Raises:
        ValueError: If shapes do not match, or the mask does not support the route or has too many entries for it.

    Example:
        >>> import torch
        >>> from pyg_topomask.graphs.graph import Graph
        >>> from pyg_topomask.masks import PackingMask
        >>> q = k = v = torch.ones(3, 2, 4)
        >>> mask = PackingMask(heads=2)(Graph.from_tensors(torch.empty(2, 0, dtype=torch.long), num_nodes=3))
        >>> masked_linear_attention(q, k, v, mask).shape
        torch.Size([3, 2, 4])
    """
    if rows is not None:
        _check_rows(rows, q, k, mask, route)
    check_shapes(q if rows is None else k, k, v, mask)
    if isinstance(mask, Heads):
        split = zip(q.split(mask.widths, 1), k.split(mask.widths, 1), v.split(mask.widths, 1), mask.terms, strict=True)
        with torch.autocast(device_type=q.device.type, enabled=False):  # joins what has the data type of v
            return torch.cat([masked_linear_attention(*each, route, rows) for each in split], dim=1)
    return linear_attention_on(mask.segments, q, k, v, mask, route, rows)


@singledispatch
def linear_attention_on(
    segments: Segments, q: Tensor, k: Tensor, v: Tensor, mask: MaskOperator, route: str, rows: Tensor | None
) -> Tensor:
    r"""Attends to the nodes of whole graphs. Nodes of several processes attend otherwise."""
    route = choose_route(mask, q.size(-1), v.size(-1), route)
    dtype = wide_dtype(q, v)
    with torch.autocast(device_type=q.device.type, enabled=False):
        q, k, values, scale_v = balanced(q.to(dtype), k.to(dtype), v.to(dtype), segments.maximum)
        out: Tensor = _low_rank(q, k, values, mask, rows) if route == 'low_rank' else _ATTEND[route](q, k, values, mask)
        if scale_v is not None:
            out = out * (scale_v if rows is None else scale_v.index_select(0, rows))
        return out.to(v.dtype)


def _check_rows(rows: Tensor, q: Tensor, k: Tensor, mask: MaskOperator, route: str) -> None:
    if rows.dim() != 1 or q.shape != (rows.numel(), *k.shape[1:]):
        raise ArgumentError(
            'rows',
            f'shape {tuple(rows.shape)} for q of shape {tuple(q.shape)} and k of shape {tuple(k.shape)}',
            '[R] with [R, H, m] and [N, H, m]',
        )
    if not mask.is_low_rank or mask.segments.several or route not in ('auto', 'low_rank'):
        raise ArgumentError('rows', f'rows of {mask!r} on route {route!r}', 'masks of low rank on one graph')
    if rows.device.type == 'cpu' and not torch.compiler.is_compiling():  # a GPU would have to be waited for
        check_nodes(k.size(0), rows=rows)


def _edges(q: Tensor, k: Tensor, v: Tensor, mask: MaskOperator) -> Tensor:
    sparse = mask.entries
    assert sparse is not None
    entries, column_scale = sparse.without_row_scale()
    k = k if column_scale is None else k * column_scale.to(k.dtype).unsqueeze(-1)
    return attend_entries(q, k, v, [entries.values.to(q.dtype)], entries.positions)[0]


def _low_rank(q: Tensor, k: Tensor, v: Tensor, mask: MaskOperator, rows: Tensor | None) -> Tensor:
    factors_of_mask = mask.low_rank
    assert factors_of_mask is not None
    left, right = factors_of_mask.left, factors_of_mask.right
    if not mask.segments.several:
        return attend_low_rank(q, k, v, (left if rows is None else left.index_select(0, rows), right))
    scale = scale_of_shared(left, right)
    factors = [] if scale is not None else [side.to(q.dtype).expand(-1, q.size(1), -1) for side in (left, right)]
    q = q if scale is None else q * scale.to(q.dtype)
    constants = mask.segments.constants(graphs_at_a_time(q.size(1), q.size(2), v.size(2)))
    return attend_low_rank_batch(q, k, v, factors, constants)[0]


def _blocks(q: Tensor, k: Tensor, v: Tensor, mask: MaskOperator) -> Tensor:
    if (blocks := prepared_blocks(mask)) is not None:
        return _prepared_blocks(q, k, v, blocks, mask.segments)
    tensors, text = describe(mask)
    return attend_blocks(q, k, v, tensors, mask.segments.constants(), text, mask.heads)[0]


def _prepared_blocks(q: Tensor, k: Tensor, v: Tensor, blocks: PreparedBlocks, segments: Segments) -> Tensor:
    k = k if blocks.column_scale is None else k * blocks.column_scale.to(k.dtype).unsqueeze(-1)
    coefficients, terms = blocks.coefficients.to(q.dtype), blocks.terms(segments, q.dtype)
    out, inverse = attend_prepared_blocks(q, k, v, [coefficients, terms], [segments.ptr])
    if blocks.magnitude is None:
        return out
    with torch.no_grad():
        magnitude = (q.abs() * blocks.magnitude(k.abs())).sum(-1)
        empty = 16 * torch.finfo(q.dtype).eps * magnitude * inverse.abs() >= 1
    return out.masked_fill(empty.unsqueeze(-1), 0.0)


def _features(q: Tensor, k: Tensor, v: Tensor, mask: MaskOperator) -> Tensor:
    tensors, text = describe(mask)
    return attend_features(q, k, v, tensors, [], text)[0]


_ATTEND: dict[str, Callable[[Tensor, Tensor, Tensor, MaskOperator], Tensor]] = {
    'edges': _edges,
    'blocks': _blocks,
    'features': _features,
}


def check_shapes(q: Tensor, k: Tensor, v: Tensor, mask: MaskOperator) -> None:
    if q.dim() != 3 or q.shape != k.shape:
        raise ArgumentError('k', f'shape {tuple(k.shape)} for q of shape {tuple(q.shape)}', 'equal shapes [N, H, m]')
    if v.dim() != 3 or v.shape[:2] != q.shape[:2]:
        raise ArgumentError('v', f'shape {tuple(v.shape)} for q of shape {tuple(q.shape)}', '[N, H, d]')
    if mask.segments.num_nodes != q.size(0) or mask.heads not in (1, q.size(1)):
        raise ArgumentError(
            'mask',
            f'{mask.heads} heads and {mask.segments.num_nodes} nodes for q of shape {tuple(q.shape)}',
            f'a mask bound to the same nodes, with 1 or {q.size(1)} heads',
        )


def dense_linear_attention(q: Tensor, k: Tensor, v: Tensor, mask: MaskOperator) -> Tensor:
    r"""Masked linear attention with one dense :math:`n \times n` matrix for a batch of :obj:`B` inputs of :obj:`n` tokens. It
    is fast for small :obj:`n`. Queries and keys are features :obj:`[B, n, H, m]`, and the values and the output are :obj:`[B,
    n, H, d]`.

    Example:
        >>> from pyg_topomask.graphs.graph import Graph
        >>> from pyg_topomask.masks import AdjacencyMask
        >>> mask = AdjacencyMask()(Graph.from_tensors(torch.tensor([[0], [1]]), num_nodes=2))
        >>> dense_linear_attention(*torch.ones(3, 5, 2, 1, 4), mask).shape
        torch.Size([5, 2, 1, 4])
    """
    dtype = wide_dtype(q, v)
    with torch.autocast(v.device.type, enabled=False):
        scaled = balanced(q.to(dtype), k.to(dtype), v.to(dtype), lambda x: x.amax(1, keepdim=True).expand_as(x))
        query, key, value = (tensor.transpose(1, 2) for tensor in scaled[:3])
        weight = query @ key.transpose(2, 3) * mask.to_dense().to(dtype)
        total = weight.sum(-1, keepdim=True)
        out = quotient(weight @ value, total, weight.detach().abs().sum(-1, keepdim=True))
        out = out.transpose(1, 2)
        return (out if scaled[3] is None else out * scaled[3]).to(v.dtype)
