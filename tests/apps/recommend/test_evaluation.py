from __future__ import annotations

import math
from itertools import permutations

import numpy as np
import pytest
import torch
from grids import covering

from pyg_topomask.apps.recommend.evaluation import evaluate, popularity_groups, rank_items


def dense_metrics(scores: np.ndarray, targets: np.ndarray, seen: np.ndarray, k: int) -> tuple[float, float]:
    """Recall and NDCG with a full sort, user by user; of equal scores the lower item comes first."""
    recall, ndcg = [], []
    for user in range(len(scores)):
        if not targets[user].any():
            continue
        order = [item for item in np.lexsort((np.arange(scores.shape[1]), -scores[user])) if not seen[user, item]][:k]
        gain = [float(targets[user, item]) for item in order]
        ideal = min(k, int(targets[user].sum()))
        recall.append(sum(gain) / targets[user].sum())
        ndcg.append(sum(g / math.log2(r + 2) for r, g in enumerate(gain)) / sum(1 / math.log2(r + 2) for r in range(ideal)))
    return float(np.mean(recall)), float(np.mean(ndcg))


@pytest.mark.parametrize(('chunk_size', 'ties', 'k'), covering([1, 4, 1000], [False, True], [1, 3, 12]))
def test_against_a_full_sort(k: int, ties: bool, chunk_size: int) -> None:
    users, items = torch.randn(20, 3, dtype=torch.double), torch.randn(12, 3, dtype=torch.double)
    if ties:  # few different integers, exact in floating point
        users, items = users.round(), items.round()
    state = torch.rand(20, 12)
    seen, targets = state < 0.3, state > 0.7
    targets[[3, 8]] = False  # not averaged
    seen[5] = True
    seen[5, 2], targets[5, 2] = False, True  # fewer items than k are left
    targets &= ~seen
    pairs = targets.nonzero().t()[:, torch.randperm(int(targets.sum()))]
    result = evaluate(users, items, pairs, seen.nonzero().t(), k, chunk_size=chunk_size)
    recall, ndcg = dense_metrics((users @ items.t()).numpy(), targets.numpy(), seen.numpy(), k)
    assert result == {f'recall@{k}': pytest.approx(recall, rel=1e-6), f'ndcg@{k}': pytest.approx(ndcg, rel=1e-6)}


def test_groups_and_cutoffs() -> None:
    users, items = torch.randn(20, 3, dtype=torch.double), torch.randn(12, 3, dtype=torch.double)
    targets = torch.rand(20, 12) > 0.7
    group = torch.arange(12) % 3
    seen = torch.zeros(20, 12, dtype=torch.bool)
    names = ('a', 'b', 'c')
    pairs = targets.nonzero().t()
    result = evaluate(users, items, pairs, seen.nonzero().t(), [2, 5], groups=(group, names))
    scores = (users @ items.t()).numpy()
    for k in (2, 5):
        for index, name in enumerate(names):
            expected = dense_metrics(scores, (targets & (group == index)).numpy(), seen.numpy(), k)
            assert (result[f'{name} recall@{k}'], result[f'{name} ndcg@{k}']) == pytest.approx(expected, rel=1e-6)
        assert result[f'recall@{k}'] == pytest.approx(dense_metrics(scores, targets.numpy(), seen.numpy(), k)[0])


def test_ranking_leaves_out_what_was_seen() -> None:
    users, items = torch.randn(6, 4), torch.randn(9, 4)
    seen = torch.rand(6, 9) < 0.5
    index = torch.tensor([4, 0, 4])
    ranking = rank_items(users, items, index, seen.nonzero().t()[:, torch.randperm(int(seen.sum()))], k=9, chunk_size=2)
    for user, top in zip(index.tolist(), ranking.tolist(), strict=True):
        expected = [item for item in (users[user] @ items.t()).argsort(descending=True).tolist() if not seen[user, item]]
        assert top == expected + [-1] * (9 - len(expected))


NAN, NONE = torch.tensor([[1.0], [torch.nan]]), torch.empty(2, 0)


def test_what_cannot_be_ranked(subtests: pytest.Subtests) -> None:
    for users, items, index, seen, error in [
        (NAN, torch.ones(3, 1), [0], NONE, 'users: got NaN or infinite numbers; accepted: finite'),
        (
            torch.ones(3, 1),
            torch.ones(2, 1),
            [-1],
            NONE,
            'user_index: got numbers from -1 to -1; accepted: nodes',
        ),
        (
            torch.ones(3, 1),
            torch.ones(2, 1),
            [0, 3],
            NONE,
            'user_index: got numbers from 0 to 3; accepted: nodes',
        ),
        (torch.ones(3, 1), torch.ones(2, 1), [0.0], NONE, 'user_index: got torch.float32; accepted: int32 and int64'),
        (torch.ones(3, 1), torch.ones(2, 1), [[0]], NONE, r'user_index: got shape \(1, 1\)'),
        (torch.ones(3, 1), torch.ones(2, 1), [0], torch.tensor([[0], [-1]]), 'seen: got items from -1'),
        (torch.ones(3, 2), torch.ones(2, 1), [0], NONE, r'items: got shape \(2, 1\); accepted: \[num_items, 2\]'),
        (torch.ones(3), torch.ones(2, 1), [0], NONE, r'users: got shape \(3,\); accepted: \[num_users, d\]'),
        ([[1.0]], torch.ones(2, 1), [0], NONE, 'users: got list; accepted: tensors'),
        (torch.ones(3, 1), np.ones((2, 1)), [0], NONE, 'items: got ndarray; accepted: tensors'),
        (torch.ones(3, 1), torch.ones(2, 1).double(), [0], NONE, 'items: got torch.float64 for users of torch.float32'),
        (torch.ones(3, 1).long(), torch.ones(2, 1).long(), [0], NONE, 'items: got torch.int64 for users of torch.int64'),
    ]:
        with (
            subtests.test(users=users, items=items, index=index, seen=seen, error=error),
            pytest.raises(ValueError, match=f'^{error}'),
        ):
            rank_items(users, items, torch.tensor(index), seen, k=1)


def test_pairs_of_another_shape_or_type(subtests: pytest.Subtests) -> None:
    for pairs, error in [
        (torch.zeros(3, 2, dtype=torch.long), r'got shape \(3, 2\); accepted: \[2, E\]'),
        (torch.zeros(2, dtype=torch.long), r'got shape \(2,\); accepted: \[2, E\]'),
        (torch.empty(0), r'got shape \(0,\); accepted: \[2, E\]'),
        (torch.zeros(2, 1), 'got torch.float32; accepted: int32 and int64'),
        (torch.ones(2, 1, dtype=torch.bool), 'got torch.bool; accepted: int32 and int64'),
        ([[0], [1]], 'got list; accepted: tensors'),
    ]:
        with subtests.test(pairs=pairs, error=error):
            for argument, given in (('targets', {'seen': NONE}), ('seen', {'targets': NONE})):
                with pytest.raises(ValueError, match=f'^{argument}: {error}'):
                    evaluate(torch.eye(2), torch.eye(2), **given, **{argument: pairs}, k=1)


def test_pairs_of_32_bits_and_none_of_any_type() -> None:
    users, items, targets = torch.randn(4, 2), torch.randn(3, 2), torch.tensor([[0, 2], [1, 2]])
    seen = torch.tensor([[0, 3], [0, 1]])
    assert evaluate(users, items, targets.int(), seen.int(), k=2) == evaluate(users, items, targets, seen, k=2)
    assert all(math.isnan(value) for value in evaluate(users, items, NONE, NONE.bool(), k=2).values())


def test_nothing_seen_may_have_any_type() -> None:
    assert rank_items(torch.eye(2), torch.eye(2), torch.arange(2), NONE, k=1).tolist() == [[0], [1]]


def test_ties_go_to_the_lower_item() -> None:
    none = torch.empty(2, 0, dtype=torch.long)
    assert rank_items(torch.zeros(2, 1), torch.zeros(50, 1), torch.arange(2), none, 5).tolist() == [[0, 1, 2, 3, 4]] * 2
    scores = torch.randint(3, (200, 40)).float()
    expected = scores.sort(dim=1, descending=True, stable=True).indices[:, :7]
    assert torch.equal(rank_items(scores, torch.eye(40), torch.arange(200), none, 7), expected)


def test_a_short_ranking_does_not_hit_the_item_of_another_user() -> None:
    """User 1 has one item left. PyG's metrics read the -1 that follows as the last item of user 0, which is a target."""
    targets = torch.tensor([[0, 1], [2, 0]])
    seen = torch.tensor([[1, 1], [1, 2]])
    result = evaluate(torch.ones(2, 1), torch.tensor([[1.0], [3.0], [2.0]]), targets, seen, k=2)
    assert result == {'recall@2': 1.0, 'ndcg@2': pytest.approx((1 / math.log2(3) + 1) / 2, rel=1e-6)}
    seen = torch.tensor([[0, 1, 1, 1], [2, 0, 1, 2]])
    result = evaluate(torch.ones(2, 1), torch.tensor([[1.0], [3.0], [2.0]]), targets, seen, k=2)
    assert result == {'recall@2': 0.0, 'ndcg@2': 0.0}


def test_users_without_targets() -> None:
    empty = torch.empty(2, 0, dtype=torch.long)
    result = evaluate(torch.randn(3, 2), torch.randn(4, 2), empty, empty, k=2)
    assert all(math.isnan(value) for value in result.values())
    targets = torch.tensor([[2], [1]])
    group = (torch.zeros(4, dtype=torch.long), ('all', 'none'))
    result = evaluate(torch.ones(3, 2), torch.ones(4, 2), targets, empty, k=2, groups=group)
    assert result['all recall@2'] == result['recall@2'] == 1.0
    assert math.isnan(result['none recall@2'])


@pytest.mark.parametrize('k', [0, 5, -1])
def test_cutoff_beyond_the_catalogue(k: int) -> None:
    pair = torch.tensor([[0], [0]])
    for rank in (
        lambda: rank_items(torch.eye(4), torch.eye(4), pair[0], pair, k),
        lambda: evaluate(torch.eye(4), torch.eye(4), pair, pair[:, :0], k),
        lambda: evaluate(torch.eye(4), torch.eye(4), pair, pair[:, :0], [2, k]),
    ):
        with pytest.raises(ValueError, match=f'k: got {k}; accepted: 1 to 4, the number of items'):
            rank()


@pytest.mark.parametrize('sizes', [[80, 15, 5], [10, 1, 1]])  # of 12 items, 9.6 and 11.4 are rounded
def test_popularity_groups(sizes: list[int]) -> None:
    num_items = sum(sizes)
    popularity = torch.randperm(num_items)
    item = torch.arange(num_items).repeat_interleave(popularity)
    group, names = popularity_groups(torch.stack([torch.zeros_like(item), item]), num_items)
    assert names == ('unpopular', 'normal', 'popular')
    assert torch.bincount(group).tolist() == sizes
    expected = (popularity >= sizes[0]).long() + (popularity >= num_items - sizes[2]).long()
    assert torch.equal(group, expected)


def test_cutoffs_that_are_none(subtests: pytest.Subtests) -> None:
    for k in [[], 5.0, [1, 2.0], '2']:
        with subtests.test(k=k):
            pair = torch.tensor([[0], [0]])
            with pytest.raises(ValueError, match=r'^k: got .*; accepted: an integer, and a list of one or more$'):
                evaluate(torch.eye(2), torch.eye(2), pair, pair[:, :0], k=k)


def test_groups_of_other_items() -> None:
    pair = torch.tensor([[0], [0]])
    for groups in ((torch.zeros(1), ('all',)), torch.zeros(2)):
        with pytest.raises(ValueError, match=r'^groups: got shape .*; accepted: \[2\]$'):
            evaluate(torch.eye(2), torch.eye(2), pair, pair[:, :0], k=1, groups=groups)


@pytest.mark.parametrize('size', [0, -1])
def test_chunks_of_no_users(size: int) -> None:
    pair = torch.tensor([[0], [0]])
    with pytest.raises(ValueError, match=f'^chunk_size: got {size}; accepted: whole numbers from 1$'):
        evaluate(torch.eye(2), torch.eye(2), pair, pair[:, :0], k=1, chunk_size=size)


def test_what_does_not_exist_is_refused() -> None:
    none = torch.empty(2, 0, dtype=torch.long)
    for wrong in (torch.tensor([[0, 1], [2, 0]]), torch.tensor([[2], [0]])):
        for argument, targets, seen in (('targets', wrong, none), ('seen', torch.tensor([[0], [1]]), wrong)):
            with pytest.raises(ValueError, match=rf'^{argument}: got (items|users) from'):
                evaluate(torch.eye(2), torch.eye(2), targets, seen, k=1)


def test_inner_products_that_overflow_are_refused() -> None:
    with pytest.raises(ValueError, match=r'^users, items: got numbers up to 1e\+30; accepted: embeddings with finite'):
        rank_items(torch.tensor([[1e30]]), torch.tensor([[1e30], [-1e30], [1.0]]), torch.tensor([0]), NONE, k=2)


@pytest.mark.parametrize('chunk_size', [1, 1000])
def test_metrics_over_all_orders_of_equal_scores(chunk_size: int) -> None:
    """The mean and the minimum over all orders in which equal scores may stand. With the scores of one data set in four
    values, RecTools, ranx, LensKit and torchmetrics give four Recall@20."""
    generator = torch.Generator().manual_seed(0)
    scores = torch.randint(3, (6, 5), generator=generator).double()
    seen = torch.rand(6, 5, generator=generator) < 0.2
    targets = torch.rand(6, 5, generator=generator) < 0.4
    group = torch.tensor([0, 1, 0, 1, 0])
    given = (scores, torch.eye(5).double(), targets.nonzero().t(), seen.nonzero().t(), [2, 3], (group, ('a', 'b')), chunk_size)
    results = {ties: evaluate(*given, ties=ties) for ties in ('lower', 'mean', 'worst')}
    orders = torch.tensor(list(permutations(range(5))))
    for k in (2, 3):
        for name, chosen in (('', targets), ('a ', targets & (group == 0)), ('b ', targets & (group == 1))):
            means, least, users = np.zeros(2), np.zeros(2), chosen.any(1).nonzero().flatten().tolist()
            for user in users:
                one = slice(user, user + 1)
                values = [
                    dense_metrics(scores[one, order].numpy(), chosen[one, order].numpy(), seen[one, order].numpy(), k)
                    for order in orders
                ]
                means += np.mean(values, 0)
                least += np.min(values, 0)
            for ties, expected in (('mean', means), ('worst', least)):
                found = [results[ties][f'{name}{metric}@{k}'] for metric in ('recall', 'ndcg')]
                assert found == pytest.approx(expected / len(users), rel=1e-6)
            for metric in ('recall', 'ndcg'):
                assert results['worst'][f'{name}{metric}@{k}'] <= results['lower'][f'{name}{metric}@{k}'] + 1e-6


def test_a_pair_twice_is_refused() -> None:
    with pytest.raises(ValueError, match=r'^targets: got a pair twice; accepted: each pair once; use targets\.unique\(dim=1\)'):
        evaluate(torch.eye(2), torch.eye(2), torch.tensor([[0, 1, 0], [0, 0, 0]]), NONE, 1)


def test_unknown_order_of_equal_scores() -> None:
    with pytest.raises(ValueError, match=r"^ties: got 'best'; accepted: lower, mean, worst"):
        evaluate(torch.eye(2), torch.eye(2), torch.tensor([[0], [0]]), NONE.long(), k=1, ties='best')


@pytest.mark.parametrize('ties', ['lower', 'mean', 'worst'])
def test_metrics_without_targets_are_not_defined(ties: str) -> None:
    result = evaluate(torch.eye(2), torch.eye(2), NONE.long(), NONE.long(), k=1, ties=ties)
    assert all(math.isnan(value) for value in result.values())
