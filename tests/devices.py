"""The same computation on two devices, and graphs to compute on."""

import copy
import os
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import torch
from fuzz.strategies import attributed, edges, random
from rounding import relative_error
from torch import Tensor
from torch.nn import Module
from torch_geometric.data import Batch, Data

CPU, DEVICE = torch.device('cpu'), torch.device(os.environ.get('TOPOMASK_DEVICE', 'cuda'))
#: In eps of the largest number, how far two devices may be apart. Here no result of a CPU is more than 7 from that in float64.
ROUNDINGS = 32

Thing = TypeVar('Thing', Tensor, Data, Module)


def to(device: torch.device, thing: Thing) -> Thing:
    """A copy on a device."""
    return copy.deepcopy(thing).to(device)


def assert_alike(run: Callable[[torch.device], Sequence[Tensor]]) -> None:
    """What is computed on the device is there, and is what is computed on the CPU: numbers up to rounding, relative to the
    largest of them, and all else exactly.
    """
    results = []
    for device in (CPU, DEVICE):
        torch.manual_seed(0)
        results.append(run(device))
    assert len(results[0]) == len(results[1]) > 0
    for expected, actual in zip(*results, strict=True):
        assert actual.device.type == DEVICE.type
        assert (actual.shape, actual.dtype) == (expected.shape, expected.dtype)
        actual, expected = actual.detach().cpu(), expected.detach()
        if not expected.is_floating_point():
            assert torch.equal(actual, expected)
        elif expected.numel() > 0:
            assert expected.any()
            assert relative_error(actual, expected) <= ROUNDINGS * torch.finfo(expected.dtype).eps


def with_gradients(out: Tensor, leaves: Iterable[Tensor]) -> list[Tensor]:
    """The output, and the gradient of a weighted sum of it in all the leaves, of which some may be zero but for rounding."""
    weight = random(9, *out.shape).to(out)
    grads = torch.autograd.grad((out * weight).sum(), list(leaves), allow_unused=True)
    return [out, torch.cat([grad.flatten() for grad in grads if grad is not None])]


def batch(kinds: Sequence[str] = ('random', 'parallel', 'none'), sizes: Sequence[int] = (12, 7, 1, 0)) -> Batch:
    """Graphs with all attributes that masks and layers read, one of them without edges and one without nodes."""
    graphs = []
    for seed, size in enumerate(sizes):
        data = attributed(edges(kinds[seed % len(kinds)], size, seed), size, seed)
        # By their ends, so that both directions of an edge weigh the same.
        data.edge_weight = 0.3 + ((data.edge_index.sum(0) * 7 + data.edge_index.prod(0)) % 5).float()
        graphs.append(data)
    return Batch.from_data_list(graphs)


def symmetric() -> Batch:
    return batch(('ring', 'star', 'none'))


def forest() -> Batch:
    return batch(('tree', 'star', 'none'))


def cubes() -> Batch:
    return batch(sizes=(4, 4))
