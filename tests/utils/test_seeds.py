import torch

from pyg_topomask.utils.random import seed_torch


def test_seeds_are_those_of_torch() -> None:
    torch.manual_seed(7)
    expected = torch.rand(3)
    seed_torch(7)
    assert torch.equal(torch.rand(3), expected)
