r"""The blocks route: attention graph by graph, under blocks that a mask forms from unit vectors, or that were prepared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from pyg_topomask.graphs.segments import SegmentGroup, Segments, groups_of_constants
from pyg_topomask.machine.backend import kernel
from pyg_topomask.ops.attention_op import AttentionInputs, all_pairs, attend_at, attention_op
from pyg_topomask.ops.normalize import gradients_of_sums, inverse_weight, known_positive, with_ones


def _units(groups: list[SegmentGroup], num_nodes: int, heads: int, like: Tensor) -> Tensor:
    r"""Returns unit vectors, :obj:`[N, heads, n]` for :math:`n` nodes in the largest graph. A mask of :obj:`heads` heads
    multiplies these to the rows of its blocks, which are 0 at padding.
    """
    largest = max((group.width for group in groups), default=1)
    units = like.new_zeros(num_nodes + 1, largest)
    for group in groups:
        units[group.target, torch.arange(group.width, device=like.device)] = 1.0
    return units[:-1].unsqueeze(1).expand(-1, heads, -1)


def _pairs(x: Tensor, y: Tensor) -> Tensor:
    return x @ y.transpose(-1, -2)


def _forward(inputs: AttentionInputs) -> tuple[Tensor, Tensor]:
    q, k, v, _, constants, _, heads = inputs
    mask, groups = inputs.mask(), groups_of_constants(constants, q.size(0))
    rows, packed = mask.apply(_units(groups, q.size(0), heads, q)), torch.cat([q, k, with_ones(v)], dim=-1)
    total = packed.new_empty(q.size(0) + 1, q.size(1), v.size(2) + 1)
    for group in groups:
        query, key, value = group.take(packed).split([q.size(2), q.size(2), v.size(2) + 1], dim=-1)
        weight = _pairs(query, key).mul_(group.take(rows)[..., : group.width])
        group.put(total, weight @ value)
    total = total[:-1]
    # Where rounding leaves something of entries that are zero, their own sizes do not tell.
    magnitude = (q.abs() * mask.magnitude(k.abs())).sum(-1)
    inverse = inverse_weight(total[..., -1], magnitude)
    return total[..., :-1] * inverse.unsqueeze(-1), inverse


def _backward(
    grads: tuple[Tensor, Tensor | None], outputs: tuple[Tensor, Tensor], inputs: AttentionInputs, learnable: Sequence[int]
) -> list[Tensor]:
    q, k, v, tensors, constants, _, heads = inputs
    groups = groups_of_constants(constants, q.size(0))
    units = _units(groups, q.size(0), heads, q)

    def rows_of(*learned: Tensor) -> Tensor:
        return inputs.mask(learnable, learned).apply(units)

    forward: Any = torch.func.vjp(rows_of, *(tensors[index] for index in learnable)) if learnable else (rows_of(), tuple)
    rows, pull = forward
    numerator, denominator = gradients_of_sums(grads[0], *outputs)
    packed = torch.cat([q, k, with_ones(v), numerator, denominator.unsqueeze(-1)], dim=-1)
    grad_packed = packed.new_empty(q.size(0) + 1, q.size(1), 2 * q.size(2) + v.size(2))
    grad_rows = packed.new_zeros(q.size(0) + 1, q.size(1), rows.size(2)) if learnable else None
    for group in groups:
        widths = [q.size(2), q.size(2), v.size(2) + 1, v.size(2) + 1]
        query, key, value, gradient = group.take(packed).split(widths, dim=-1)
        gradient.masked_fill_(group.padding.unsqueeze(-1), 0.0)
        score, grad_weight = _pairs(query, key), _pairs(gradient, value)
        if grad_rows is not None:
            group.put(grad_rows, score * grad_weight)
        block = group.take(rows)[..., : group.width]
        grad_value = score.mul_(block).transpose(-1, -2) @ gradient[..., :-1]
        grad_weight.mul_(block)
        group.put(grad_packed, torch.cat([grad_weight @ key, grad_weight.transpose(-1, -2) @ query, grad_value], dim=-1))
    grad_tensors: list[Tensor] = []
    if grad_rows is not None:
        grad_rows = grad_rows[:-1]
        grad_tensors = list(pull(grad_rows.sum(1, keepdim=True) if heads == 1 else grad_rows))
    split = grad_packed[:-1].split([q.size(2), q.size(2), v.size(2)], dim=-1)
    # Copies, also of what is contiguous as it is: outputs of an operator share no memory.
    return [*(each.clone(memory_format=torch.contiguous_format) for each in split), *grad_tensors]


def _plain(inputs: AttentionInputs, inverse: Tensor) -> tuple[Tensor, Tensor]:
    q, _, _, _, constants, _, heads = inputs
    pattern, position = all_pairs(Segments.from_ptr(constants[0], q.size(0)))
    units = _units(groups_of_constants(constants, q.size(0)), q.size(0), heads, q)
    rows = inputs.mask().apply(units)
    return attend_at(pattern, rows[pattern.row.long(), :, position].t(), inputs, inverse)


attend_blocks = attention_op('attend_blocks', _forward, _backward, _plain)


# Scores of all heads that are computed at a time: few enough for the cache of a core.
_TILE = 2**18
# Rows of a graph that are computed together at least: products of fewer are slow.
_ROWS = 32


def _tiles(ptr: Tensor, terms: Tensor, heads: int) -> Iterator[tuple[slice, slice, Tensor]]:
    r"""Yields rows of a graph, all nodes of the graph, and the terms or labels of their pairs, :obj:`[count, rows * n]`."""
    bounds, size = ptr.tolist(), _TILE * torch.get_num_threads()
    entry = 0
    for start, stop in pairwise(bounds):
        width = stop - start
        step = max(_ROWS, size // max(1, heads * width))
        for row in range(start, stop, step):
            rows = slice(row, min(row + step, stop))
            number = (rows.stop - row) * width
            yield rows, slice(start, stop), terms[:, entry : entry + number]
            entry += number


def _forward_prepared(inputs: AttentionInputs) -> tuple[Tensor, Tensor]:
    q, k, v, (coefficients, terms), (ptr,), *_ = inputs
    if compiled := kernel('batches.attend_prepared_blocks', q.device):
        sums, *weights = compiled(ptr, q, k, v, coefficients, terms)
        inverse = inverse_weight(*weights)
        return sums.mul_(inverse.unsqueeze(-1)), inverse
    query, key, value = (x.transpose(0, 1) for x in (q, k, with_ones(v)))
    total, size = torch.empty_like(value), q.new_empty(query.shape[:2])
    for rows, graph, tile in _tiles(ptr, terms, q.size(1)):
        weight = query[:, rows] @ key[:, graph].transpose(1, 2)
        weight *= _entries(coefficients, tile).view(-1, *weight.shape[1:])
        total[:, rows] = weight @ value[:, graph]
        size[:, rows] = total[:, rows, -1] if known_positive(weight) else weight.abs_().sum(-1)
    out, denominator = total.transpose(0, 1).split([v.size(2), 1], dim=-1)
    inverse = inverse_weight(denominator.squeeze(-1), size.t())
    return (out * inverse.unsqueeze(-1)).contiguous(), inverse.contiguous()


def _backward_prepared(
    grads: tuple[Tensor, Tensor | None], outputs: tuple[Tensor, Tensor], inputs: AttentionInputs, learnable: Sequence[int]
) -> list[Tensor]:
    q, k, v, (coefficients, terms), (ptr,), *_ = inputs
    numerator, denominator = gradients_of_sums(grads[0], *outputs)
    upstream = torch.cat([numerator, denominator.unsqueeze(-1)], dim=-1)
    if compiled := kernel('batches.attend_prepared_blocks_backward', q.device):
        return compiled(ptr, q, k, with_ones(v), coefficients, terms, upstream, learnable)
    query, key, value, gradient = (x.transpose(0, 1) for x in (q, k, with_ones(v), upstream))
    results = [x.new_zeros(x.shape) for x in (q, k, v)]
    grad_query, grad_key, grad_value = (x.transpose(0, 1) for x in results)
    grad_coefficients, grad_terms = torch.zeros_like(coefficients), torch.zeros_like(terms) if 1 in learnable else terms
    pairs = zip(_tiles(ptr, terms, q.size(1)), _tiles(ptr, grad_terms, q.size(1)), strict=True)
    for (rows, graph, tile), (*_, grad_tile) in pairs:
        score = query[:, rows] @ key[:, graph].transpose(1, 2)
        grad_weight = gradient[:, rows] @ value[:, graph].transpose(1, 2)
        if learnable:
            product = (score * grad_weight).flatten(1)
            product = product if coefficients.size(0) > 1 else product.sum(0, keepdim=True)
            if 0 in learnable:
                _add_gradient(grad_coefficients, product, tile)
            if 1 in learnable:
                grad_tile.addmm_(coefficients.t(), product)
        mask = _entries(coefficients, tile).view(-1, *score.shape[1:])
        weight, grad_score = score.mul_(mask), grad_weight.mul_(mask)
        grad_query[:, rows] = grad_score @ key[:, graph]
        grad_key[:, graph] += grad_score.transpose(1, 2) @ query[:, rows]
        grad_value[:, graph] += weight.transpose(1, 2) @ gradient[:, rows, :-1]
    return [*results, *((grad_coefficients, grad_terms)[index] for index in learnable)]


def _plain_prepared(inputs: AttentionInputs, inverse: Tensor) -> tuple[Tensor, Tensor]:
    (coefficients, terms), (ptr,) = inputs.tensors, inputs.constants
    pattern, _ = all_pairs(Segments.from_ptr(ptr, inputs.q.size(0)))
    return attend_at(pattern, _entries(coefficients, terms), inputs, inverse)


def _entries(coefficients: Tensor, terms: Tensor) -> Tensor:
    r"""Returns the entries of the mask, :obj:`[H or 1, pairs]`."""
    if terms.is_floating_point():
        return coefficients @ terms
    return sum((coefficients.index_select(1, label) for label in terms.long()), coefficients.new_zeros(()))


def _add_gradient(total: Tensor, grad: Tensor, terms: Tensor) -> None:
    r"""Adds the gradients of coefficients, given those of entries, :obj:`[H or 1, pairs]`."""
    if terms.is_floating_point():
        total.addmm_(grad, terms.t())
    else:
        for label in terms.long():
            total.index_add_(1, label, grad)


attend_prepared_blocks = attention_op('attend_prepared_blocks', _forward_prepared, _backward_prepared, _plain_prepared)
