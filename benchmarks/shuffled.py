r"""Training steps on new batches, as in shuffled epochs, over steps on batches that were used before."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from itertools import cycle
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import Module, ModuleList
from torch_geometric.data import Batch, Data
from torch_geometric.nn import SAGEConv
from torch_geometric.transforms import BaseTransform, Compose
from torch_geometric.utils import grid, to_undirected

from benchmarks.harness import interleaved_medians, write_table
from benchmarks.steps import BATCHES, CHANNELS, DEGREE, HEADS
from pyg_topomask import Graph, masks
from pyg_topomask.nn import GRFAttention, MaskedLinearAttention, TopoGPSConv
from pyg_topomask.transforms import AddForest, AddGraphRandomFeatures, AddGridShape, AddRandomWalkKernel, PrepareMasks

__all__ = ['run']

#: How many batches are used in turn.
SEVERAL = 4
LAYERS = 3


def run(quick: bool, folder: Path) -> None:
    torch.set_num_threads(1)
    rows = [
        _row(name, nodes, max(1, number // (8 if quick else 1)), 1 if quick else 8)
        for nodes, number in (BATCHES | {30: 128}).items()
        for name in ATTENTIONS
    ]
    note = (
        f'Forward and backward, {CHANNELS} channels, {HEADS} heads, float32, one thread: medians of processor times, in turns. '
        f'"new" takes {SEVERAL} batches in turn, whose graphs are made from data in each step. "prepared" keeps these graphs. '
        f'"layer" is the attention alone, and "model" has {LAYERS} GPS layers of SAGEConv and the attention. "stored" is the '
        f'transform that ran before. Graphs are random, of degree {DEGREE} on average, trees for Tree, and grids for Toeplitz.'
    )
    write_table('shuffled', 'Steps on new batches over steps on prepared ones', note, rows, folder)


class _Model(Module):
    def __init__(self, make: Callable[[], Module]) -> None:
        super().__init__()
        self.layers = ModuleList(TopoGPSConv(CHANNELS, SAGEConv(CHANNELS, CHANNELS), attn=make()) for _ in range(LAYERS))

    def forward(self, x: Tensor, graph: Graph) -> Tensor:
        for layer in self.layers:
            x = layer(x, graph.edge_index, graph=graph)
        return x


def _random(nodes: int) -> Data:
    half = torch.randint(nodes, (2, DEGREE * nodes // 2))
    return Data(edge_index=torch.cat([half, half.flip(0)], dim=1), num_nodes=nodes)


def _tree(nodes: int) -> Data:
    node = torch.arange(1, nodes)
    return Data(edge_index=to_undirected(torch.stack([(torch.rand(nodes - 1) * node).long(), node])), num_nodes=nodes)


def _grid(nodes: int) -> Data:
    side = round(nodes**0.5)
    return Data(edge_index=grid(side, side)[0], num_nodes=side**2, side=side)


def _with_shape(data: Data) -> Data:
    shaped: Data = AddGridShape((data.side, data.side))(data)
    return shaped


def _masked(make: Callable[[], masks.Mask]) -> Callable[[], Module]:
    return lambda: MaskedLinearAttention(CHANNELS, HEADS, make())


_hop_2, _hop_32 = partial(masks.HopMask, HEADS, 2), partial(masks.HopMask, HEADS, 32)
#: How to make an attention and a graph, and what is stored.
ATTENTIONS: dict[str, tuple[Callable[[], Module], Callable[[int], Data], Callable[[], BaseTransform] | None]] = {
    'Linear': (lambda: MaskedLinearAttention(CHANNELS, HEADS), _random, None),
    'Adjacency': (_masked(partial(masks.AdjacencyMask, HEADS)), _random, None),
    'SinDegree': (_masked(partial(masks.SinDegreeMask, HEADS)), _random, None),
    'Hop, 2 hops': (_masked(_hop_2), _random, lambda: PrepareMasks(_hop_2())),
    'Hop, 32 hops': (_masked(_hop_32), _random, lambda: PrepareMasks(_hop_32())),
    'PowerSeries, order 2': (_masked(partial(masks.PowerSeriesMask, HEADS, 2)), _random, None),
    'PowerSeries, order 4': (_masked(partial(masks.PowerSeriesMask, HEADS, 4)), _random, None),
    'HeatKernel, tolerance 1e-3': (_masked(partial(masks.HeatKernelMask, HEADS, tolerance=1e-3)), _random, None),
    'GRF': (lambda: GRFAttention(CHANNELS, HEADS), _random, AddGraphRandomFeatures),
    'RWGNK': (_masked(partial(masks.RWGNKMask, HEADS)), _random, AddRandomWalkKernel),
    'Tree': (_masked(partial(masks.TreeMask, HEADS)), _tree, AddForest),
    'Toeplitz': (_masked(partial(masks.ToeplitzMask, HEADS)), _grid, lambda: Compose([_with_shape])),
}


def _row(name: str, nodes: int, number: int, repeats: int) -> dict[str, object]:
    make, graph, stored = ATTENTIONS[name]
    torch.manual_seed(0)
    transform = None if stored is None else stored()
    lists = [[graph(nodes) for _ in range(number)] for _ in range(SEVERAL)]
    batches = [Batch.from_data_list([transform(data) if transform else data for data in graphs]) for graphs in lists]
    x = torch.randn(batches[0].num_nodes, CHANNELS, requires_grad=True)
    kept, fresh = cycle([Graph.from_data(batch) for batch in batches]), cycle(batches)

    def step(module: Module, new: bool) -> None:
        used = Graph.from_data(next(fresh)) if new else next(kept)
        module(x, graph=used).sum().backward()

    cells: dict[str, object] = {}
    for kind, module in (('layer', make()), ('model', _Model(make))):
        for _ in range(SEVERAL):
            step(module, new=False)
        steps = {each: partial(step, module, each == 'new') for each in ('prepared', 'new')}
        seconds = interleaved_medians(steps, repeats, time.process_time)
        cells[f'{kind}, prepared, ms'] = seconds['prepared'] * 1e3
        cells[f'{kind}, new / prepared'] = seconds['new'] / seconds['prepared']
    what = '' if stored is None or name == 'Toeplitz' else type(transform).__name__
    return {'batch': f'{number} graphs of {batches[0].num_nodes // number} nodes', 'attention': name, 'stored': what, **cells}
