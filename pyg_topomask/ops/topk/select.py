r"""The largest scores of each row, and the ranking of found keys by scores in the precision of the input, with ordered ties."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from pyg_topomask.graphs.segments import by_width

# The largest size of a group in the first pass.
_GROUP = 16


def select_top(score: Tensor, num: int) -> tuple[Tensor, Tensor]:
    r"""Returns the largest scores of each row, :obj:`[R, M]`, descending, and their positions, as :func:`torch.topk` does, in
    less time. The scores are divided into groups. Each of the :obj:`num` largest scores is in one of the :obj:`num` groups with
    the largest maxima, so only the scores of these groups are compared.
    """
    # As many groups as there are scores in those that are left, as far as powers of two allow.
    group = min(_GROUP, 2 ** round(math.log2(max(score.size(1), 1) / num) / 2))
    groups = score.size(1) // group
    if num >= groups or 2 * (groups + num * group) >= score.size(1):
        largest, position = score.topk(num, dim=1)
        return largest, position
    grouped = groups * group
    # Group i holds the scores at i, i + groups, i + 2 groups, ...: maxima over strided groups run along contiguous rows.
    maximum = score[:, :grouped].unflatten(1, (group, groups)).amax(1)
    best = maximum.topk(num, dim=1, sorted=False).indices
    offset = torch.arange(0, grouped, groups, device=score.device)
    rest = torch.arange(grouped, score.size(1), device=score.device).expand(score.size(0), -1)
    candidate = torch.cat([(best.unsqueeze(1) + offset.unsqueeze(1)).flatten(1), rest], dim=1)
    largest, chosen = score.gather(1, candidate).topk(num, dim=1)
    return largest, candidate.gather(1, chosen)


def select_in_order(score: Tensor, num: int) -> Tensor:
    r"""Returns the positions of the largest scores of each row, descending, equal on all devices. In a tie, the first positions
    come first. Arguments are those of :func:`select_top`.
    """
    largest, position = select_top(score, num)
    last = largest[:, -1:]
    tied = ((score == last).sum(1) > (largest == last).sum(1)).nonzero()[:, 0]
    if tied.numel() > 0:
        # torch.topk does not specify which scores equal to the last one it returns. Use the first ones.
        scores, bound = score[tied], last[tied]
        equal, above = scores == bound, scores > bound
        taken = above | (equal & (equal.cumsum(1) <= num - above.sum(1, keepdim=True)))
        position[tied] = taken.nonzero()[:, 1].view(-1, num)
    position = position.sort(1).values
    return position.gather(1, score.gather(1, position).sort(dim=1, descending=True, stable=True).indices)


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
