r"""Ranking of found keys by scores in the precision of the input, with ordered ties."""

from __future__ import annotations

import torch
from torch import Tensor

from pyg_topomask.graphs.segments import by_width
from pyg_topomask.ops.topk.select import select_in_order

# The number of extra candidates, which reduces the number of uncertain rows.
EXTRA = 4


def rank_found(
    q: Tensor, k: Tensor, first: Tensor, count: Tensor, best: Tensor, num: int, precision: float, memory: int
) -> Tensor:
    r"""Sorts the nodes that a backend has found, :obj:`[H, N, c]` with -1 for none, by (score descending, index ascending), and
    returns the first :obj:`num`.

    A score is the sum of its products in order, with rounding in each step, so it is the same for any backend, device and
    batch. If rounding errors of the backend, of relative size :obj:`precision`, may have changed the result, all keys of the
    graph are compared, with :obj:`memory` bytes of scores at a time.
    """
    node, _ = best.masked_fill(best < 0, q.size(1)).sort(dim=2)
    missing = node == q.size(1)
    score = _score_found(q, k, node.masked_fill(missing, 0)).masked_fill_(missing, -torch.inf)
    score, order = score.sort(dim=2, descending=True, stable=True)
    ranked = node.gather(2, order).masked_fill_(score == -torch.inf, -1)[..., :num]
    width = best.size(2)
    if width <= num:
        # With as many candidates as nodes in the largest graph, none is missing.
        return ranked
    norm = k.square().sum(2).sqrt()
    longest = torch.zeros_like(norm).scatter_reduce_(1, first.expand_as(norm), norm, 'amax')[:, first]
    error = 16 * precision * (q.size(2) + 2) * q.square().sum(2).sqrt() * longest
    certain = (count <= width) | (score[..., num - 1] - score[..., -1] > error)
    head, row = (~certain).nonzero(as_tuple=True)
    if row.numel() > 0:
        _search_all(q, k, first, count, head, row, ranked, memory)
    return ranked


def _score_found(q: Tensor, k: Tensor, node: Tensor) -> Tensor:
    score = q.new_zeros(node.shape)
    for channel in range(q.size(2)):
        score += q[..., channel, None] * k[..., channel].gather(1, node.flatten(1)).view_as(node)
    return score


def _search_all(
    q: Tensor, k: Tensor, first: Tensor, count: Tensor, head: Tensor, row: Tensor, ranked: Tensor, memory: int
) -> None:
    r"""Overwrites some rows by the best of all keys of their graphs."""
    num_nodes = q.size(1)
    for width, rows_of_width in by_width(count[row]):
        num = min(ranked.size(2), width)
        slot = torch.arange(width, device=q.device)
        rows = max(1, memory // (q.element_size() * width))
        for heads, nodes in zip(head[rows_of_width].split(rows), row[rows_of_width].split(rows), strict=True):
            index = (first[nodes].unsqueeze(1) + slot).clamp(max=num_nodes - 1)
            score = q.new_zeros(index.shape)
            for channel in range(q.size(2)):
                keys = k[..., channel].flatten()[heads.unsqueeze(1) * num_nodes + index]
                score += q[heads, nodes, channel].unsqueeze(1) * keys
            beyond = slot >= count[nodes].unsqueeze(1)
            score.masked_fill_(beyond, -torch.inf)
            position = select_in_order(score, num)
            node = (first[nodes].unsqueeze(1) + position).masked_fill_(position >= count[nodes].unsqueeze(1), -1)
            ranked[heads, nodes, :num] = node
