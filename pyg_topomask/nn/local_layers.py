r"""Local layers of GraphGPS that PyG lacks: the gated graph convolution, and messages weighted by positional encodings."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn import Linear, Module, ReLU, Sequential
from torch_geometric.nn import BatchNorm, GINEConv
from torch_geometric.nn.conv import MessagePassing
from torch_geometric.nn.inits import reset
from torch_geometric.nn.resolver import activation_resolver

from pyg_topomask.errors import ArgumentError
from pyg_topomask.nn.inputs import check_dtype, check_features, input_of, linear
from pyg_topomask.utils.checks import check_probability, check_size
from pyg_topomask.utils.precision import widened


class GatedGCNConv(MessagePassing):
    r"""The gated graph convolution of `"Residual Gated Graph ConvNets" <https://arxiv.org/abs/1711.07553>`_ in the form of
    GraphGPS's :obj:`CustomGatedGCN`. It also updates the edge features:

    .. math::
        \mathbf{\hat{e}}_{ij} &= \mathbf{D} \mathbf{x}_i + \mathbf{E} \mathbf{x}_j + \mathbf{C} \mathbf{e}_{ij}

        \mathbf{\hat{x}}_i &= \mathbf{A} \mathbf{x}_i + \frac{\sum_{j \in \mathcal{N}(i)} \sigma(\mathbf{\hat{e}}_{ij}) \odot
        \mathbf{B} \mathbf{x}_j}{\sum_{j \in \mathcal{N}(i)} \sigma(\mathbf{\hat{e}}_{ij}) + \epsilon}

    with :math:`\epsilon = 10^{-6}`. With :obj:`positional`, each :math:`\sigma(\mathbf{\hat{e}}_{ij})` is multiplied by
    :math:`r_{ij} = \sigma(\mathrm{MLP}(\lVert \mathbf{p}_i - \mathbf{p}_j \rVert^2))` for positional encodings
    :math:`\mathbf{p}`, as in `"Equivariant and Stable Positional Encoding for More Powerful Graph Neural Networks"
    <https://arxiv.org/abs/2203.00199>`_. Batch normalization, activation, dropout and a residual connection follow for both.
    Unlike :class:`torch_geometric.nn.ResGatedGraphConv`, the layer divides by the sum of the gates, and returns the edge
    features.

    The layer takes :math:`O(N + E)`.

    Args:
        channels (int): Size of the node features and of the edge features.
        dropout (float): Dropout probability of both outputs. (default: :obj:`0.0`)
        act (str or callable): The activation function. (default: :obj:`"relu"`)
        residual (bool): Add the input to the output. (default: :obj:`True`)
        positional (bool): Weigh messages by the distance of the positional encodings :obj:`pe` of their ends.
            (default: :obj:`False`)

    Shapes:
        - **input:** node features :math:`(|\mathcal{V}|, F)`, edge indices :math:`(2, |\mathcal{E}|)`, edge features
          :math:`(|\mathcal{E}|, F)`, positional encodings :math:`(|\mathcal{V}|, D)` *(optional)*
        - **output:** node features :math:`(|\mathcal{V}|, F)`, edge features :math:`(|\mathcal{E}|, F)`

    Example:
        >>> conv = GatedGCNConv(8)
        >>> x, edge_attr = conv(torch.randn(3, 8), torch.tensor([[0, 1], [1, 2]]), torch.randn(2, 8))
        >>> x.shape, edge_attr.shape
        (torch.Size([3, 8]), torch.Size([2, 8]))
    """

    def __init__(
        self,
        channels: int,
        dropout: float = 0.0,
        act: str | Callable[[Tensor], Tensor] = 'relu',
        residual: bool = True,
        positional: bool = False,
    ) -> None:
        super().__init__(aggr='add')
        check_size(channels=channels)
        check_probability(dropout=dropout)
        self.channels = channels
        self.dropout = dropout
        self.residual = residual
        self.act: Callable[[Tensor], Tensor] = activation_resolver(act)
        self.lin_self = linear(channels, channels)  # A to E in the equation
        self.lin_neighbor = linear(channels, channels)
        self.lin_edge = linear(channels, channels)
        self.lin_target = linear(channels, channels)
        self.lin_source = linear(channels, channels)
        self.gate = PositionalGate(channels, self.act) if positional else None
        # A batch of one node or edge has no variance to normalize by.
        self.norm_x: Module = BatchNorm(channels, allow_single_element=True)
        self.norm_edge: Module = BatchNorm(channels, allow_single_element=True)

    def reset_parameters(self) -> None:
        r"""Resets all learnable parameters."""
        super().reset_parameters()
        for module in self.children():
            reset(module)

    def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor, pe: Tensor | None = None) -> tuple[Tensor, Tensor]:
        r"""Returns the new node features, :obj:`[N, channels]`, and edge features, :obj:`[E, channels]`."""
        check_features(x, *input_of(self.lin_self))
        if edge_attr.shape != (edge_index.size(1), self.channels):
            given = f'shape {tuple(edge_attr.shape)}'
            raise ArgumentError('edge_attr', given, f'{(edge_index.size(1), self.channels)}, a row for each edge')
        if pe is not None and self.gate is None:
            raise ArgumentError('pe', f'shape {tuple(pe.shape)}', 'None without positional=True, which reads it')
        edge_index = edge_index.long()  # older versions of torch add up by no other
        edge = self.edge_updater(
            edge_index, target=self.lin_target(x), source=self.lin_source(x), edge_attr=self.lin_edge(edge_attr)
        )
        weight = None if self.gate is None else self.gate(pe, edge_index, x.size(0))
        sums = self.propagate(edge_index, value=self.lin_neighbor(x), edge=edge, weight=weight)
        total, weight = sums.chunk(2, dim=-1)
        out = self.lin_self(x) + (total / (weight + 1e-6)).to(x.dtype)
        return self._finish(out, x, self.norm_x), self._finish(edge, edge_attr, self.norm_edge)

    def edge_update(self, target_i: Tensor, source_j: Tensor, edge_attr: Tensor) -> Tensor:
        return target_i + source_j + edge_attr

    def message(self, value_j: Tensor, edge: Tensor, weight: Tensor | None) -> Tensor:
        # Sums in half precision would lose small gates.
        gate = widened(edge).sigmoid()
        gate = gate if weight is None else gate * weight
        return torch.cat([gate * value_j, gate], dim=-1)

    def _finish(self, out: Tensor, before: Tensor, norm: Module) -> Tensor:
        out = F.dropout(self.act(norm(out)), self.dropout, self.training)
        return before + out if self.residual else out

    def __repr__(self) -> str:
        return f'{type(self).__name__}({self.channels}, dropout={self.dropout}, residual={self.residual})'


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
