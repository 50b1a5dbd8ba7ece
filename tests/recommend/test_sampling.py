from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import chisquare

from pyg_topomask.recommend.sampling import NegativeSampler


def test_every_unknown_item_equally_often_and_no_known_one() -> None:
    num_users, num_items = 30, 17
    known = torch.rand(num_users, num_items) < torch.linspace(0, 1, num_users)[:, None]
    known[-1] = True
    known[0] = False
    pairs = known.nonzero().t()[:, torch.randperm(int(known.sum()))]
    sampler = NegativeSampler(torch.cat([pairs, pairs[:, :5]], 1), num_users, num_items)
    draws = 4000
    items = sampler(torch.arange(num_users).repeat_interleave(draws)).view(num_users, draws)
    for user in range(num_users):
        unknown = (~known[user]).nonzero()[:, 0]
        if unknown.numel() == 0:
            assert (items[user] == -1).all()
            continue
        counts = np.bincount(items[user].numpy(), minlength=num_items)
        assert counts[known[user].numpy()].sum() == 0
        assert counts.sum() == draws
        if unknown.numel() > 1:
            assert chisquare(counts[unknown.numpy()]).pvalue > 1e-4 / num_users


def test_seeded() -> None:
    sampler = NegativeSampler(torch.tensor([[0, 1], [3, 4]]), 2, 100)
    users = torch.zeros(50, dtype=torch.long)
    one, two = (sampler(users, torch.Generator().manual_seed(1)) for _ in range(2))
    assert torch.equal(one, two)
    torch.manual_seed(5)
    one = sampler(users)
    torch.manual_seed(5)
    assert torch.equal(one, sampler(users))
    assert not torch.equal(one, sampler(users))
    assert sampler(users[:0]).shape == (0,)


def test_without_interactions() -> None:
    items = NegativeSampler(torch.empty(2, 0, dtype=torch.long), 2, 3)(torch.zeros(200, dtype=torch.long))
    assert set(items.tolist()) == {0, 1, 2}


@pytest.mark.parametrize(
    ('pairs', 'message'), [([[2], [0]], 'users from 2 to 2; accepted are 0 to 1'), ([[0], [3]], 'items from 3 to 3; acc')]
)
def test_out_of_range(pairs: list[list[int]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        NegativeSampler(torch.tensor(pairs), 2, 3)
