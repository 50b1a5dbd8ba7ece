"""What draws takes a generator of any device."""

from collections.abc import Callable

import pytest
import torch
from graphs import no_edges
from torch import Tensor

from pyg_topomask.feature_maps import DenseExponentialFeatures, FavorFeatures, FourierFeatures, SimplexFeatures
from pyg_topomask.masks import StochasticRPEMask
from pyg_topomask.nn import KMIPAttention
from pyg_topomask.utils.random import generator_on


class Elsewhere(torch.Generator):
    """A generator of a device that this machine need not have."""

    device = torch.device('cuda')


def redrawn(make: Callable[[], torch.nn.Module]) -> Callable[[torch.Generator], Tensor]:
    def draw(generator: torch.Generator) -> Tensor:
        module = make()
        module.redraw(generator)
        return module.projection

    return draw


def random_keys(generator: torch.Generator) -> Tensor:
    torch.manual_seed(0)
    return KMIPAttention(4, k=2, random_fraction=2.0)(torch.randn(50, 4), no_edges(), generator=generator)


DRAWS = {
    'favor': redrawn(lambda: FavorFeatures(4)),
    'simplex': redrawn(lambda: SimplexFeatures(4)),
    'derf': redrawn(lambda: DenseExponentialFeatures(4)),
    'fourier': redrawn(lambda: FourierFeatures(4)),
    'stochastic_rpe': redrawn(StochasticRPEMask),
    'kmip': random_keys,
}


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize('name', DRAWS)
def test_generators_of_the_same_device_are_used_and_others_give_their_seed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr('pyg_topomask.utils.random.draw_seed', lambda generator: 7)
    assert torch.equal(DRAWS[name](Elsewhere()), DRAWS[name](generator(7)))
    assert not torch.equal(DRAWS[name](generator(8)), DRAWS[name](generator(7)))


def test_no_generator_and_one_of_the_same_device_stay() -> None:
    cpu_generator, here = torch.Generator(), torch.device('cpu')
    assert generator_on(here, cpu_generator) is cpu_generator
    assert generator_on(here, None) is None
