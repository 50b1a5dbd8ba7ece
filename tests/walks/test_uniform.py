import numpy as np
import pytest
import torch
from oracles import confidence
from scipy.stats import chi2
from torch import Tensor

from pyg_topomask.utils.random import counter_uniform, draw_seed

NODES, WALKS, STEPS = 2000, 10, 5
CHECKS = 40


def draw(seed: int = 0) -> Tensor:
    """Numbers by step, node and walk."""
    uniform = counter_uniform(seed, torch.arange(NODES), WALKS)
    walkers = torch.arange(NODES * WALKS, dtype=torch.int32)
    return torch.stack([uniform(step, walkers) for step in range(STEPS)]).view(STEPS, NODES, WALKS)


@pytest.mark.parametrize('seed', [0, 1, 12345, -7, 2**40])
def test_numbers_are_in_range_with_mean_and_variance_of_the_uniform_distribution(seed: int) -> None:
    numbers = draw(seed).flatten()
    bound = confidence(CHECKS) / numbers.numel() ** 0.5
    assert numbers.min() >= 0
    assert numbers.max() < 1
    assert abs(numbers.mean() - 0.5) < bound * (1 / 12) ** 0.5
    assert abs((numbers - 0.5).square().mean() - 1 / 12) < bound * (1 / 180) ** 0.5


@pytest.mark.parametrize('seed', [0, 1, 3])
def test_numbers_fill_bins_evenly(seed: int) -> None:
    counts = np.histogram(draw(seed).numpy(), bins=256, range=(0, 1))[0]
    statistic = ((counts - counts.mean()) ** 2 / counts.mean()).sum()
    assert chi2.isf(1 - 1e-5, 255) < statistic < chi2.isf(1e-5, 255)


def test_low_bits_fill_bins_evenly() -> None:
    bits = (draw() * 2**30).frac().numpy()
    counts = np.histogram(bits, bins=64, range=(0, 1))[0]
    assert ((counts - counts.mean()) ** 2 / counts.mean()).sum() < chi2.isf(1e-5, 63)


@pytest.mark.parametrize('lag', [1, 2])
@pytest.mark.parametrize('axis', [0, 1, 2], ids=['steps', 'nodes', 'walks'])
def test_neighbouring_numbers_are_uncorrelated(axis: int, lag: int) -> None:
    numbers = draw() - 0.5
    size = numbers.size(axis) - lag
    product = 12 * numbers.narrow(axis, 0, size) * numbers.narrow(axis, lag, size)
    assert abs(product.mean()) < confidence(CHECKS) / product.numel() ** 0.5


@pytest.mark.parametrize('seed', [1, 2, -1, 2**32])
def test_seeds_are_uncorrelated(seed: int) -> None:
    product = 12 * (draw(0) - 0.5) * (draw(seed) - 0.5)
    assert abs(product.mean()) < confidence(CHECKS) / product.numel() ** 0.5


def test_numbers_do_not_repeat() -> None:
    numbers = torch.cat([draw(0).flatten(), draw(1).flatten()])
    assert numbers.unique().numel() == numbers.numel()


def test_numbers_depend_on_the_position_of_the_node_in_its_graph_alone() -> None:
    alone = counter_uniform(5, torch.arange(3), 2)(1, torch.arange(6))
    batched = counter_uniform(5, torch.tensor([0, 1, 0, 1, 2]), 2)(1, torch.arange(10))
    assert torch.equal(batched[4:], alone)
    assert torch.equal(batched[:4], alone[:4])


def test_subsets_of_walkers_get_the_numbers_they_get_among_all() -> None:
    uniform = counter_uniform(5, torch.arange(10), 4)
    some, every = torch.tensor([3, 17, 39], dtype=torch.int32), torch.arange(40, dtype=torch.int32)
    assert torch.equal(uniform(2, some), uniform(2, every)[some])


@pytest.mark.parametrize('dtype', [torch.int32, torch.int64])
def test_walkers_are_left_as_they_are(dtype: torch.dtype) -> None:
    walkers = torch.arange(8, dtype=dtype)
    counter_uniform(0, torch.arange(4), 2)(0, walkers)
    assert torch.equal(walkers, torch.arange(8, dtype=dtype))


def test_seeds_are_drawn_from_the_generator_given_or_from_the_global_one() -> None:
    seeds = [draw_seed(torch.Generator().manual_seed(seed)) for seed in (3, 3, 4)]
    assert seeds[0] == seeds[1] != seeds[2]
    torch.manual_seed(9)
    first = [draw_seed(None), draw_seed(None)]
    torch.manual_seed(9)
    assert first == [draw_seed(None), draw_seed(None)]
    assert first[0] != first[1]
