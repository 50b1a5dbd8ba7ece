"""FlopCounterMode over training steps. It counts the projections; the combine step is no operator that it knows."""

from collections.abc import Callable

import pytest
import torch
from grids import by_day
from small_layers import LAYERS, OF_EACH_KIND, example
from torch.nn import Linear
from torch.utils.flop_counter import FlopCounterMode


def flops(step: Callable[[], torch.Tensor]) -> int:
    with FlopCounterMode(display=False) as counter:
        step().square().sum().backward()
    return int(counter.get_total_flops())


@pytest.mark.parametrize('name', by_day(LAYERS, OF_EACH_KIND))
def test_forward_and_backward(name: str) -> None:
    layer, _, x, graph = example(name, 3, 5)
    x.requires_grad_()
    one = flops(lambda: Linear(4, 4).double()(x))
    assert flops(lambda: layer(x, graph=graph)) >= 4 * one > 0
