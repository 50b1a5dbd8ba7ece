r"""The largest scores of each row."""

from __future__ import annotations

import math

import torch
from torch import Tensor

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
