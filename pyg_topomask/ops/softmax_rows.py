r"""Softmax attention under masks of any kind. Rows of the mask are formed some at a time, and again in the backward pass."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.segments import SegmentGroup, Segments, groups_of_constants
from pyg_topomask.operators.base import MaskOperator
from pyg_topomask.operators.description import describe
from pyg_topomask.operators.entries import Entries
from pyg_topomask.operators.slots import Slots
from pyg_topomask.ops.attention_op import AttentionInputs, attention_op
from pyg_topomask.ops.routes.plain import all_pairs
from pyg_topomask.ops.softmax_entries import check_entries, plain_softmax
from pyg_topomask.utils.functorch import readable
from pyg_topomask.utils.splitmix import splitmix

# Numbers in the rows of all heads that are formed at a time, and scores of all heads that stay in cache.
_FORMED, _TILE = 2**21, 2**17
# The largest number of nodes of a graph, all pairs of which are compared.
_LARGEST = 2**15
# The largest number of pairs whose coefficients are returned.
_MOST_PAIRS = 2**26
# Entries within this factor of 1 multiply exponentials, which then neither overflow nor vanish where others do not.
_MODERATE = 2.0**24
# Chances are whole numbers of 2^-63.
_CERTAIN = 2**63 - 1


def attend_rows(q: Tensor, k: Tensor, v: Tensor, mask: MaskOperator, dropout: float) -> Tensor:
    r"""Computes :func:`~pyg_topomask.ops.masked_softmax_attention` for scaled queries in one data type. Time is quadratic in
    the size of a graph, and memory is linear.
    """
    tensors, text = describe(mask)
    chance = min(round(dropout * 2**63), _CERTAIN)
    seed = torch.randint(_CERTAIN, (1,)) if chance > 0 else torch.zeros(1, dtype=torch.long)
    constants = [torch.cat([seed, torch.tensor([chance])]), mask.segments.position, *mask.segments.constants()]
    return _attend(q, k, v, tensors, constants, text, mask.heads)[0]


def entries_of_pairs(mask: MaskOperator) -> Entries:
    r"""Returns the entries of a sparse mask, or those of any other mask at all pairs of nodes of the same graph."""
    if mask.entries is not None:
        return mask.entries()
    segments = mask.segments
    if segments.num_pairs > _MOST_PAIRS:
        given = f'True for {segments.num_pairs:,} pairs of nodes, which all attend to each other'
        raise ArgumentError('return_attention_weights', given, f'up to {_MOST_PAIRS:,} pairs, and False')
    return _all_entries(mask, segments, segments.position, torch.promote_types(mask.dtype, torch.float32))


def _all_entries(mask: MaskOperator, segments: Segments, position: Tensor, dtype: torch.dtype) -> Entries:
    pattern, _ = all_pairs(segments)
    groups = groups_of_constants(segments.constants(), segments.num_nodes)
    rows = mask.rows(Slots(position, groups, 0, segments.largest), dtype)
    return Entries(pattern, rows[pattern.col.long(), :, position[pattern.row.long()]].t())


def _slots(position: Tensor, groups: Sequence[SegmentGroup], heads: int) -> Iterator[Slots]:
    r"""Yields all positions in the largest graph, as many at a time as rows may be formed."""
    largest = max((group.width for group in groups), default=0)
    if largest > _LARGEST:
        given = f'a mask without sparse entries on a graph of {largest:,} nodes for softmax attention'
        accepted = f'graphs of up to {_LARGEST:,} nodes, and sparse masks, such as HopMask'
        raise ArgumentError('mask', given, accepted, 'linear attention, such as feature_map="favor", takes larger graphs')
    count = max(1, _FORMED // max(1, position.numel() * heads))
    for start in range(0, largest, count):
        yield Slots(position, groups, start, min(start + count, largest))


def _tiles(slots: Slots, heads: int) -> Iterator[tuple[SegmentGroup, SegmentGroup]]:
    r"""Yields the keys and the queries of some graphs."""
    for keys in slots.groups:
        queries = keys[:, slots.start : slots.stop]
        if queries.width > 0:
            most = max(1, _TILE // (heads * keys.width * queries.width))
            for first in range(0, keys.source.size(0), most):
                yield keys[first : first + most], queries[first : first + most]


def _mask_at(keys: SegmentGroup, queries: SegmentGroup, rows: Tensor) -> tuple[Tensor, bool]:
    r"""Returns the entries of a mask for keys and queries, :obj:`[H or 1, G, n, S]`, from its rows, 1 at padding, and whether
    there is padding.
    """
    entries, padding = keys.take(rows)[..., : queries.width], keys.padding
    padded = not readable(padding) or bool(padding.any())
    if padded:
        entries = entries.masked_fill(padding.unsqueeze(-1) | queries.padding.unsqueeze(-2), 1.0)
    check_entries(entries)
    return entries, padded


def _coefficients(key: Tensor, query: Tensor, entries: Tensor, padding: Tensor | None) -> Tensor:
    r"""Returns the coefficients of queries, :obj:`[H, G, n, S]`."""
    least, most = torch.aminmax(entries)
    if readable(entries) and least > 1 / _MODERATE and most < _MODERATE:  # logarithms take as long as all products
        alpha = _softmax(key @ query.transpose(-1, -2), padding).mul_(entries)
        return alpha.div_(alpha.sum(-2, keepdim=True))
    logarithm = entries.log().expand(key.size(0), -1, -1, -1).flatten(0, 1)
    score = torch.baddbmm(logarithm, key.flatten(0, 1), query.flatten(0, 1).transpose(-1, -2)).unflatten(0, (-1, key.size(1)))
    alpha, highest = _softmax(score, padding), score.amax(-2, keepdim=True)
    return alpha.masked_fill_(highest == -math.inf, 0.0)


def _softmax(score: Tensor, padding: Tensor | None) -> Tensor:
    return (score if padding is None else score.masked_fill_(padding.unsqueeze(-1), -math.inf)).softmax(-2)


def _keep(keys: SegmentGroup, queries: SegmentGroup, heads: int, dropout: Tensor, like: Tensor) -> Tensor | None:
    r"""Returns the factors of the coefficients with dropout, :obj:`[H, G, n, S]`."""
    seed, chance = dropout.tolist()
    if chance == 0:
        return None
    return _kept(queries.source.unsqueeze(-2) * queries.num_nodes + keys.source.unsqueeze(-1), heads, seed, chance, like)


def _kept(pair: Tensor, heads: int, seed: int, chance: int, like: Tensor) -> Tensor:
    r"""Returns the factors of coefficients with dropout, hashes of the numbers of pairs and the heads, :obj:`[H, *]`."""
    head = torch.arange(heads, device=pair.device).view(-1, *[1] * pair.dim())
    bits = splitmix(splitmix(pair * heads + head) ^ seed).bitwise_and_(_CERTAIN)
    return (bits >= chance).to(like.dtype).mul_(2**63 / (2**63 - chance))


def _forward(inputs: AttentionInputs) -> tuple[Tensor, Tensor]:
    q, k, v, _, (dropout, position, *division), _, heads = inputs
    mask, groups = inputs.mask(), groups_of_constants(division, q.size(0))
    out = v.new_empty(v.size(0) + 1, *v.shape[1:])
    for slots in _slots(position, groups, heads):
        rows = mask.rows(slots, q.dtype)
        for keys, queries in _tiles(slots, q.size(1)):
            entries, padded = _mask_at(keys, queries, rows)
            alpha = _coefficients(keys.take(k), queries.take(q), entries, keys.padding if padded else None)
            keep = _keep(keys, queries, q.size(1), dropout, q)
            queries.put(out, (alpha if keep is None else alpha.mul_(keep)).transpose(-1, -2) @ keys.take(v))
    return out[:-1], q.new_empty(0)


def _backward(
    grads: tuple[Tensor, Tensor | None], outputs: tuple[Tensor, Tensor], inputs: AttentionInputs, learnable: Sequence[int]
) -> list[Tensor]:
    q, k, v, tensors, (dropout, position, *division), _, heads = inputs
    groups = groups_of_constants(division, q.size(0))
    # Beside the gradient, what gradients of scores subtract.
    upstream = torch.cat([grads[0], (grads[0] * outputs[0]).sum(-1, keepdim=True)], dim=-1)
    grad_q, grad_k, grad_v = (x.new_zeros(x.size(0) + 1, *x.shape[1:]) for x in (q, k, v))
    grad_tensors = [torch.zeros_like(tensors[index]) for index in learnable]
    for slots in _slots(position, groups, heads):

        def rows_of(*learned: Tensor, slots: Slots = slots) -> Tensor:
            return inputs.mask(learnable, learned).rows(slots, q.dtype)

        forward: Any = torch.func.vjp(rows_of, *(tensors[index] for index in learnable)) if learnable else (rows_of(), None)
        rows, pull = forward
        grad_rows = rows.new_zeros(rows.size(0) + 1, *rows.shape[1:]) if learnable else None
        for keys, queries in _tiles(slots, q.size(1)):
            query, key, value = queries.take(q), keys.take(k), keys.take(v)
            entries, padded = _mask_at(keys, queries, rows)
            alpha = _coefficients(key, query, entries, keys.padding if padded else None)
            above = queries.take(upstream)
            if padded:
                above.masked_fill_(queries.padding.unsqueeze(-1), 0.0)
            gradient, inner = above.split([v.size(2), 1], dim=-1)
            keep, grad_score = _keep(keys, queries, q.size(1), dropout, q), value @ gradient.transpose(-1, -2)
            keys.add(grad_v, (alpha if keep is None else alpha * keep) @ gradient)
            grad_score = grad_score if keep is None else grad_score.mul_(keep)
            grad_score.sub_(inner.transpose(-1, -2)).mul_(alpha)
            queries.put(grad_q, grad_score.transpose(-1, -2) @ key)
            keys.add(grad_k, grad_score @ query)
            if grad_rows is not None:
                grad_entries = grad_score if entries.size(0) > 1 else grad_score.sum(0, keepdim=True)
                # No coefficient, and no gradient, has an entry of 0.
                keys.put(grad_rows, grad_entries.div_(entries.clamp_(min=torch.finfo(entries.dtype).tiny)))
        for total, each in zip(grad_tensors, () if grad_rows is None else pull(grad_rows[:-1]), strict=True):
            total += each
    return [grad_q[:-1], grad_k[:-1], grad_v[:-1], *grad_tensors]


def _plain(inputs: AttentionInputs, kept: Tensor) -> tuple[Tensor, Tensor]:
    q, _, _, _, (dropout, position, ptr, *_), _, _ = inputs
    entries = _all_entries(inputs.mask(), Segments.from_ptr(ptr, q.size(0)), position, q.dtype)
    (seed, chance), pattern = dropout.tolist(), entries.pattern
    keep = _kept(pattern.row.long() * q.size(0) + pattern.col, q.size(1), seed, chance, q) if chance > 0 else None
    constants = [*pattern.tensors, *([] if keep is None else [keep])]
    out, _ = plain_softmax(AttentionInputs(*inputs[:3], [entries.value], constants), kept)
    return out, kept


_attend = attention_op('attend_rows', _forward, _backward, _plain, lambda inputs: (0,))
