r"""Attention under a mask whose blocks are combinations of prepared ones or functions of labels, graph by graph."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import torch
from torch import Tensor

from pyg_topomask.graphs.segments import Segments
from pyg_topomask.machine.backend import kernel
from pyg_topomask.ops.attention_op import AttentionInputs, all_pairs, attend_at, attention_op
from pyg_topomask.ops.normalize import gradients_of_sums, inverse_weight, known_positive, with_ones

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


def _forward(inputs: AttentionInputs) -> tuple[Tensor, Tensor]:
    q, k, v, (coefficients, terms), (ptr,), *_ = inputs
    if compiled := kernel('attend_prepared_blocks', q.device):
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


def _backward(
    grads: tuple[Tensor, Tensor | None], outputs: tuple[Tensor, Tensor], inputs: AttentionInputs, learnable: Sequence[int]
) -> list[Tensor]:
    q, k, v, (coefficients, terms), (ptr,), *_ = inputs
    numerator, denominator = gradients_of_sums(grads[0], *outputs)
    upstream = torch.cat([numerator, denominator.unsqueeze(-1)], dim=-1)
    if compiled := kernel('attend_prepared_blocks_backward', q.device):
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


def _plain(inputs: AttentionInputs, inverse: Tensor) -> tuple[Tensor, Tensor]:
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


attend_prepared_blocks = attention_op('attend_prepared_blocks', _forward, _backward, _plain)
