r"""Training steps of every attention on batches of small graphs, on a grid and on a random graph.

An earlier commit of this repository runs them as well: what they import must be there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import torch
from torch import Tensor
from torch.nn import Module
from torch_geometric.data import Batch, Data
from torch_geometric.utils import grid

from benchmarks.graphs import random_graph
from pyg_topomask import Graph, masks
from pyg_topomask.nn import GRFAttention, KMIPAttention, MaskedLinearAttention

__all__ = ['ATTENTIONS', 'CHANNELS', 'DEGREE', 'HEADS', 'make_graphs', 'make_steps', 'step']

CHANNELS, HEADS, DEGREE = 64, 4, 4
#: Graphs of a batch by their number of nodes.
BATCHES = {23: 128, 100: 32, 400: 16}
GRID, RANDOM = 100, 10_000


def _masked(make: Callable[[], masks.Mask]) -> Callable[[], Module]:
    return lambda: MaskedLinearAttention(CHANNELS, HEADS, make())


ATTENTIONS: dict[str, Callable[[], Module]] = {
    'Linear': lambda: MaskedLinearAttention(CHANNELS, HEADS),
    'Adjacency': _masked(lambda: masks.AdjacencyMask(HEADS)),
    'Hop, 2 hops': _masked(lambda: masks.HopMask(HEADS, 2)),
    'GRF': lambda: GRFAttention(CHANNELS, HEADS),
    'SinDegree': _masked(lambda: masks.SinDegreeMask(HEADS)),
    'RWGNK': _masked(lambda: masks.RWGNKMask(HEADS)),
    'PowerSeries, order 2': _masked(lambda: masks.PowerSeriesMask(HEADS, order=2)),
    'PowerSeries, order 4': _masked(lambda: masks.PowerSeriesMask(HEADS, order=4)),
    'HeatKernel, tolerance 1e-3': _masked(lambda: masks.HeatKernelMask(HEADS, tolerance=1e-3)),
    'KMIP': lambda: KMIPAttention(CHANNELS, HEADS, k=10),  # last: it takes the batches alone
}


def make_graphs(quick: bool) -> dict[str, Data]:
    r"""Returns the batches and graphs by name, smaller ones for a smoke run."""
    scale = 8 if quick else 1
    graphs: dict[str, Data] = {
        f'{max(1, number // scale)} graphs of {nodes} nodes': _batch(nodes, max(1, number // scale))
        for nodes, number in BATCHES.items()
    }
    side, nodes = GRID // scale, RANDOM // scale
    graphs[f'grid of {side} x {side} with diagonals'] = Data(edge_index=grid(side, side)[0], num_nodes=side**2)
    graphs[f'random graph of {nodes:,} nodes, degree {DEGREE + 2}'] = Data(
        edge_index=random_graph(nodes, DEGREE + 2), num_nodes=nodes
    )
    return graphs


def make_steps(data: Data, kinds: Iterable[str] = tuple(ATTENTIONS)) -> dict[str, tuple[Callable[[], object], ...]]:
    r"""Returns a training step of each attention on a graph that it has seen, and one that prepares the graph."""
    x, kept = torch.randn(data.num_nodes or 0, CHANNELS, requires_grad=True), Graph.from_data(data)
    steps: dict[str, tuple[Callable[[], object], ...]] = {}
    for kind in kinds:
        if kind == 'KMIP' and not isinstance(data, Batch):
            continue  # all pairs of nodes take seconds
        layer = ATTENTIONS[kind]()
        prepared = partial(step, layer, x, data.edge_index, graph=kept)
        steps[kind] = prepared, partial(_step_on_new_graph, layer, x, data)
    return steps


def _batch(nodes: int, number: int) -> Batch:
    def graph() -> Data:
        half = torch.randint(nodes, (2, DEGREE * nodes // 2))
        return Data(edge_index=torch.cat([half, half.flip(0)], dim=1), num_nodes=nodes)

    return Batch.from_data_list([graph() for _ in range(number)])


def step(layer: Module, *arguments: object, **keywords: object) -> None:
    r"""Calls a layer, and computes the gradients of a sum of its outputs."""
    layer(*arguments, **keywords).sum().backward()


def _step_on_new_graph(layer: Module, x: Tensor, data: Data) -> None:
    step(layer, x, data.edge_index, graph=Graph.from_data(data))
