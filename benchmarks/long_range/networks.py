r"""One network around every layer: batch norm, residual connections and feed-forward blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import BatchNorm1d, Identity, Linear, Module, ModuleList, ReLU, Sequential
from torch_geometric.data import Data
from torch_geometric.nn import AntiSymmetricConv, GATConv, GCN2Conv, GCNConv, GINConv, GPSConv, PNAConv, SAGEConv
from torch_geometric.utils import scatter

from benchmarks.long_range.tasks import STEPS, Task
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks import HopMask, ToeplitzMask
from pyg_topomask.nn import MaskedLinearAttention, MaskedSoftmaxAttention

__all__ = ['MODELS', 'Model', 'Network']

HEADS = 4
#: The largest distance in the largest graphs.
MOST_HOPS = 99


class Model(NamedTuple):
    r"""What makes a layer of a width, how many layers there are, what they are in words, a divisor of the width, and whether
    there is batch norm.
    """

    make: Callable[[int], Module]
    layers: int
    words: str
    step: int = HEADS
    norm: bool = True


def _hop(width: int, sums: bool, f: str = 'balls') -> Module:
    return MaskedLinearAttention(width, HEADS, HopMask(HEADS, MOST_HOPS, f), sums=sums)


def _gin(width: int) -> GINConv:
    return GINConv(Sequential(Linear(width, width), ReLU(), Linear(width, width)))


#: The degrees of the graphs of training, which PNA reads.
_DEGREES = torch.bincount(torch.tensor([1, 2, 2, 2, 3, 3, 4, 5, 6, 8]))


def _pna(width: int) -> Module:
    return PNAConv(width, width, ['mean', 'max', 'min', 'std'], ['identity', 'amplification', 'attenuation'], _DEGREES)


def _softmax(width: int) -> Module:
    return MaskedSoftmaxAttention(width, HEADS, HopMask(HEADS, MOST_HOPS))


def _performer(width: int, head_channels: int) -> Module:
    return GPSConv(width, _gin(width), HEADS, attn_type='performer', attn_kwargs={'head_channels': head_channels})


_GRAPHORMER = 'softmax attention whose bias is a learned function of the distance, as in Graphormer'
#: The models by name.
MODELS = {
    'Hop with sums, geometric, one layer': Model(
        lambda width: _hop(width, True, 'geometric'), 1, 'the mask, means and sums, without norm', norm=False
    ),
    'Hop with sums, geometric': Model(lambda width: _hop(width, True, 'geometric'), 3, 'the mask, means and sums'),
    'Hop with sums': Model(lambda width: _hop(width, True), 3, 'the mask, means and sums'),
    'Hop': Model(lambda width: _hop(width, False), 3, 'the mask, means'),
    'Toeplitz': Model(
        lambda width: MaskedLinearAttention(width, HEADS, ToeplitzMask(HEADS, periodic=True)),
        3,
        'the mask of offsets on the grid, means',
    ),
    'Linear with sums': Model(lambda width: MaskedLinearAttention(width, HEADS, sums=True), 3, 'no mask, means and sums'),
    'Linear': Model(lambda width: MaskedLinearAttention(width, HEADS), 3, 'no mask'),
    'softmax with distances': Model(_softmax, 3, _GRAPHORMER),
    'softmax with distances, one layer': Model(_softmax, 1, f'{_GRAPHORMER}, without norm', norm=False),
    'GPS, softmax': Model(lambda width: GPSConv(width, _gin(width), HEADS), 6, 'GIN beside softmax attention, encodings'),
    'GPS, Performer': Model(
        lambda width: _performer(width, 64), 6, "GIN beside Performer, PyG's 64 channels in each head, encodings"
    ),
    'GPS, narrow Performer': Model(
        lambda width: _performer(width, width // HEADS), 6, 'GIN beside Performer, heads that share the channels, encodings'
    ),
    'GCN': Model(lambda width: GCNConv(width, width), 16, 'message passing', 1),
    'GAT': Model(lambda width: GATConv(width, width // HEADS, HEADS), 16, 'message passing'),
    'SAGE': Model(lambda width: SAGEConv(width, width), 16, 'message passing', 1),
    'GIN': Model(_gin, 16, 'message passing', 1),
    'GIN without norm': Model(_gin, 16, 'message passing, without norm', 1, norm=False),
    'PNA': Model(_pna, 8, 'message passing', 1),
    'GCNII': Model(lambda width: GCN2Conv(width, 0.1, 0.5, 1), 16, 'message passing, the first features in every layer', 1),
    'A-DGN': Model(
        lambda width: AntiSymmetricConv(width, num_iters=20), 1, 'message passing, 20 steps of one antisymmetric layer', 1
    ),
}


def _norm(norm: bool, width: int) -> Module:
    return BatchNorm1d(width) if norm else Identity()


class Block(Module):
    r""":math:`\mathbf{z} = \mathbf{x} + \mathrm{layer}(\mathrm{BN}(\mathbf{x}))`, and :math:`\mathbf{z} +
    \mathrm{MLP}(\mathrm{BN}(\mathbf{z}))`, possibly without norms. A layer of GPS has all this itself.
    """

    def __init__(self, layer: Module, width: int, norm: bool) -> None:
        super().__init__()
        self.layer = layer
        self.norms = ModuleList(_norm(norm, width) for _ in range(2))
        self.mlp = Sequential(Linear(width, 2 * width), ReLU(), Linear(2 * width, width))

    def forward(self, x: Tensor, first: Tensor, data: Data, graph: Graph) -> Tensor:
        if isinstance(self.layer, GPSConv):
            out: Tensor = self.layer(x, data.edge_index, data.batch)
            return out
        normed = self.norms[0](x)
        if isinstance(self.layer, MaskedLinearAttention | MaskedSoftmaxAttention):
            z = x + self.layer(normed, graph=graph)
        else:
            z = x + self.layer(normed, *([first] if isinstance(self.layer, GCN2Conv) else []), data.edge_index)
        block: Tensor = self.mlp(self.norms[1](z))
        return z + block


class Network(Module):
    r"""The layers between linear maps. The answer of a graph is read from the sum, the mean and the maximum over its nodes.

    Args:
        model (Model): The layers.
        width (int): The number of channels.
        task (Task): What is asked.
    """

    def __init__(self, model: Model, width: int, task: Task) -> None:
        super().__init__()
        layers = [model.make(width) for _ in range(model.layers)]
        self.encoded, self.graphs = isinstance(layers[0], GPSConv), task.graphs
        self.lin_in = Linear(task.inputs + (STEPS if self.encoded else 0), width)
        self.blocks = ModuleList(Block(layer, width, model.norm) for layer in layers)
        self.norm = _norm(model.norm, width)
        self.lin_out = Sequential(Linear(3 * width if task.graphs else width, width), ReLU(), Linear(width, 1))

    def forward(self, data: Data) -> Tensor:
        graph = Graph.from_data(data)
        x = first = self.lin_in(torch.cat([data.x, data.encoding], dim=1) if self.encoded else data.x)
        for block in self.blocks:
            x = block(x, first, data, graph)
        x = self.norm(x)
        if self.graphs:
            x = torch.cat([scatter(x, data.batch, 0, reduce=kind) for kind in ('sum', 'mean', 'max')], dim=1)
        out: Tensor = self.lin_out(x).squeeze(1)
        return out
