r"""Evaluation by ranking all items for each user."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

import torch
from torch import Tensor

from pyg_topomask.apps.recommend.interactions import check_range
from pyg_topomask.errors import ArgumentError
from pyg_topomask.ops.topk.select import select_in_order
from pyg_topomask.utils.checks import check_choice, check_nodes, check_shape, check_whole, is_whole


def places_of_targets(scores: Iterable[Tensor], labels: Tensor, num_items: int) -> Tensor:
    r"""Returns how many items have a larger score than each target, and how many have an equal score, the target included,
    :obj:`[2, E]`, given scores of chunks of users, :obj:`[n, num_items]` each, and the rows and items of the targets,
    :obj:`[2, E]`. All items are before an excluded target, whose score is :obj:`-inf`.
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


#: The share of the unpopular items, and that of the unpopular and the normal ones.
_SHARES = (0.8, 0.8 + 0.15)


def rank_items(users: Tensor, items: Tensor, user_index: Tensor, seen: Tensor, k: int = 20, chunk_size: int = 1024) -> Tensor:
    r"""Returns the :obj:`k` unseen items with the largest inner products for each user, in descending order, of shape
    :obj:`[n, k]`. If fewer items are left, :obj:`-1` fills the row. In a tie, the lower item comes first, on every device.

    Args:
        users (torch.Tensor): The embeddings of all users, of shape :obj:`[num_users, d]`.
        items (torch.Tensor): The embeddings of all items, of shape :obj:`[num_items, d]`.
        user_index (torch.Tensor): The users to rank for, of shape :obj:`[n]`.
        seen (torch.Tensor): Pairs of user and item to exclude, of shape :obj:`[2, E]`.
        k (int, optional): The number of items. (default: :obj:`20`)
        chunk_size (int, optional): The number of users per chunk of scores. (default: :obj:`1024`)

    Raises:
        ValueError: If :obj:`k` is not from 1 to the number of items, a user or an item does not exist, a tensor has the
            wrong shape or type, an embedding is not finite, or :obj:`chunk_size` is below 1.

    Example:
        >>> scores = torch.tensor([[1.0, 3.0, 3.0, 2.0], [4.0, 0.0, 0.0, 0.0]])
        >>> seen = torch.tensor([[1, 1, 1], [0, 1, 2]])
        >>> rank_items(scores, torch.eye(4), torch.arange(2), seen, k=2).tolist()
        [[1, 2], [3, -1]]
    """
    _check(users, items, [k], chunk_size)
    check_range('seen', seen, users.size(0), items.size(0))
    check_nodes(users.size(0), user_index=user_index)
    return _ranked(users, items, user_index, seen.long(), k, chunk_size)


def _ranked(users: Tensor, items: Tensor, user_index: Tensor, seen: Tensor, k: int, chunk_size: int) -> Tensor:
    ranking = []
    for scores in _scores(users, items, user_index, seen, chunk_size):
        index = select_in_order(scores, k)
        ranking.append(index.masked_fill(scores.gather(1, index) == -math.inf, -1))
    return torch.cat(ranking) if ranking else user_index.new_empty(0, k)


def _scores(users: Tensor, items: Tensor, user_index: Tensor, seen: Tensor, chunk_size: int) -> Iterator[Tensor]:
    r"""Yields the scores of all items for chunks of users, which are :obj:`-inf` for seen items."""
    seen = seen[:, torch.argsort(seen[0], stable=True)]
    count = torch.bincount(seen[0], minlength=users.size(0))
    start = count.cumsum(0) - count
    for chunk in user_index.split(chunk_size):
        scores = users[chunk] @ items.t()
        if not bool(scores.isfinite().all()):
            largest = max(float(users.abs().max()), float(items.abs().max()))
            raise ArgumentError('users, items', f'numbers up to {largest:.3g}', 'embeddings with finite inner products')
        row = torch.repeat_interleave(count[chunk])
        place = torch.arange(row.numel(), device=row.device)
        first = count[chunk].cumsum(0) - count[chunk]
        scores[row, seen[1, start[chunk][row] + place - first[row]]] = -math.inf
        yield scores


def evaluate(
    users: Tensor,
    items: Tensor,
    targets: Tensor,
    seen: Tensor,
    k: int | Sequence[int] = 20,
    groups: tuple[Tensor, Sequence[str]] | None = None,
    chunk_size: int = 1024,
    ties: str = 'lower',
) -> dict[str, float]:
    r"""Ranks all items for every user who has a target, and returns PyG's :class:`~torch_geometric.metrics.LinkPredRecall` and
    :class:`~torch_geometric.metrics.LinkPredNDCG`, averaged over these users:

    .. math::
        \mathrm{Recall@}k = \frac{\mathrm{hits}}{|T_u|}, \qquad
        \mathrm{NDCG@}k = \frac{\sum_{r \leq k} [i_r \in T_u] / \log_2(r + 1)}{\sum_{r \leq \min(k, |T_u|)} 1 / \log_2(r + 1)}

    The other arguments and the errors are those of :func:`rank_items`.

    Args:
        targets (torch.Tensor): Target pairs of user and item, without duplicates, of shape :obj:`[2, E]`.
        seen (torch.Tensor): Pairs that are excluded from rankings, of shape :obj:`[2, E]`: training interactions, and for a
            test also validation interactions.
        k (int or list, optional): The cutoffs. (default: :obj:`20`)
        groups (tuple, optional): The group of each item and the names of the groups, see :func:`popularity_groups`. Adds
            metrics for the targets of each group, with the same rankings. They are NaN for a group without targets.
            (default: :obj:`None`)
        ties (str, optional): The order of items with equal scores: the lower item first (:obj:`"lower"`), the mean over all
            orders (:obj:`"mean"`), or targets last (:obj:`"worst"`). (default: :obj:`"lower"`)

    Example:
        >>> evaluate(torch.eye(2), torch.eye(2), targets=torch.tensor([[0], [0]]), seen=torch.empty(2, 0).long(), k=1)
        {'recall@1': 1.0, 'ndcg@1': 1.0}
    """
    cutoffs = list(k) if isinstance(k, Sequence) else [k]
    if not cutoffs or not all(is_whole(cutoff) for cutoff in cutoffs):
        raise ArgumentError('k', repr(k), 'an integer, and a list of one or more')
    _check(users, items, cutoffs, chunk_size)
    check_choice(('lower', 'mean', 'worst'), ties=ties)
    if groups is not None:
        check_shape((items.size(0),), groups=groups[0])
    for argument, pairs in {'targets': targets, 'seen': seen}.items():
        check_range(argument, pairs, users.size(0), items.size(0))
    targets = targets.long()
    user_index, row = targets[0].unique(return_inverse=True)
    labels = torch.stack([row, targets[1]])
    pairs = (row * items.size(0) + targets[1]).sort().values
    if bool((pairs[1:] == pairs[:-1]).any()):
        raise ArgumentError('targets', 'a pair twice', 'each pair once', 'use targets.unique(dim=1)')
    of_groups = [] if groups is None else [(f'{name} ', groups[0][labels[1]] == i) for i, name in enumerate(groups[1])]
    chosen = [('', torch.ones_like(row, dtype=torch.bool)), *of_groups]
    if ties == 'lower':
        ranking = _ranked(users, items, user_index, seen.long(), max(cutoffs), chunk_size)
        # PyG's metrics would treat -1 as the last item of the previous row.
        ranking = ranking.masked_fill(ranking < 0, items.size(0))
    else:
        scores = _scores(users, items, user_index, seen.long(), chunk_size)
        ranking = places_of_targets(scores, labels, items.size(0))
    result: dict[str, float] = {}
    for cutoff in cutoffs:
        for name, of_group in chosen:
            if ties == 'lower':
                metrics = _ranking_metrics(ranking[:, :cutoff], labels[:, of_group])
            else:
                metrics = metrics_of_places(ranking[:, of_group], labels[0, of_group], cutoff, worst=ties == 'worst')
            result |= {f'{name}{key}': value for key, value in metrics.items()}
    return result


def _check(users: Tensor, items: Tensor, cutoffs: Sequence[int], chunk_size: int) -> None:
    check_whole(1, chunk_size=chunk_size)
    check_shape(('num_users', 'd'), users=users)
    check_shape(('num_items', users.size(1)), items=items)
    if not users.is_floating_point() or items.dtype != users.dtype:
        raise ArgumentError('items', f'{items.dtype} for users of {users.dtype}', 'one floating point type for both')
    for argument, embeddings in {'users': users, 'items': items}.items():
        if not bool(embeddings.isfinite().all()):
            raise ArgumentError(argument, 'NaN or infinite numbers', 'finite embeddings')
    for k in cutoffs:
        if not is_whole(k, 1) or k > items.size(0):
            raise ArgumentError('k', repr(k), f'1 to {items.size(0)}, the number of items')


def _ranking_metrics(ranking: Tensor, labels: Tensor) -> dict[str, float]:
    # Imported here because it imports torchmetrics if installed.
    from torch_geometric.metrics import LinkPredNDCG, LinkPredRecall

    k = ranking.size(1)
    result: dict[str, float] = {}
    for name, metric in {f'recall@{k}': LinkPredRecall(k), f'ndcg@{k}': LinkPredNDCG(k)}.items():
        metric = metric.to(ranking.device)
        metric.update(ranking, labels)
        # PyG returns 0 for the mean over no users.
        result[name] = float(metric.compute()) if labels.size(1) else math.nan
    return result


def popularity_groups(train: Tensor, num_items: int) -> tuple[Tensor, tuple[str, ...]]:
    r"""Divides the items by their number of training interactions: the 80 % with the fewest are unpopular, the 5 % with the
    most are popular, as in `"Are Graph Augmentations Necessary?" <https://arxiv.org/abs/2112.08679>`_ and MGFormer's Fig. 2.
    Returns the group of each item, of shape :obj:`[num_items]`, and the names of the groups.

    Example:
        >>> torch.bincount(popularity_groups(torch.tensor([[0, 1, 2], [0, 0, 1]]), num_items=20)[0])
        tensor([16,  3,  1])
    """
    order = torch.argsort(torch.bincount(train[1], minlength=num_items), stable=True)
    bounds = torch.tensor([round(num_items * share) for share in _SHARES], device=order.device)
    group = torch.empty_like(order)
    group[order] = torch.bucketize(torch.arange(num_items, device=order.device), bounds, right=True)
    return group, ('unpopular', 'normal', 'popular')
