r"""Which route masked linear attention takes: the one with the fewest multiplications."""

from __future__ import annotations

import math

import torch

from pyg_topomask.errors import ArgumentError
from pyg_topomask.machine.backend import uses_numba
from pyg_topomask.operators.base import MaskOperator
from pyg_topomask.operators.forms import PreparedBlocks
from pyg_topomask.operators.sparse import Sparse

ROUTES = ('auto', 'features', 'blocks', 'edges', 'low_rank')

# The sizes bound memory. The factors were measured on one core of a CPU: python -m benchmarks hot_paths layers
#: Entries in all heads up to which the edges route is chosen: its gradients take two numbers for each.
_MOST_ENTRIES = 2**28
#: How many multiplications with entries take as long as one of the features route, with Numba and without.
_SPARSE_COMPILED, _SPARSE = 2, 1
#: Numbers in the blocks of all heads up to which they are formed even if queries and values take less; and at most.
_FEW_IN_BLOCKS, _MOST_IN_BLOCKS = 2**24, 2**28
#: Numbers up to which blocks are prepared, in all terms together: 256 MB.
_MOST_PREPARED = 2**26
#: How many multiplications with prepared blocks take as long as one of the features route, with Numba and without.
_DENSE_COMPILED, _DENSE = 7, 4
#: What looking up the entry of a label takes, in multiplications with prepared blocks: python -m benchmarks distance_batches
_LOOKUP = 8
#: How many multiplications of their preparation take as long as one of the features route in all passes of a step.
_SHARED = 3
#: What masks with machine code of attention take: a share of the multiplications of other masks, and some for each product of a
#: feature and a channel.
_COMPILED, _SPREAD = 0.4, 2.5
#: What making the products of features and channels takes, in multiplications for each: between 1.4 and 11.
_OUTER = 4
#: What the sums of a mask of low rank over each graph take, likewise. It hardly depends on the rank.
_SUMS = 1.5


def choose_route(mask: MaskOperator, num_features: int, num_channels: int, route: str = 'auto') -> str:
    r"""Returns the route that :func:`~pyg_topomask.ops.masked_linear_attention` takes for a mask and so many features and
    channels, by counting multiplications, or the requested route, if the mask supports it. A mask of low rank on one graph
    takes :obj:`"low_rank"`. An exported program takes :obj:`"edges"` for a :class:`~pyg_topomask.operators.Sparse` operator,
    and sums otherwise. In all other cases, the first rule that holds decides:

    - :obj:`"blocks"`, if combinations of prepared blocks cost least, including the preparation, on a CPU. :func:`torch.compile`
      does not know the sizes of graphs. Under it, they are taken if an earlier call prepared them.
    - :obj:`"edges"`, if the entries of a sparse mask cost no more than the products of the features route.
    - :obj:`"blocks"`, if forming them costs less than the routes below, and they are small.
    - :obj:`"low_rank"` for masks of low rank, and :obj:`"features"` for all others.
    """
    segments, tracing, is_low_rank = mask.segments, torch.compiler.is_compiling(), mask.is_low_rank
    _check(mask, route, is_low_rank, tracing)
    if route != 'auto':
        return route
    sums = 'low_rank' if is_low_rank else 'features'
    if _of_any_size(mask):
        return 'edges' if isinstance(mask.formed(), Sparse) else sums
    if sums == 'low_rank' and not segments.several:
        return sums
    products, pair = num_features * (num_channels + 1), num_features + num_channels + 1
    compiled = uses_numba(segments.device or torch.device('cpu'))
    features, entries = _cost_of_features(mask, products, compiled), _cost_of_edges(mask, pair, compiled)
    if _cost_of_prepared_blocks(mask, pair, compiled, tracing) <= min(features, entries):
        return 'blocks'
    if entries <= features:
        return 'edges'
    return 'blocks' if not tracing and _forming_blocks_pays(mask, products, pair, features) else sums


def prepared_blocks(mask: MaskOperator) -> PreparedBlocks | None:
    r"""Returns the prepared blocks of a mask, if they are few, on a CPU; under torch.compile, if an earlier call made them."""
    blocks, segments = mask.blocks, mask.segments
    if blocks is None or blocks.coefficients.device.type != 'cpu':
        return None
    if torch.compiler.is_compiling():
        return blocks if blocks.cache else None
    # While they are prepared, graphs may be padded to the largest one.
    prepared, padded = blocks.count * segments.num_pairs, segments.num_nodes * segments.largest
    return blocks if max(prepared, padded // 2) <= _MOST_PREPARED else None


def _check(mask: MaskOperator, route: str, is_low_rank: bool, tracing: bool) -> None:
    offered = {'features', 'blocks'}
    if mask.entries is not None:
        offered.add('edges')
    if is_low_rank:
        offered.add('low_rank')
    if route not in ROUTES or (route != 'auto' and route not in offered):
        raise ArgumentError('route', f'{route!r} for this mask', ', '.join(sorted({'auto', *offered})))
    segments = mask.segments
    if route == 'blocks' and not tracing and segments.num_nodes * mask.heads * segments.largest > _MOST_IN_BLOCKS:
        raise ArgumentError('route', f'"blocks" for {mask!r}', f'up to {_MOST_IN_BLOCKS:,} numbers in the blocks of all heads')


def _of_any_size(mask: MaskOperator) -> bool:
    r"""Returns whether a mask is that of an exported program, for any number of nodes or of entries."""
    entries = None if isinstance(mask.segments.num_nodes, torch.SymInt) else mask.entries
    return any(isinstance(size, torch.SymInt) for size in (mask.segments.num_nodes, getattr(entries, 'max_nnz', None)))


def _cost_of_features(mask: MaskOperator, products: int, compiled: bool) -> float:
    r"""Multiplications per head of the features route, for products of a feature and a channel."""
    if compiled and mask.has_machine_code():
        return (_COMPILED * mask.cost + _SPREAD * mask.segments.num_nodes) * products
    return mask.cost * products


def _cost_of_edges(mask: MaskOperator, pair: int, compiled: bool) -> float:
    r"""What the edges route takes, in multiplications of the features route, if it is available."""
    entries = mask.entries
    nnz = None if entries is None else entries.max_nnz
    if nnz is None or nnz * mask.heads > _MOST_ENTRIES:
        return math.inf
    return nnz * pair / (_SPARSE_COMPILED if compiled else _SPARSE)


def _cost_of_prepared_blocks(mask: MaskOperator, pair: int, compiled: bool, tracing: bool) -> float:
    r"""What prepared blocks take, in multiplications of the features route, if they are available."""
    blocks, segments = prepared_blocks(mask), mask.segments
    if blocks is None:
        return math.inf
    if tracing:
        return 0.0
    once = (blocks.cost * segments.largest + 2 * blocks.count * segments.num_pairs) / mask.heads
    once = once if blocks.cache is None else once / _SHARED
    forming = segments.num_pairs * blocks.count
    if blocks.labels:  # each graph adds up a gradient for each coefficient
        forming = _LOOKUP * forming + segments.num_graphs * blocks.coefficients.size(1)
    return once + (segments.num_pairs * pair + forming) / (_DENSE_COMPILED if compiled else _DENSE)


def _forming_blocks_pays(mask: MaskOperator, products: int, pair: int, features: float) -> bool:
    r"""Whether blocks that each call forms are small, and take less than sums over each graph or products of features."""
    segments, numbers = mask.segments, mask.segments.num_nodes * mask.heads
    if numbers * segments.largest > max(_FEW_IN_BLOCKS, numbers * pair):
        return False
    if mask.is_low_rank:
        return segments.num_pairs * pair < _SUMS * segments.num_nodes * products
    formed = mask.cost * segments.largest + segments.num_pairs * pair
    return formed < features + _OUTER * segments.num_nodes * products
