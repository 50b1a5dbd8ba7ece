r"""A training step of every attention, over one of GATConv: on batches of small graphs, on a grid, and on a random graph."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import Module
from torch_geometric.data import Batch, Data
from torch_geometric.nn import GATConv, PerformerAttention, SAGEConv
from torch_geometric.utils import grid, to_dense_batch

from benchmarks.graphs import random_graph
from benchmarks.harness import interleaved_medians, write_table
from pyg_topomask.graph import Graph
from pyg_topomask.masks import AdjacencyMask, HeatKernelMask, HopMask, Mask, PowerSeriesMask, RWGNKMask, SinDegreeMask
from pyg_topomask.nn import GRFAttention, KMIPAttention, MaskedLinearAttention

__all__ = ['run']

CHANNELS, HEADS, DEGREE = 64, 4, 4
#: Graphs of a batch by their number of nodes.
BATCHES = {23: 128, 100: 32, 400: 16}
GRID, RANDOM = 100, 10_000


def _masked(make: Callable[[], Mask]) -> Callable[[], Module]:
    return lambda: MaskedLinearAttention(CHANNELS, HEADS, make())


ATTENTIONS: dict[str, Callable[[], Module]] = {
    'Linear': lambda: MaskedLinearAttention(CHANNELS, HEADS),
    'Adjacency': _masked(lambda: AdjacencyMask(HEADS)),
    'Hop, 2 hops': _masked(lambda: HopMask(HEADS, 2)),
    'GRF': lambda: GRFAttention(CHANNELS, HEADS),
    'SinDegree': _masked(lambda: SinDegreeMask(HEADS)),
    'RWGNK': _masked(lambda: RWGNKMask(HEADS)),
    'PowerSeries, order 2': _masked(lambda: PowerSeriesMask(HEADS, order=2)),
    'PowerSeries, order 4': _masked(lambda: PowerSeriesMask(HEADS, order=4)),
    'HeatKernel, tolerance 1e-3': _masked(lambda: HeatKernelMask(HEADS, tolerance=1e-3)),
    'KMIP': lambda: KMIPAttention(CHANNELS, HEADS, k=10),  # last: it takes the batches alone
}


class _Padded(Module):
    r"""Attention of PyG and PyTorch on padded batches."""

    def __init__(self, attention: Module) -> None:
        super().__init__()
        self.attention = attention

    def forward(self, x: Tensor, batch: Tensor | None) -> Tensor:
        padded, mask = to_dense_batch(x, batch)
        if isinstance(self.attention, PerformerAttention):
            out = self.attention(padded, mask)
        else:
            out = self.attention(padded, padded, padded, key_padding_mask=~mask, need_weights=False)[0]
        rows: Tensor = out[mask]
        return rows


def run(quick: bool, folder: Path) -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    scale, repeats = (8, 1) if quick else (1, 25)
    graphs = {
        f'{max(1, number // scale)} graphs of {nodes} nodes': _batch(nodes, max(1, number // scale))
        for nodes, number in BATCHES.items()
    }
    side = GRID // scale
    graphs[f'grid of {side} x {side} with diagonals'] = Data(edge_index=grid(side, side)[0], num_nodes=side**2)
    nodes = RANDOM // scale
    graphs[f'random graph of {nodes:,} nodes, degree {DEGREE + 2}'] = Data(
        edge_index=random_graph(nodes, DEGREE + 2), num_nodes=nodes
    )
    rows = [row for name, data in graphs.items() for row in _rows(name, data, repeats)]
    note = (
        f'Forward and backward of one layer of {CHANNELS} channels and {HEADS} heads, float32, one thread: medians of the '
        f'processor times of {repeats} steps, in turns. The columns "prepared" are on a graph that the layer has seen, '
        f'the columns "new graph" prepare it in every step. Small graphs are random, of degree {DEGREE} on average. '
        f'PerformerAttention and MultiheadAttention work on padded batches, and not on large graphs. KMIP, which compares all '
        f'pairs of nodes, was timed on batches alone.'
    )
    write_table('layers', 'A training step of every attention beside layers of PyG', note, rows, folder)


def _batch(nodes: int, number: int) -> Batch:
    def graph() -> Data:
        half = torch.randint(nodes, (2, DEGREE * nodes // 2))
        return Data(edge_index=torch.cat([half, half.flip(0)], dim=1), num_nodes=nodes)

    return Batch.from_data_list([graph() for _ in range(number)])


def _step(layer: Module, *arguments: object, **keywords: object) -> None:
    layer(*arguments, **keywords).sum().backward()


def _step_on_new_graph(layer: Module, x: Tensor, data: Data) -> None:
    _step(layer, x, data.edge_index, graph=Graph.from_data(data))


def _rows(name: str, data: Data, repeats: int) -> list[dict[str, object]]:
    x = torch.randn(data.num_nodes or 0, CHANNELS, requires_grad=True)
    steps: dict[str, Callable[[], object]] = {}
    gat, sage = GATConv(CHANNELS, CHANNELS // HEADS, HEADS), SAGEConv(CHANNELS, CHANNELS)
    steps['GATConv'] = partial(_step, gat, x, data.edge_index)
    steps['SAGEConv'] = partial(_step, sage, x, data.edge_index)
    if isinstance(data, Batch):
        for kind, attention in (
            ('PerformerAttention', PerformerAttention(CHANNELS, HEADS, CHANNELS // HEADS)),
            ('MultiheadAttention', torch.nn.MultiheadAttention(CHANNELS, HEADS, batch_first=True)),
        ):
            steps[kind] = partial(_step, _Padded(attention), x, data.batch)
    kept = Graph.from_data(data)
    new: dict[str, str] = {}
    for kind, make in ATTENTIONS.items():
        if kind == 'KMIP' and not isinstance(data, Batch):
            continue  # all pairs of nodes take seconds
        layer = make()
        steps[kind] = partial(_step, layer, x, data.edge_index, graph=kept)
        new[kind] = f'{kind}, new graph'
        steps[new[kind]] = partial(_step_on_new_graph, layer, x, data)
    seconds = interleaved_medians(steps, repeats, time.process_time)
    return [
        {
            'graph': name,
            'layer': kind,
            'prepared, ms': seconds[kind] * 1e3,
            'prepared / GATConv': seconds[kind] / seconds['GATConv'],
            'prepared / SAGEConv': seconds[kind] / seconds['SAGEConv'],
            'new graph, ms': seconds[new[kind]] * 1e3 if kind in new else '',
            'new graph / GATConv': seconds[new[kind]] / seconds['GATConv'] if kind in new else '',
        }
        for kind in steps
        if kind not in new.values()
    ]
