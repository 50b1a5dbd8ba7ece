r"""Messages that count by the distance of the positional encodings of their ends."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import Linear, Module, ReLU, Sequential
from torch_geometric.nn import GINEConv
from torch_geometric.nn.inits import reset

from pyg_topomask.errors import ArgumentError
from pyg_topomask.nn.inputs import check_dtype


class PositionalGate(Module):
    r"""The weight of an edge by the distance of the positional encodings of its ends, as GraphGPS has it after `"Equivariant
    and Stable Positional Encoding for More Powerful Graph Neural Networks" <https://arxiv.org/abs/2203.00199>`_:

    .. math::
        r_{ij} = \sigma(\mathrm{MLP}(\lVert \mathbf{p}_i - \mathbf{p}_j \rVert^2))

    with one hidden layer.
    """

    def __init__(self, hidden_channels: int, act: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.act = act
        self.lin_in = Linear(1, hidden_channels)
        self.lin_out = Linear(hidden_channels, 1)

    def reset_parameters(self) -> None:
        reset(self.lin_in)
        reset(self.lin_out)

    def forward(self, pe: Tensor | None, edge_index: Tensor, num_nodes: int) -> Tensor:
        r"""Returns the weights, :obj:`[E, 1]`, by encodings :obj:`[N, D]`."""
        if pe is None or pe.dim() != 2 or pe.size(0) != num_nodes:
            given = 'none' if pe is None else f'shape {tuple(pe.shape)}'
            raise ArgumentError('pe', f'{given} for a positional layer', f'shape [{num_nodes}, D], a row for each node')
        check_dtype(self.lin_in.weight.dtype, pe=pe)
        source, target = edge_index
        distance = (pe.index_select(0, target) - pe.index_select(0, source)).square().sum(1, keepdim=True)
        return torch.sigmoid(self.lin_out(self.act(self.lin_in(distance))))


class PositionalGINEConv(GINEConv):
    r"""PyG's GINE with a :class:`PositionalGate` as factor of each message:

    .. math::
        \mathbf{x}'_i = \mathrm{MLP} \left( (1 + \epsilon) \mathbf{x}_i + \sum_{j \in \mathcal{N}(i)} r_{ij} \max(\mathbf{x}_j +
        \mathbf{e}_{ij}, 0) \right)
    """

    def __init__(self, nn: Sequential, channels: int) -> None:
        super().__init__(nn)
        self.gate = PositionalGate(channels, ReLU())

    def reset_parameters(self) -> None:
        super().reset_parameters()
        reset(getattr(self, 'gate', None))  # PyG calls this while it builds the layer

    def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor, pe: Tensor) -> Tensor:
        weight = self.gate(pe, edge_index, x.size(0))
        # propagate_type: (x: Tensor, edge_attr: Tensor, weight: Tensor)
        out: Tensor = self.nn((1 + self.eps) * x + self.propagate(edge_index, x=x, edge_attr=edge_attr, weight=weight))
        return out

    def message(self, x_j: Tensor, edge_attr: Tensor, weight: Tensor) -> Tensor:
        return weight * (x_j + edge_attr).relu()
