from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from pyg_topomask.apps.recommend.interactions import InteractionDataset, bipartite_data, split_per_user


def pairs(*interactions: tuple[int, int]) -> Tensor:
    return torch.tensor(interactions, dtype=torch.long).reshape(-1, 2).t()


def as_set(interactions: Tensor) -> set[tuple[int, ...]]:
    return {tuple(pair) for pair in interactions.t().tolist()}


def test_gaps_duplicates_and_overlap() -> None:
    dataset = InteractionDataset.from_pairs(
        train=pairs((10, 5), (10, 5), (30, 9)), val=pairs((10, 9), (30, 9)), test=pairs((10, 9), (20, 70), (20, 70))
    )
    assert dataset.user_ids.tolist() == [10, 20, 30]
    assert dataset.item_ids.tolist() == [5, 9, 70]
    assert as_set(dataset.train) == {(0, 0), (2, 1)}
    assert as_set(dataset.val) == {(0, 1)}
    assert as_set(dataset.test) == {(1, 2)}
    assert dataset.dropped == {'repeated in train': 1, 'in val and before': 1, 'repeated in test': 1, 'in test and before': 1}
    notes = '\n'.join(dataset.notes)
    assert '1 users without a training interaction' in notes
    assert '1 items without a training interaction' in notes
    assert 'items renumbered: ids 5 to 70 hold 3' in notes
    assert repr(dataset) == 'InteractionDataset(users=3, items=3, train=2, val=1, test=1)'


def test_bad_pairs(subtests: pytest.Subtests) -> None:
    for train, message in [
        (torch.zeros(3, 2, dtype=torch.long), r'train: got shape \(3, 2\); accepted: \[2, E\]'),
        ([[1, 2], [2, 5]], 'train: got list; accepted: tensors'),
        (torch.zeros(2, 2), 'train: got torch.float32'),
        (pairs((0, -1)), 'train: got a negative id'),
        (pairs(), 'train: got no interaction'),
    ]:
        with subtests.test(train=train, message=message), pytest.raises(ValueError, match=message):
            InteractionDataset.from_pairs(train)


def test_split_counts_follow_the_rule() -> None:
    for n in range(1, 41):
        interactions = torch.stack([torch.zeros(n, dtype=torch.long), torch.arange(n)])
        train, val, test = split_per_user(interactions, 0.1, 0.1, seed=n)
        # One for testing, then one for validation, as long as one is left; a tenth of more.
        expected = [max(n // 10, int(n >= 3)), max(n // 10, int(n >= 2))]
        assert [val.size(1), test.size(1)] == expected, n
        assert as_set(train) | as_set(val) | as_set(test) == as_set(interactions)
        assert train.size(1) + val.size(1) + test.size(1) == n


def test_split_ratio_is_exact() -> None:
    interactions = torch.stack([torch.zeros(100, dtype=torch.long), torch.arange(100)])
    assert [split.size(1) for split in split_per_user(interactions, 0.29, 0.57)] == [14, 29, 57]


def test_split_is_per_user_seeded_and_random() -> None:
    interactions = torch.stack([torch.arange(50).repeat_interleave(20), torch.arange(20).repeat(50)])
    interactions = interactions[:, torch.randperm(interactions.size(1))]
    train, val, test = split_per_user(interactions, 0.1, 0.2, seed=3)
    assert torch.bincount(train[0]).tolist() == [14] * 50
    assert torch.bincount(val[0]).tolist() == [2] * 50
    assert torch.bincount(test[0]).tolist() == [4] * 50
    assert as_set(test) == as_set(split_per_user(interactions, 0.1, 0.2, seed=3)[2])
    assert as_set(test) != as_set(split_per_user(interactions, 0.1, 0.2, seed=4)[2])
    # Which items test differs between users.
    assert torch.bincount(test[1], minlength=20).min() > 0
    train, val, test = split_per_user(interactions, 0.0, 0.0)
    assert (train.size(1), val.size(1), test.size(1)) == (1000, 0, 0)


def test_bad_ratios(subtests: pytest.Subtests) -> None:
    for ratios in [(-0.1, 0.1), (0.5, 0.5), (0.1, -0.1), (float('nan'), 0.1), ('0.1', 0.1)]:
        with subtests.test(ratios=ratios), pytest.raises(ValueError, match='val_ratio, test_ratio: got'):
            split_per_user(pairs((0, 1)), *ratios)


def test_graph_against_dense() -> None:
    interactions = pairs((0, 1), (2, 0), (0, 0), (2, 3))
    data = bipartite_data(interactions, num_users=4, num_items=5)
    adjacency = np.zeros((9, 9))
    for user, item in interactions.t().tolist():
        adjacency[user, 4 + item] = adjacency[4 + item, user] = 1
    dense = torch.zeros(9, 9)
    dense[data.edge_index[0], data.edge_index[1]] = 1
    np.testing.assert_array_equal(dense.numpy(), adjacency)
    assert (data.num_nodes, data.num_users, data.num_items) == (9, 4, 5)


@pytest.mark.parametrize(
    ('interactions', 'message'),
    [
        (pairs((0, 0), (3, 0)), 'pairs: got users from 0 to 3; accepted: 0 to 1'),
        (pairs((0, 0), (1, 2)), 'pairs: got items from 0 to 2; accepted: 0 to 1'),
        (pairs((0, 0), (1, -1)), 'pairs: got items from -1 to 0; accepted: 0 to 1'),
    ],
)
def test_graph_of_other_users_or_items(interactions: Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        bipartite_data(interactions, num_users=2, num_items=2)


def test_fingerprint_is_that_of_the_ids() -> None:
    interactions = InteractionDataset.from_pairs(pairs((1, 5), (2, 6), (3, 7)))
    assert (
        InteractionDataset.from_pairs(pairs((3, 5), (2, 5), (1, 7)), test=pairs((1, 6))).fingerprint == interactions.fingerprint
    )
    for changed in (pairs((1, 5), (2, 6), (4, 7)), pairs((1, 5), (2, 6), (3, 8)), pairs((1, 5), (2, 6), (3, 7), (5, 6))):
        assert InteractionDataset.from_pairs(changed).fingerprint != interactions.fingerprint
    # The same ids in a row, divided in another way.
    short, long = (
        InteractionDataset.from_pairs(interactions) for interactions in (pairs((1, 2), (1, 3)), pairs((1, 3), (2, 3)))
    )
    assert torch.cat([short.user_ids, short.item_ids]).tolist() == torch.cat([long.user_ids, long.item_ids]).tolist()
    assert short.fingerprint != long.fingerprint


def test_hash_is_that_of_the_interactions() -> None:
    def hashed(train: Tensor, **splits: Tensor) -> str:
        return InteractionDataset.from_pairs(train, **splits).interactions_hash

    interactions = hashed(pairs((1, 5), (2, 6)), test=pairs((1, 6)))
    assert hashed(pairs((2, 6), (1, 5)), test=pairs((1, 6))) == interactions
    changed = [hashed(pairs((1, 5), (2, 6)), val=pairs((1, 6))), hashed(pairs((1, 6), (2, 5)), test=pairs((1, 5)))]
    changed += [hashed(pairs((1, 5), (2, 6)), test=pairs((2, 5))), hashed(pairs((1, 5), (2, 6)), val=pairs((2, 5)))]
    assert len({interactions, *changed, hashed(pairs((1, 5), (2, 6), (1, 6)))}) == 6
