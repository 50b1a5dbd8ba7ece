r"""Evaluation by ranking the whole catalogue for each user."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from pyg_topomask.checks import check_whole, is_whole
from pyg_topomask.ops.topk.select import select_in_order
from pyg_topomask.recommend.checks import check_range

__all__ = ['evaluate', 'popularity_groups', 'rank_items', 'ranking_metrics', 'top_items']


def top_items(scores: Tensor, k: int) -> Tensor:
    r"""Returns the columns of the :obj:`k` largest scores of each row, in descending order; of equal scores the lower column
    comes first, on any device. Entries of :obj:`-inf` do not count: :obj:`-1` stands where there is nothing left.

    Args:
        scores (torch.Tensor): The scores, of shape :obj:`[n, num_items]`.
        k (int): How many.

    Raises:
        ValueError: If :obj:`k` is not from 1 to the number of columns.

    Example:
        >>> top_items(torch.tensor([[1.0, 3.0, 3.0, 2.0], [0.0, -math.inf, -math.inf, -math.inf]]), k=2).tolist()
        [[1, 2], [0, -1]]
    """
    if not is_whole(k, 1) or k > scores.size(1):
        raise ValueError(f'k: got {k!r}; accepted are 1 to {scores.size(1)}, the size of the catalogue')
    index = select_in_order(scores, k)
    return index.masked_fill(scores.gather(1, index) == -math.inf, -1)


def rank_items(users: Tensor, items: Tensor, user_index: Tensor, seen: Tensor, k: int = 20, chunk_size: int = 1024) -> Tensor:
    r"""Returns the :obj:`k` items of the largest inner products with each user, without the items that the user has seen, of
    shape :obj:`[n, k]`; :obj:`-1` stands where fewer are left.

    Args:
        users (torch.Tensor): The embeddings of all users, of shape :obj:`[num_users, d]`.
        items (torch.Tensor): Those of all items, of shape :obj:`[num_items, d]`.
        user_index (torch.Tensor): The users to rank for, of shape :obj:`[n]`.
        seen (torch.Tensor): Pairs of user and item to leave out, of shape :obj:`[2, E]`.
        k (int, optional): How many items. (default: :obj:`20`)
        chunk_size (int, optional): For how many users the scores are held at a time. (default: :obj:`1024`)

    Raises:
        ValueError: If :obj:`k` is not from 1 to the number of items, or :obj:`chunk_size` is below 1.
    """
    check_whole(1, chunk_size=chunk_size)
    seen = seen[:, torch.argsort(seen[0], stable=True)]
    count = torch.bincount(seen[0], minlength=users.size(0))
    start = count.cumsum(0) - count
    ranking = []
    for chunk in user_index.split(chunk_size):
        scores = users[chunk] @ items.t()
        row = torch.repeat_interleave(count[chunk])
        place = torch.arange(row.numel(), device=row.device)
        first = count[chunk].cumsum(0) - count[chunk]
        scores[row, seen[1, start[chunk][row] + place - first[row]]] = -math.inf
        ranking.append(top_items(scores, k))
    return torch.cat(ranking) if ranking else user_index.new_empty(0, k)


def ranking_metrics(ranking: Tensor, user_index: Tensor, targets: Tensor, num_items: int, k: int) -> dict[str, float]:
    r"""Returns Recall@k and NDCG@k, averaged over the ranked users who have a target (NaN if none has):

    .. math::
        \mathrm{Recall@}k = \frac{\mathrm{hits}}{|T_u|}, \qquad
        \mathrm{NDCG@}k = \frac{\sum_{r \leq k} [i_r \in T_u] / \log_2(r + 1)}{\sum_{r \leq \min(k, |T_u|)} 1 / \log_2(r + 1)}

    Args:
        ranking (torch.Tensor): Items in the order of the ranking, of shape :obj:`[n, k']` with :math:`k' \geq k`.
        user_index (torch.Tensor): The user of each row, each once, of shape :obj:`[n]`.
        targets (torch.Tensor): Pairs of user and item to be found, each once, of shape :obj:`[2, E]`.
        num_items (int): The number of items.
        k (int): The cutoff.

    Raises:
        ValueError: If :obj:`k` is not from 1 to :math:`k'`.

    Example:
        >>> ranking_metrics(torch.tensor([[2, 0]]), torch.tensor([5]), torch.tensor([[5, 5], [0, 1]]), num_items=3, k=1)
        {'recall@1': 0.0, 'ndcg@1': 0.0}
    """
    if not is_whole(k, 1) or k > ranking.size(1):
        raise ValueError(f'k: got {k!r}; accepted are 1 to {ranking.size(1)}, the length of the ranking')
    size = 1 + int(max(user_index.max(), targets[0].max())) if user_index.numel() and targets.numel() else 0
    if size == 0:
        return {f'recall@{k}': math.nan, f'ndcg@{k}': math.nan}
    count = torch.bincount(targets[0], minlength=size)[user_index]
    hit = torch.isin(user_index[:, None] * num_items + ranking[:, :k], targets[0] * num_items + targets[1])
    hit = (hit & (ranking[:, :k] >= 0))[count > 0].double()
    count = count[count > 0]
    discount = torch.arange(2, k + 2, dtype=torch.float64, device=hit.device).log2().reciprocal()
    recall = hit.sum(1) / count
    ndcg = hit @ discount / discount.cumsum(0)[count.clamp(max=k) - 1]
    return {f'recall@{k}': float(recall.mean()), f'ndcg@{k}': float(ndcg.mean())}


def evaluate(
    users: Tensor,
    items: Tensor,
    targets: Tensor,
    seen: Tensor,
    k: int | Sequence[int] = 20,
    groups: tuple[Tensor, Sequence[str]] | None = None,
    chunk_size: int = 1024,
) -> dict[str, float]:
    r"""Ranks all items for every user who has a target, and returns Recall@k and NDCG@k, averaged over these users.

    Args:
        users (torch.Tensor): The users' embeddings, of shape :obj:`[num_users, d]`.
        items (torch.Tensor): The items' embeddings, of shape :obj:`[num_items, d]`.
        targets (torch.Tensor): Pairs of user and item to be found, each once, of shape :obj:`[2, E]`.
        seen (torch.Tensor): Pairs that no ranking contains: training, and when testing validation interactions.
        k (int or list, optional): The cutoffs. (default: :obj:`20`)
        groups (tuple, optional): The group of each item and the groups' names, see :func:`popularity_groups`: adds, for each
            group, the metrics with its items alone as targets, in the same rankings, NaN for a group without a target.
            (default: :obj:`None`)
        chunk_size (int, optional): For how many users the scores are held at a time. (default: :obj:`1024`)

    Raises:
        ValueError: If a cutoff is not from 1 to the number of items, there is none, a user or an item does not exist, or
            :obj:`chunk_size` is below 1.

    Example:
        >>> evaluate(torch.eye(2), torch.eye(2), targets=torch.tensor([[0], [0]]), seen=torch.empty(2, 0).long(), k=1)
        {'recall@1': 1.0, 'ndcg@1': 1.0}
    """
    cutoffs: list[Any] = list(k) if isinstance(k, Sequence) else [k]
    if not cutoffs or not all(is_whole(cutoff) for cutoff in cutoffs):
        raise ValueError(f'k: got {k!r}; accepted are an integer, and a list of one or more')
    check_range(targets, users.size(0), items.size(0))
    check_range(seen, users.size(0), items.size(0))
    user_index = targets[0].unique()
    ranking = rank_items(users, items, user_index, seen, max(cutoffs), chunk_size)
    result: dict[str, float] = {}
    for cutoff in cutoffs:
        result |= ranking_metrics(ranking, user_index, targets, items.size(0), cutoff)
        for group, name in enumerate(groups[1] if groups else ()):
            assert groups is not None
            own = ranking_metrics(ranking, user_index, targets[:, groups[0][targets[1]] == group], items.size(0), cutoff)
            result |= {f'{name} {key}': value for key, value in own.items()}
    return result


def popularity_groups(
    train: Tensor, num_items: int, shares: Sequence[float] = (0.8, 0.15, 0.05)
) -> tuple[Tensor, tuple[str, ...]]:
    r"""Divides the items by their number of training interactions: the 80 % with the fewest are unpopular, the 5 % with the
    most popular, as in `"Are Graph Augmentations Necessary?" <https://arxiv.org/abs/2112.08679>`_ and MGFormer's Fig. 2.

    Args:
        train (torch.Tensor): Pairs of user and item, of shape :obj:`[2, E]`.
        num_items (int): The number of items.
        shares (list, optional): The share of the items in each of the three groups. (default: :obj:`(0.8, 0.15, 0.05)`)

    Returns:
        The group of each item, of shape :obj:`[num_items]`, and the names of the groups.

    Raises:
        ValueError: If the shares are not three numbers of at least 0 that sum to 1.

    Example:
        >>> popularity_groups(torch.tensor([[0, 1, 2], [0, 0, 1]]), num_items=3, shares=(0.4, 0.3, 0.3))[0].tolist()
        [2, 1, 0]
    """
    if len(shares) != 3 or min(shares) < 0 or not math.isclose(sum(shares), 1):
        raise ValueError(f'shares: got {tuple(shares)}; accepted are three numbers of at least 0 that sum to 1')
    order = torch.argsort(torch.bincount(train[1], minlength=num_items), stable=True)
    bounds = torch.tensor([round(num_items * shares[0]), round(num_items * (shares[0] + shares[1]))], device=order.device)
    group = torch.empty_like(order)
    group[order] = torch.bucketize(torch.arange(num_items, device=order.device), bounds, right=True)
    return group, ('unpopular', 'normal', 'popular')
