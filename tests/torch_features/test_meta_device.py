"""Modules constructed on the device meta, which begin as if constructed elsewhere."""

from collections.abc import Iterator
from itertools import chain

import pytest
import torch
from public_modules import MODULES
from torch import Tensor
from torch.nn import Module, Parameter

from pyg_topomask.masks import DenseMask, LowRankMask

OWN_FACTORS = ('DenseMask', 'LowRankMask')  # whose parameters are given, and not reset


def tensors(module: Module) -> Iterator[tuple[str, Tensor]]:
    return chain(module.named_parameters(), module.named_buffers())


@pytest.mark.parametrize('name', MODULES)
def test_to_empty_load_and_reset(name: str) -> None:
    with torch.device('meta'):
        module = MODULES[name]()
    assert all(tensor.is_meta for _, tensor in tensors(module))
    saved = MODULES[name]()
    module.to_empty(device='cpu').load_state_dict(saved.state_dict())
    for (_, actual), (_, tensor) in zip(module.named_parameters(), saved.named_parameters(), strict=True):
        torch.testing.assert_close(actual, tensor, rtol=0, atol=0)
    if name in OWN_FACTORS:
        return
    for _, tensor in tensors(module):
        torch.nn.init.constant_(tensor, float('nan') if tensor.is_floating_point() else -7)
    expected = MODULES[name]()
    for each in (module, expected):
        torch.manual_seed(0)
        each.reset_parameters()  # type: ignore[operator]
    for (key, actual), (other, tensor) in zip(tensors(module), tensors(expected), strict=True):
        assert key == other
        torch.testing.assert_close(actual, tensor, rtol=0, atol=0)


def test_given_tensors_are_reset_to_what_was_given() -> None:
    left, right = torch.randn(2, 3, 2, generator=torch.Generator().manual_seed(0))
    matrix = left @ right.t()
    with torch.device('meta'):
        masks = DenseMask(1, Parameter(matrix.clone())), LowRankMask(1, Parameter(left.clone()), Parameter(right.clone()))
    for mask, given in zip(masks, ((matrix,), (left, right)), strict=True):
        mask.to_empty(device='cpu')
        mask.reset_parameters()
        for actual, expected in zip(mask.parameters(), given, strict=True):
            torch.testing.assert_close(actual.detach(), expected, rtol=0, atol=0)
