r"""The combine step: linear attention with any mask operator, without forming the attention matrix."""

from __future__ import annotations

import torch
from torch import Tensor

from pyg_topomask.capabilities import Blocks
from pyg_topomask.errors import ArgumentError
from pyg_topomask.functorch import is_transforming
from pyg_topomask.operators import MaskOperator
from pyg_topomask.ops.numba_backend import uses_numba
from pyg_topomask.ops.polynomial import PolynomialStructure
from pyg_topomask.ops.routes.blocks import attend_blocks
from pyg_topomask.ops.routes.combined import attend_combined
from pyg_topomask.ops.routes.edges import attend_entries, multiplications_for_one
from pyg_topomask.ops.routes.features import attend_features
from pyg_topomask.ops.routes.low_rank import attend_low_rank, scale_of_shared
from pyg_topomask.ops.routes.low_rank_batch import attend_low_rank_batch, graphs_at_a_time
from pyg_topomask.ops.routes.products import attend_products
from pyg_topomask.ops.scaling import balanced
from pyg_topomask.ops.sparse_matmul import SparseStructure
from pyg_topomask.segments import Segments

__all__ = ['masked_linear_attention']

ROUTES = ('auto', 'features', 'products', 'blocks', 'edges', 'low_rank')

# Entries in all heads up to which the edges route is chosen: its gradients take some ten numbers for each.
_CHOSEN = 2**27
# Numbers in the blocks of all heads up to which they are chosen though queries and values take less; and at most.
_FEW, _MOST = 2**24, 2**28
# Numbers in the blocks that a mask is combined of, of all terms together, up to which they are prepared: 256 MB.
_PREPARED = 2**26
# How many multiplications with prepared blocks take as long as one of the features route, as measured: with machine code and
# without.
_DENSE_COMPILED, _DENSE = 7, 4
# What a polynomial takes by machine code: of the multiplications of other masks, and for each product of features and values.
_POLYNOMIAL, _SPREAD = 0.4, 2.5
# How many multiplications of their preparation take as long as one of the features route in all passes of a step.
_SHARED = 3
# What making the products of features and values takes, in multiplications for each: between 1.4 and 11 as measured.
_OUTER = 4
# What the sums of a mask of low rank over each graph take, likewise; about the same for all ranks beside blocks.
_SUMS = 1.5


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

    The :math:`N \times N` matrix is never formed. Memory is :math:`O(N H (m + d))` plus the tensors of the mask. This includes
    the backward pass, which recomputes intermediate results. Only the route :obj:`"products"` stores them. Sums are accumulated
    at least in float32, also under autocast. A row with zero weights has output 0 and gradient 0. Second and
    higher derivatives are supported. They take :math:`O(N H m d)` memory, or one number per entry of the mask and head.

    Args:
        q (torch.Tensor): Query features :math:`\phi(\mathbf{q})`, :obj:`[N, H, m]`.
        k (torch.Tensor): Key features :math:`\phi(\mathbf{k})`, :obj:`[N, H, m]`.
        v (torch.Tensor): Values, :obj:`[N, H, d]`.
        mask (MaskOperator): The bound mask, :math:`H \times N \times N`.
        route (str): One of :obj:`"auto"`; :obj:`"features"`, which multiplies one slice of features by the mask at a time;
            :obj:`"products"`, which multiplies all features at once, stores these :math:`O(N H m d)` numbers for the backward
            pass, and trains power series and heat kernels in about two thirds of the time; :obj:`"blocks"`, which forms the
            mask of each graph, for batches of small graphs; :obj:`"edges"`, which computes scores at the entries of a sparse
            mask; and :obj:`"low_rank"`, which computes sums over each graph for low-rank masks. :obj:`"auto"` never selects
            :obj:`"products"`.
            (default: :obj:`"auto"`)
        rows (torch.Tensor, optional): Compute only the outputs of these nodes, :obj:`[R]`; :obj:`q` then contains only their
            queries, :obj:`[R, H, m]`. This works for low-rank masks on one graph, with the route :obj:`"low_rank"`.
            (default: :obj:`None`, all nodes)

    Returns:
        torch.Tensor: :obj:`[N, H, d]`, or :obj:`[R, H, d]`, in the data type of :obj:`v`.

    Raises:
        ValueError: If shapes do not match, or the mask does not support the route or has too many entries for it.

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
            raise ArgumentError(
                'rows',
                f'shape {tuple(rows.shape)} for q of shape {tuple(q.shape)} and k of shape {tuple(k.shape)}',
                '[R] with [R, H, m] and [N, H, m]',
            )
        if mask.low_rank is None or mask.segments.several or route not in ('auto', 'low_rank'):
            raise ArgumentError('rows', f'rows of {mask!r} on route {route!r}', 'masks of low rank on one graph')
    check_shapes(q if rows is None else k, k, v, mask)
    if mask.operators:
        heads = [operator.heads for operator in mask.operators]
        split = zip(q.split(heads, 1), k.split(heads, 1), v.split(heads, 1), mask.operators, strict=True)
        with torch.autocast(device_type=q.device.type, enabled=False):  # joins what has the data type of v
            return torch.cat([masked_linear_attention(*each, route, rows) for each in split], dim=1)
    if mask.segments.shard is not None:
        attended: Tensor = mask.segments.shard.linear_attention(q, k, v, mask, route)
        return attended
    route = choose_route(mask, q.size(-1), v.size(-1), route)
    if route == 'products' and is_transforming():  # these keep no products, and vmap takes no sparse ones
        route = 'features'
    dtype = torch.promote_types(torch.promote_types(q.dtype, v.dtype), torch.float32)
    with torch.autocast(device_type=q.device.type, enabled=False):
        out: Tensor
        q, k, values, scale_v = balanced(q.to(dtype), k.to(dtype), v.to(dtype), mask.segments.maximum)
        if route == 'edges':
            assert mask.entries is not None
            entries, columns = mask.entries.up_to_rows()
            k = k if columns is None else k * columns.to(dtype).unsqueeze(-1)
            out = attend_entries(q, k, values, [entries.value.to(dtype)], list(entries.pattern.tensors))[0]
        elif route == 'low_rank':
            assert mask.low_rank is not None
            left, right = mask.low_rank.left, mask.low_rank.right
            if mask.segments.several:
                scale = scale_of_shared(left, right)
                factors = [] if scale is not None else [side.to(dtype).expand(-1, q.size(1), -1) for side in (left, right)]
                q = q if scale is None else q * scale.to(dtype)
                constants = mask.segments.constants(graphs_at_a_time(q.size(1), q.size(2), v.size(2)))
                out = attend_low_rank_batch(q, k, values, factors, constants)[0]
            else:
                out = attend_low_rank(q, k, values, (left if rows is None else left.index_select(0, rows), right))
        elif route == 'products':
            out = attend_products(q, k, values, mask.product)
        elif route == 'blocks' and (blocks := _prepared(mask)) is not None:
            k = k if blocks.columns is None else k * blocks.columns.to(dtype).unsqueeze(-1)
            out = _attend_blocks(q, k, values, blocks, mask.segments)
        else:
            tensors, structure = list(mask.product.tensors), mask.product.structure.key
            if route == 'blocks':
                out = attend_blocks(q, k, values, tensors, mask.segments.constants(), structure, mask.heads)[0]
            else:
                out = attend_features(q, k, values, tensors, [], structure)[0]
        if scale_v is not None:
            out = out * (scale_v if rows is None else scale_v.index_select(0, rows))
        return out.to(v.dtype)


def choose_route(mask: MaskOperator, num_features: int, num_channels: int, route: str = 'auto') -> str:
    r"""Returns the route that :func:`masked_linear_attention` takes for a mask, by counting multiplications.

    On a CPU, masks whose blocks are combinations of prepared blocks use the blocks route if these have at most :obj:`2**26`
    numbers and take less time than the other routes, including the preparation. Next, sparse masks use the edges route if it
    takes no more multiplications than the features route (on a CPU with Numba, no more than twice as many), and the mask has at
    most :obj:`2**27` entries in all heads. With Numba, multiplications of a polynomial on the features route count less than
    half. Other masks use the blocks route if it takes fewer multiplications, and the blocks have at most :obj:`2**24` numbers
    or no more than queries, keys and values. Otherwise, low-rank masks use low_rank, and all other masks use features.
    :func:`torch.compile` does not know the sizes of graphs, so under it the blocks route is available only if an earlier call
    prepared the blocks. The products route is never selected.

    Args:
        mask (MaskOperator): The bound mask.
        num_features (int): The number of query and key features :math:`m`.
        num_channels (int): The number of value channels :math:`d`.
        route (str): The requested route. (default: :obj:`"auto"`)

    Returns:
        str: :obj:`"features"`, :obj:`"products"`, :obj:`"blocks"`, :obj:`"edges"` or :obj:`"low_rank"`.
    """
    offered = {'features', 'products', 'blocks'}
    if mask.entries is not None:
        offered.add('edges')
    if mask.low_rank is not None:
        offered.add('low_rank')
    if route not in ROUTES or (route != 'auto' and route not in offered):
        raise ArgumentError('route', f'{route!r} for this mask', sorted({'auto', *offered}))
    segments, tracing = mask.segments, torch.compiler.is_compiling()
    numbers = segments.num_nodes * mask.heads
    if route == 'blocks' and not tracing and numbers * segments.largest > _MOST:
        raise ArgumentError('route', f'"blocks" for {mask!r}', f'up to {_MOST:,} numbers in the blocks of all heads')
    if route != 'auto':
        return route
    chosen = 'features' if mask.low_rank is None else 'low_rank'
    if isinstance(numbers, torch.SymInt):  # an exported program, for graphs of any size
        return 'edges' if isinstance(mask.product.structure, SparseStructure) else chosen
    if chosen == 'low_rank' and not segments.several:
        return chosen
    outer, pair = num_features * (num_channels + 1), num_features + num_channels + 1
    most, cost = None if mask.entries is None else mask.entries.most, mask.product.cost
    device = segments.device or torch.device('cpu')
    compiled, for_one = uses_numba('auto', device), multiplications_for_one(device)
    features = cost * outer
    if compiled and isinstance(mask.product.structure, PolynomialStructure):
        features = round((_POLYNOMIAL * cost + _SPREAD * segments.num_nodes) * outer)
    sparse = most is not None and most * mask.heads <= _CHOSEN and most * pair <= for_one * features
    if (blocks := _prepared(mask)) is not None:
        if tracing:
            return 'blocks'
        once = (blocks.cost * segments.largest + 2 * blocks.count * segments.num_pairs) / (_SHARED * mask.heads)
        dense = segments.num_pairs * (pair + blocks.count) / (_DENSE_COMPILED if compiled else _DENSE)
        others = most * pair / for_one if sparse and most is not None else features
        if once + dense <= others:
            return 'blocks'
    if sparse:
        return 'edges'
    if not tracing:
        small = numbers * segments.largest <= max(_FEW, numbers * pair)
        if chosen == 'low_rank':
            cheaper = segments.num_pairs * pair < _SUMS * segments.num_nodes * outer
        else:
            cheaper = cost * segments.largest + segments.num_pairs * pair < features + _OUTER * segments.num_nodes * outer
        if small and cheaper:
            chosen = 'blocks'
    return chosen


def _prepared(mask: MaskOperator) -> Blocks | None:
    r"""Returns the prepared blocks of a mask, if they are few, on a CPU; under torch.compile, if an earlier call made them."""
    if mask.blocks is None or mask.blocks.coefficients.device.type != 'cpu':
        return None
    if torch.compiler.is_compiling():
        return mask.blocks if mask.blocks.kept else None
    numbers = mask.blocks.count * mask.segments.num_pairs
    return mask.blocks if numbers <= _PREPARED else None


def _attend_blocks(q: Tensor, k: Tensor, v: Tensor, blocks: Blocks, segments: Segments) -> Tensor:
    coefficients, terms = blocks.coefficients.to(q.dtype), blocks.terms(segments, q.dtype)
    out, inverse = attend_combined(q, k, v, [coefficients], [segments.ptr, terms])
    if blocks.magnitude is None:
        return out
    with torch.no_grad():
        magnitude = (q.abs() * blocks.magnitude(k.abs())).sum(-1)
        empty = 16 * torch.finfo(q.dtype).eps * magnitude * inverse.abs() >= 1
    return out.masked_fill(empty.unsqueeze(-1), 0.0)


def check_shapes(q: Tensor, k: Tensor, v: Tensor, mask: MaskOperator) -> None:
    if q.dim() != 3 or q.shape != k.shape:
        raise ArgumentError('k', f'shape {tuple(k.shape)} for q of shape {tuple(q.shape)}', 'equal shapes [N, H, m]')
    if v.dim() != 3 or v.shape[:2] != q.shape[:2]:
        raise ArgumentError('v', f'shape {tuple(v.shape)} for q of shape {tuple(q.shape)}', '[N, H, d]', verb='is')
    if mask.segments.num_nodes != q.size(0) or mask.heads not in (1, q.size(1)):
        raise ArgumentError(
            'mask',
            f'{mask.heads} heads and {mask.segments.num_nodes} nodes for q of shape {tuple(q.shape)}',
            f'a mask bound to the same nodes, with 1 or {q.size(1)} heads',
            verb='is',
        )
