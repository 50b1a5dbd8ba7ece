r"""Softmax attention with the logarithm of a mask as bias. Rows of masks without entries are formed some at a time, and again
in the backward pass."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import singledispatch
from typing import Any, NamedTuple

import torch
from torch import Tensor

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.segments import SegmentGroup, Segments, groups_of_constants
from pyg_topomask.operators.base import Heads, LowRank, MaskOperator
from pyg_topomask.operators.description import describe, register
from pyg_topomask.operators.forms import Entries, Slots
from pyg_topomask.ops.attention_op import AttentionInputs, all_pairs, attention_op
from pyg_topomask.ops.masked_linear_attention import check_shapes
from pyg_topomask.ops.normalize import capped, moderate, row_size
from pyg_topomask.ops.routes.choice import prepared_blocks
from pyg_topomask.ops.softmax_entries import attend_softmax, check_range, plain_softmax, scaled_queries
from pyg_topomask.utils.checks import check_probability
from pyg_topomask.utils.functorch import readable, unwrapped
from pyg_topomask.utils.precision import wide_dtype
from pyg_topomask.utils.random import splitmix


def masked_softmax_attention(q: Tensor, k: Tensor, v: Tensor, mask: MaskOperator, dropout: float = 0.0) -> Tensor:
    r"""Softmax attention with exponentiated scores multiplied by a mask, from `"From block-Toeplitz matrices to differential
    equations on graphs" <https://arxiv.org/abs/2107.07999>`_ (Eq. 1) and `"Linear Transformer Topological Masking with Graph
    Random Features" <https://arxiv.org/abs/2410.03462>`_ (Sec. 2, Eq. 28, App. C.4):

    .. math::
        \mathbf{y}_i = \sum_j \alpha_{ij} \mathbf{v}_j, \qquad
        \alpha_{ij} = \frac{M_{ij} \exp(\mathbf{q}_i^{\top} \mathbf{k}_j / \sqrt{d})}{\sum_{j'} M_{ij'}
        \exp(\mathbf{q}_i^{\top} \mathbf{k}_{j'} / \sqrt{d})}

    which is softmax attention with the bias :math:`\log M_{ij}`. Zero entries of the mask get no attention and no gradient, so
    learnable entries must start above zero. The output of a row without entries is 0. Scores and sums are at least in float32,
    also under autocast.

    Over the entries of a sparse mask, time and memory are linear in their number. For other masks, all pairs of nodes of a
    graph are compared. Rows of the mask are formed some at a time, and again in the backward pass, so that memory is linear in
    the number of nodes. Beyond that, a CPU keeps terms of heat kernels and exact RWGNKs, up to 256 MB, which no parameter
    changes. Second derivatives take a number for each pair.

    Args:
        q (torch.Tensor): Queries, :obj:`[N, H, d]`.
        k (torch.Tensor): Keys, :obj:`[N, H, d]`.
        v (torch.Tensor): Values, :obj:`[N, H, d_v]`.
        mask (MaskOperator): The bound mask, without negative entries.
        dropout (float): Dropout probability of the attention coefficients. (default: :obj:`0.0`)

    Returns:
        torch.Tensor: :obj:`[N, H, d_v]`, in the data type of :obj:`v`.

    Raises:
        ValueError: If shapes do not match, a sparse mask has more than ``pyg_topomask.operators.forms.MAX_ENTRIES`` entries
            per head, a graph has more than 32,768 nodes and the mask is not sparse, or an entry is negative or not finite.

    Example:
        >>> from pyg_topomask.graphs.graph import Graph
        >>> from pyg_topomask.masks import AdjacencyMask
        >>> mask = AdjacencyMask()(Graph.from_tensors(torch.tensor([[0, 1], [1, 0]]), num_nodes=2))
        >>> masked_softmax_attention(*torch.ones(3, 2, 1, 4), mask).shape
        torch.Size([2, 1, 4])
    """
    check_shapes(q, k, v, mask)
    check_probability(dropout=dropout)
    return softmax_attention_on(mask.segments, q, k, v, mask, dropout)


@singledispatch
def softmax_attention_on(segments: Segments, q: Tensor, k: Tensor, v: Tensor, mask: MaskOperator, dropout: float) -> Tensor:
    r"""Attends to the nodes of whole graphs. Nodes of several processes attend otherwise."""
    if mask.entries is not None:
        return attend_softmax(q, k, v, mask.entries(), dropout)[0]
    dtype = wide_dtype(q, v)
    with torch.autocast(device_type=q.device.type, enabled=False):
        if isinstance(mask, Heads):
            split = zip(q.split(mask.widths, 1), k.split(mask.widths, 1), v.split(mask.widths, 1), mask.terms, strict=True)
            return torch.cat([softmax_attention_on(segments, *each, dropout) for each in split], dim=1)
        q, k = scaled_queries(q.to(dtype)), k.to(dtype)
        q = q if moderate(q, k) else capped(q, segments.maximum(row_size(k)))
        return attend_rows(q, k, v.to(dtype), _of_pairs(mask, dtype) or mask, dropout).to(v.dtype)


# Numbers in the rows of all heads that are formed at a time, and scores of all heads that stay in cache.
_FORMED, _TILE = 2**21, 2**17
# The largest number of nodes of a graph, all pairs of which are compared.
_LARGEST = 2**15
# The largest number of pairs whose coefficients are returned.
_MOST_PAIRS = 2**26
# Up to the second number, sums of entries times shares do not overflow. From the first on, what vanishes in them is negligible.
_LEAST, _MOST = 2.0**-60, 2.0**100
# Chances are whole numbers of 2^-63.
_CERTAIN = 2**63 - 1


@register
@dataclass(eq=False)
class _OfPairs:
    r"""The entries of a mask at all pairs of nodes of the same graph, as combinations of :math:`K` stored terms.

    Args:
        coefficients (torch.Tensor): The coefficients of the terms, :obj:`[H, K]`.
        terms (torch.Tensor): The terms of all pairs, by row, :obj:`[K, num_pairs]`.
        first (torch.Tensor): The place of the pair of each node and the node 0, which may be of another graph, :obj:`[N]`.
        column_scale (torch.Tensor, optional): Factors of columns, :obj:`[N, H]`.
        error (float): Entries between this error below 0 and 0 are 0.
        heads (int): The number of heads.
        segments (Segments): The division of the nodes into graphs, which what custom operators build does not know.
    """

    coefficients: Tensor
    terms: Tensor
    first: Tensor
    column_scale: Tensor | None
    error: float
    heads: int
    segments: Segments = field(default=None)  # type: ignore[assignment]

    def formed_at(self, keys: SegmentGroup, queries: SegmentGroup) -> Tensor:
        place = self.first[queries.source].unsqueeze(1) + keys.source.unsqueeze(2)
        entries = self.at(place.flatten()).view(self.coefficients.size(0), *place.shape)
        return entries if self.column_scale is None else entries * keys.take(self.column_scale.unsqueeze(-1))

    def at(self, place: Tensor) -> Tensor:
        r"""Returns the entries without factors of columns at some pairs, :obj:`[H, num_places]`."""
        values = self.coefficients @ self.terms.index_select(1, place)
        if self.error == 0:
            return values
        known = unwrapped(values)  # also while gradients are taken
        is_known = known.device.type == 'cpu' and not torch.compiler.is_compiling()
        if is_known and (known.numel() == 0 or bool(known.amin() > -self.error)):
            return values.relu()
        return values.masked_fill((values < 0) & (values > -self.error), 0.0)


def _of_pairs(mask: MaskOperator, dtype: torch.dtype) -> _OfPairs | None:
    r"""Returns the entries of a mask with prepared blocks, up to positive factors of rows, which cancel."""
    blocks, segments = prepared_blocks(mask), mask.segments
    if blocks is None or blocks.labels or blocks.error == math.inf:
        return None
    if blocks.cache is None and mask.heads * segments.num_pairs > _FORMED:  # of learned edge weights
        return None
    scale, node = blocks.column_scale, torch.arange(segments.num_nodes, device=segments.device)
    return _OfPairs(
        blocks.coefficients.to(dtype),
        blocks.terms(segments, dtype),
        segments.pairs(node, torch.zeros_like(node)),
        None if scale is None else scale.to(dtype),
        max(blocks.error, 16 * torch.finfo(dtype).eps) if blocks.error > 0 else 0.0,
        mask.heads,
        segments,
    )


def attend_rows(q: Tensor, k: Tensor, v: Tensor, mask: MaskOperator | _OfPairs, dropout: float) -> Tensor:
    r"""Computes :func:`~pyg_topomask.ops.masked_softmax_attention` for scaled queries in one data type. Time is quadratic in
    the size of a graph, and memory is linear.
    """
    tensors, text = describe(mask)
    chance = min(round(dropout * 2**63), _CERTAIN)
    seed = torch.randint(_CERTAIN, (1,)) if chance > 0 else torch.zeros(1, dtype=torch.long)
    constants = [torch.cat([seed, torch.tensor([chance])]), mask.segments.position, *mask.segments.constants()]
    return _attend(q, k, v, tensors, constants, text, mask.heads)[0]


def entries_of_pairs(mask: MaskOperator, **wanted: Any) -> Entries:
    r"""Returns the entries of a sparse mask, or those of any other mask at all pairs of nodes of the same graph, of which there
    may be too many for the argument that is :obj:`wanted`.
    """
    if mask.entries is not None:
        return mask.entries()
    segments = mask.segments
    if segments.num_pairs > _MOST_PAIRS:
        ((name, value),) = wanted.items()
        given = f'{value} for {segments.num_pairs:,} pairs of nodes, which all attend to each other'
        raise ArgumentError(name, given, f'up to {_MOST_PAIRS:,} pairs, and {False if value is True else None}')
    return _all_entries(mask, segments, segments.position, torch.promote_types(mask.dtype, torch.float32))


def _all_entries(mask: MaskOperator | _OfPairs, segments: Segments, position: Tensor, dtype: torch.dtype) -> Entries:
    pattern, _ = all_pairs(segments)
    if isinstance(mask, _OfPairs):
        values = mask.at(mask.first[pattern.row.long()] + pattern.col)
        scale = mask.column_scale
        return Entries(pattern, values if scale is None else values * scale.t().index_select(1, pattern.col.long()))
    rows = _all_rows(mask, segments, position, dtype)
    return Entries(pattern, rows[pattern.col.long(), :, position[pattern.row.long()]].t())


def _all_rows(mask: MaskOperator, segments: Segments, position: Tensor, dtype: torch.dtype) -> Tensor:
    groups = groups_of_constants(segments.constants(), segments.num_nodes)
    with torch.autocast(device_type=position.device.type, enabled=False):
        return mask.rows(Slots(position, groups, 0, segments.largest), dtype)


def matrix_of_one_graph(mask: MaskOperator) -> Tensor:
    r"""Returns the matrix of a mask of one graph, :obj:`[H or 1, N, N]`. Entries of 0 are exact, unlike those of products."""
    dtype = torch.promote_types(mask.dtype, torch.float32)
    return _all_rows(mask, mask.segments, mask.segments.position, dtype).permute(1, 2, 0)


def _slots(inputs: AttentionInputs, position: Tensor, groups: Sequence[SegmentGroup]) -> Iterator[Slots]:
    r"""Yields all positions in the largest graph, as many at a time as rows may be formed."""
    mask, numbers = inputs.mask(), inputs.heads
    if isinstance(mask, _OfPairs):
        numbers = max(numbers, mask.terms.size(0))
    largest = max((group.width for group in groups), default=0)
    if largest > _LARGEST:
        given = f'a mask without sparse entries on a graph of {largest:,} nodes for softmax attention'
        accepted = f'graphs of up to {_LARGEST:,} nodes, and sparse masks, such as HopMask'
        raise ArgumentError('mask', given, accepted, 'linear attention, such as feature_map="favor", takes larger graphs')
    count = max(1, _FORMED // max(1, position.numel() * numbers))
    for start in range(0, largest, count):
        yield Slots(position, groups, start, min(start + count, largest))


def _formed(mask: MaskOperator | _OfPairs, slots: Slots, dtype: torch.dtype) -> tuple[Tensor, ...]:
    r"""Returns the entries of a mask for the keys and some queries of each group, :obj:`[H or 1, G, n, S]`."""
    queries = [group[:, slots.start : slots.stop] for group in slots.groups]
    if isinstance(mask, LowRank):
        left, right = mask.left.to(dtype), mask.right.to(dtype)
        pairs = zip(slots.groups, queries, strict=True)
        return tuple(
            keys.take(right) @ some.take(left).transpose(-1, -2) if some.width > 0 else left[:0] for keys, some in pairs
        )
    if isinstance(mask, _OfPairs):
        return tuple(map(mask.formed_at, slots.groups, queries))
    rows = mask.rows(slots, dtype)
    return tuple(keys.take(rows)[..., : some.width] for keys, some in zip(slots.groups, queries, strict=True))


class _Block(NamedTuple):
    r"""A mask for keys and queries, 1 at padding.

    Args:
        entries (torch.Tensor): Its entries, :obj:`[H or 1, G, n, S]`.
        positive (bool): Whether no entry is 0.
        logarithm (torch.Tensor, optional): Their logarithms, if sums might overflow, or numbers cannot be read.
        padding (torch.Tensor, optional): Which keys are padding, :obj:`[G, n, 1]`, if some are.
    """

    entries: Tensor
    positive: bool
    logarithm: Tensor | None
    padding: Tensor | None

    @classmethod
    def of(cls, group: SegmentGroup, queries: SegmentGroup, entries: Tensor) -> _Block:
        padding = group.padding.unsqueeze(-1)
        padded = not readable(padding) or bool(padding.any())
        if padded:
            entries = entries.masked_fill(padding | queries.padding.unsqueeze(-2), 1.0)
        least, most = torch.aminmax(unwrapped(entries))
        check_range(least, most)
        known = readable(entries)
        logarithm = None if known and bool(most < _MOST) else entries.log()
        return cls(entries, known and bool(least > 0), logarithm, padding if padded else None)

    def place(self, head: int) -> int:
        r"""Returns where the entries of a head are."""
        return 0 if self.entries.size(0) == 1 else head

    def coefficients(self, head: int, graphs: slice, key: Tensor, query: Tensor) -> Tensor:
        r"""Returns the coefficients of the queries of a head in some graphs, :obj:`[G, n, S]`."""
        place, query = (self.place(head), graphs), query.transpose(1, 2)
        entries = self.entries[place]
        if self.logarithm is None:
            # Logarithms take as long as all products.
            alpha = self._softmax(torch.bmm(key, query), graphs).mul_(entries)
            total = alpha.sum(1, keepdim=True)
            small = total < _LEAST
            if not bool(small.any()):
                return alpha.div_(total)
            if not bool((small & (entries.amax(1, keepdim=True) > 0)).any()):  # rows without entries
                return alpha.div_(total.masked_fill_(small, 1.0))
        score = torch.baddbmm(entries.log() if self.logarithm is None else self.logarithm[place], key, query)
        alpha = self._softmax(score, graphs)
        empty = score.amax(1, keepdim=True) == -math.inf
        return alpha.masked_fill_(empty, 0.0) if not readable(empty) or bool(empty.any()) else alpha

    def divisor(self, head: int, graphs: slice) -> Tensor:
        r"""Returns the entries, and a tiny number in place of 0, which has no coefficient and no gradient."""
        entries = self.entries[self.place(head), graphs]
        return entries if self.positive else entries.clamp(min=torch.finfo(entries.dtype).tiny)

    def _softmax(self, score: Tensor, graphs: slice) -> Tensor:
        return (score if self.padding is None else score.masked_fill_(self.padding[graphs], -math.inf)).softmax(1)


def _tiles(entries: Tensor, heads: int) -> Iterator[tuple[int, slice]]:
    r"""Yields heads and graphs."""
    _, graphs, keys, queries = entries.shape
    most = max(1, _TILE // (keys * queries))
    for head in range(heads):
        for first in range(0, graphs, most):
            yield head, slice(first, first + most)


def _keep(group: SegmentGroup, queries: SegmentGroup, head: int, heads: int, dropout: Tensor, like: Tensor) -> Tensor | None:
    r"""Returns the factors of the coefficients with dropout, :obj:`[G, n, S]`."""
    seed, chance = dropout.tolist()
    if chance == 0:
        return None
    pair = queries.source.unsqueeze(-2) * group.num_nodes + group.source.unsqueeze(-1)
    return _kept(pair * heads + head, seed, chance, like)


def _kept(pair: Tensor, seed: int, chance: int, like: Tensor) -> Tensor:
    r"""Returns factors of coefficients with dropout, hashes of the numbers of pairs and heads."""
    bits = splitmix(splitmix(pair) ^ seed).bitwise_and_(_CERTAIN)
    return (bits >= chance).to(like.dtype).mul_(2**63 / (2**63 - chance))


def _forward(inputs: AttentionInputs) -> tuple[Tensor, Tensor]:
    q, k, v, _, (dropout, position, *division), *_ = inputs
    mask, groups = inputs.mask(), groups_of_constants(division, q.size(0))
    out = v.new_empty(v.size(0) + 1, *v.shape[1:])
    padded = [tuple(group.take(x) for x in (q, k, v)) for group in groups]
    for slots in _slots(inputs, position, groups):
        formed = _formed(mask, slots, q.dtype)
        for group, entries, (query, key, value) in zip(groups, formed, padded, strict=True):
            queries, query = group[:, slots.start : slots.stop], query[:, :, slots.start : slots.stop]
            if queries.width == 0:
                continue
            block, product = _Block.of(group, queries, entries), value.new_empty(*query.shape[:3], value.size(3))
            for head, some in _tiles(block.entries, q.size(1)):
                alpha = block.coefficients(head, some, key[head, some], query[head, some])
                keep = _keep(group[some], queries[some], head, q.size(1), dropout, q)
                shown = alpha if keep is None else alpha.mul_(keep)
                torch.bmm(shown.transpose(1, 2), value[head, some], out=product[head, some])
            queries.put(out, product)
    return out[:-1], q.new_empty(0)


def _backward(
    grads: tuple[Tensor, Tensor | None], outputs: tuple[Tensor, Tensor], inputs: AttentionInputs, learnable: Sequence[int]
) -> list[Tensor]:
    q, k, v, tensors, (dropout, position, *division), *_ = inputs
    groups = groups_of_constants(division, q.size(0))
    # What gradients of scores subtract.
    inner = (grads[0] * outputs[0]).sum(-1, keepdim=True)
    padded = [tuple(group.take(x) for x in (q, k, v, grads[0], inner)) for group in groups]
    totals = [tuple(torch.zeros_like(x) for x in each[:3]) for each in padded]
    grad_tensors = [torch.zeros_like(tensors[index]) for index in learnable]
    for slots in _slots(inputs, position, groups):

        def form(*learned: Tensor, slots: Slots = slots) -> tuple[Tensor, ...]:
            return _formed(inputs.mask(learnable, learned), slots, q.dtype)

        forward: Any = torch.func.vjp(form, *(tensors[index] for index in learnable)) if learnable else (form(), None)
        formed, pull = forward
        grad_formed = [torch.zeros_like(entries) for entries in formed] if learnable else []
        for place, (group, of_inputs, (grad_query, grad_key, grad_value)) in enumerate(
            zip(groups, padded, totals, strict=True)
        ):
            queries = group[:, slots.start : slots.stop]
            if queries.width == 0:
                continue
            query, key, value, upstream, subtracted = of_inputs
            of_slots = (x[:, :, slots.start : slots.stop] for x in (query, upstream, subtracted, grad_query))
            query, upstream, subtracted, grad_query = of_slots
            block = _Block.of(group, queries, formed[place])
            if block.padding is not None:
                unused = queries.padding.unsqueeze(-1)
                upstream, subtracted = (x.masked_fill(unused, 0.0) for x in (upstream, subtracted))
            for head, some in _tiles(block.entries, q.size(1)):
                gradient, alpha = upstream[head, some], block.coefficients(head, some, key[head, some], query[head, some])
                keep = _keep(group[some], queries[some], head, q.size(1), dropout, q)
                grad_value[head, some].baddbmm_(alpha if keep is None else alpha * keep, gradient)
                grad_score = torch.bmm(value[head, some], gradient.transpose(1, 2))
                grad_score = grad_score if keep is None else grad_score.mul_(keep)
                grad_score.sub_(subtracted[head, some].transpose(1, 2)).mul_(alpha)
                grad_query[head, some] = torch.bmm(grad_score.transpose(1, 2), key[head, some])
                grad_key[head, some].baddbmm_(grad_score, query[head, some])
                if learnable:
                    grad_formed[place][block.place(head), some].addcdiv_(grad_score, block.divisor(head, some))
        for total, each in zip(grad_tensors, pull(tuple(grad_formed)) if learnable else (), strict=True):
            total += each
    results = [x.new_empty(x.size(0) + 1, *x.shape[1:]) for x in (q, k, v)]
    for group, of_group in zip(groups, totals, strict=True):
        for result, total in zip(results, of_group, strict=True):
            group.put(result, total)
    return [*(result[:-1] for result in results), *grad_tensors]


def _plain(inputs: AttentionInputs, kept: Tensor) -> tuple[Tensor, Tensor]:
    q, _, _, _, (dropout, position, ptr, *_), _, _ = inputs
    entries = _all_entries(inputs.mask(), Segments.from_ptr(ptr, q.size(0)), position, q.dtype)
    (seed, chance), pattern = dropout.tolist(), entries.pattern
    constants = list(pattern.tensors)
    if chance > 0:
        pair, head = pattern.row.long() * q.size(0) + pattern.col, torch.arange(q.size(1), device=q.device).unsqueeze(1)
        constants.append(_kept(pair * q.size(1) + head, seed, chance, q))
    out, _ = plain_softmax(AttentionInputs(*inputs[:3], [entries.value], constants), kept)
    return out, kept


_attend = attention_op('attend_rows', _forward, _backward, _plain, lambda inputs: (0,))
