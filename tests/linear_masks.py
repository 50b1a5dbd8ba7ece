"""Masks and inputs for masked linear attention."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch_geometric.data import Data

from pyg_topomask.masks import AdjacencyMask, DenseMask, GRFMask, LowRankMask, Mask, PackingMask


def numbers(*size: int) -> Tensor:
    return torch.randn(*size, dtype=torch.float64)


def low_rank(data: Data) -> LowRankMask:
    factors = (torch.nn.Parameter(numbers(data.num_nodes or 0, 2, 2).abs()) for _ in range(2))
    return LowRankMask(2, *factors)


def dense(data: Data) -> DenseMask:
    return DenseMask(2, torch.nn.Parameter(numbers(2, data.num_nodes or 0, data.num_nodes or 0)))


def scaled(mask: Mask) -> Mask:
    return mask * torch.nn.Parameter(torch.tensor([2.0, -1.5]))


MASKS: dict[str, Callable[[Data], Mask]] = {
    'packing': lambda data: PackingMask(),
    'adjacency': lambda data: AdjacencyMask(2, 0.7, 'sym'),
    'dense': dense,
    'low_rank': low_rank,
    'grf': lambda data: GRFMask(2, 4, 0.3, 2),
    'grf_independent': lambda data: GRFMask(2, 4, 0.3, 2, independent_ensembles=True),
    'scaled_grf': lambda data: scaled(GRFMask(2, 4, 0.3, 2)),
    'transposed': lambda data: GRFMask(2, 4, 0.3, 2, independent_ensembles=True).T,
    'hadamard': lambda data: GRFMask(2, 4, 0.3, 2) * low_rank(data),
    'sum': lambda data: AdjacencyMask(2) + low_rank(data),
    'scaled_low_rank': lambda data: scaled(low_rank(data)),
}


def inputs(num_nodes: int, heads: int = 2, features: int = 3, channels: int = 4) -> tuple[Tensor, Tensor, Tensor]:
    q, k = (numbers(num_nodes, heads, features).abs() for _ in range(2))
    return q, k, numbers(num_nodes, heads, channels)


def assert_compiles(attend: Callable[[Tensor, Tensor, Tensor], Tensor]) -> None:
    """As one graph, with equal outputs and gradients on the 40 nodes of the batch."""
    leaves = [tensor.requires_grad_() for tensor in inputs(40)]
    weight = numbers(40, 2, 4)
    torch._dynamo.reset()
    results = []
    for run in (attend, torch.compile(attend, fullgraph=True, backend='aot_eager')):
        out = run(*leaves)
        results.append([out, *torch.autograd.grad((out * weight).sum(), leaves, retain_graph=True)])
    for actual, expected in zip(*results, strict=True):
        torch.testing.assert_close(actual, expected)
