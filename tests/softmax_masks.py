"""Masks and inputs for masked softmax attention."""

from collections.abc import Callable

import torch
from linear_masks import low_rank, numbers
from torch import Tensor
from torch_geometric.data import Data

from pyg_topomask.graphs.sparse_pattern import SparsePattern
from pyg_topomask.masks import AdjacencyMask, DenseMask, GRFMask, Mask, MultiHeadMask
from pyg_topomask.operators.base import MaskOperator
from pyg_topomask.operators.forms import Entries


def inputs(num_nodes: int, heads: int = 2, features: int = 3, channels: int = 4) -> tuple[Tensor, Tensor, Tensor]:
    return numbers(num_nodes, heads, features), numbers(num_nodes, heads, features), numbers(num_nodes, heads, channels)


def with_positive_weights(data: Data) -> Data:
    if 'edge_weight' in data:
        data.edge_weight = data.edge_weight.abs()
    return data


MASKS: dict[str, Callable[[Data], Mask]] = {
    'adjacency': lambda data: AdjacencyMask(2, 0.7, 'sym'),
    'adjacency_shared': lambda data: AdjacencyMask(),
    'adjacency_no_loop': lambda data: AdjacencyMask(2, None),
    'transposed': lambda data: AdjacencyMask(2, None).T,
    'scaled': lambda data: AdjacencyMask(2) * torch.nn.Parameter(torch.tensor([2.0, 0.5])),
    'grf': lambda data: GRFMask(2, 4, 0.3, 2, positive=True),
    'grf_one_hot_keys': lambda data: GRFMask(2, 4, 0.3, 2, asymmetric=True, positive=True),
    'grf_pairs': lambda data: GRFMask(2, 4, 0.3, 2, asymmetric='pairs', independent_ensembles=True, positive=True),
    'hadamard': lambda data: GRFMask(2, 4, 0.3, 2, positive=True) * low_rank(data),
    'sum': lambda data: GRFMask(2, 4, 0.3, 2, positive=True) + AdjacencyMask(),
    'heads': lambda data: MultiHeadMask(GRFMask(1, 4, 0.3, 2, positive=True), AdjacencyMask(1)),
}


def bound(matrix: Tensor) -> tuple[MaskOperator, Entries]:
    """A dense matrix [H, N, N], and its entries that are not zero in every head."""
    row, col = matrix.any(0).nonzero().t()
    size = matrix.size(1)
    entries = Entries(SparsePattern.from_sorted(row, col, size, size), matrix[:, row, col])
    return DenseMask(matrix.size(0), matrix).to(matrix.dtype)(Data(num_nodes=size)), entries
