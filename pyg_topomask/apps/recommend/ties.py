r"""Metrics of rankings in which items have equal scores, without an order of these."""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
from torch import Tensor


def places_of_targets(scores: Iterable[Tensor], labels: Tensor, num_items: int) -> Tensor:
    r"""Returns how many items have a larger score than each target, and how many have an equal score, the target included,
    :obj:`[2, E]`. All items are before an excluded target, whose score is :obj:`-inf`.

    Args:
        scores (iterable of torch.Tensor): The scores of chunks of users, :obj:`[n, num_items]` each.
        labels (torch.Tensor): The rows and items of the targets, :obj:`[2, E]`.
        num_items (int): The number of items.
    """
    places, begin = labels.new_full(labels.shape, num_items), 0
    if labels.size(1) == 0:
        return places
    for chunk in scores:
        inside = ((labels[0] >= begin) & (labels[0] < begin + chunk.size(0))).nonzero().squeeze(1)
        row, item = labels[0, inside] - begin, labels[1, inside]
        order = row.argsort(stable=True)
        count = torch.bincount(row, minlength=chunk.size(0))
        slot = torch.arange(row.numel(), device=row.device) - (count.cumsum(0) - count)[row[order]]
        inside, row, item = inside[order], row[order], item[order]
        padded = chunk.new_zeros(chunk.size(0), int(count.max()))
        padded[row, slot] = value = chunk[row, item]
        ascending = chunk.sort(dim=1).values
        first, last = (torch.searchsorted(ascending, padded, right=right)[row, slot] for right in (False, True))
        found = torch.stack([num_items - last, last - first])
        places[:, inside] = torch.where(value == -math.inf, num_items, found)
        begin += chunk.size(0)
    return places


def metrics_of_places(places: Tensor, row: Tensor, k: int, worst: bool) -> dict[str, float]:
    r"""Returns Recall@k and NDCG@k, averaged over the rows that have targets: their mean over all orders of equal scores, or
    with targets after all others (:obj:`worst`). The places are those of :func:`places_of_targets`.
    """
    if row.numel() == 0:
        return {f'recall@{k}': math.nan, f'ndcg@{k}': math.nan}
    above, tied = places
    _, row, count = row.unique(return_inverse=True, return_counts=True)
    width = tied
    if worst:
        _, same, width = torch.stack([row, above]).unique(dim=1, return_inverse=True, return_counts=True)
        width = width[same]
    begin, end = ((above + tied - width).clamp(max=k), (above + tied).clamp(max=k))
    discount = 1 / torch.arange(2, k + 2, device=row.device, dtype=torch.double).log2()
    values = {'recall': torch.arange(k + 1, device=row.device, dtype=torch.double), 'ndcg': discount.new_zeros(k + 1)}
    values['ndcg'][1:] = discount.cumsum(0)
    best = {'recall': count.double(), 'ndcg': values['ndcg'][count.clamp(max=k)]}
    return {
        f'{name}@{k}': float(
            (best[name].new_zeros(count.numel()).index_add(0, row, (total[end] - total[begin]) / width) / best[name]).mean()
        )
        for name, total in values.items()
    }
