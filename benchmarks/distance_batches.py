r"""Training steps under masks of distances and offsets, on batches of small graphs."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from torch import Tensor
from torch_geometric.data import Batch, Data
from torch_geometric.nn import GATConv
from torch_geometric.utils import erdos_renyi_graph, grid, to_undirected

from benchmarks.harness import interleaved_medians, write_table
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks import HopMask, Mask, ToeplitzMask, TreeMask
from pyg_topomask.nn import MaskedLinearAttention
from pyg_topomask.transforms.geometry import AddGridShape

__all__ = ['run']

#: Graphs of a batch by their number of nodes, a square, and the nodes of one large tree.
BATCHES, LARGE = {25: 128, 100: 32, 400: 16}, 10_000


def run(quick: bool, folder: Path) -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    rows = [
        row
        for kind, (make, masks, route) in KINDS.items()
        for size, count in (BATCHES | ({LARGE: 1} if make is _tree else {})).items()
        for row in _rows(kind, [make(size) for _ in range(min(2, count) if quick else count)], masks, route, quick)
    ]
    note = (
        'A training step (forward and backward) of attention, 64 channels, 4 heads, one thread, on batches of random recursive '
        'trees, of square grids, and of random graphs of degree 4, and on one large tree, on a graph that was used before and '
        'on a new one: medians of processor times, in turns. The route "auto" chooses blocks, in which each pair of nodes has '
        'its distance or offset, where they cost less. They are prepared once per graph. The routes "features" and "edges" do '
        'not know them.'
    )
    write_table('distance_batches', 'Masks of distances and offsets, on batches of small graphs', note, rows, folder)


def _tree(size: int) -> Data:
    node = torch.arange(1, size)
    return Data(edge_index=to_undirected(torch.stack([(torch.rand(size - 1) * node).long(), node])), num_nodes=size)


def _grid(size: int) -> Data:
    side = round(size**0.5)
    return AddGridShape((side, side))(Data(edge_index=grid(side, side)[0], num_nodes=size))


def _random(size: int) -> Data:
    return Data(edge_index=erdos_renyi_graph(size, 4 / size), num_nodes=size)


KINDS: dict[str, tuple[Callable[[int], Data], dict[str, Callable[[], Mask]], str]] = {
    'trees': (
        _tree,
        {
            'Tree, exp': partial(TreeMask, 4),
            'Tree, distance up to 4': partial(TreeMask, 4, 'distance', max_distance=4),
            'Tree, distance up to 16': partial(TreeMask, 4, 'distance', max_distance=16),
        },
        'features',
    ),
    'grids': (
        _grid,
        {
            'Toeplitz, window 8': partial(ToeplitzMask, 4),
            'Toeplitz, window 2, zero beyond': partial(ToeplitzMask, 4, window=2, beyond='zero'),
        },
        'features',
    ),
    'random graphs': (_random, {f'Hop, {hops} hops': partial(HopMask, 4, hops) for hops in (2, 4, 8)}, 'edges'),
}


def _rows(
    kind: str, graphs: list[Data], masks: dict[str, Callable[[], Mask]], route: str, quick: bool
) -> list[dict[str, object]]:
    batch = Batch.from_data_list(graphs)
    used, x = Graph.from_data(batch), torch.randn(batch.num_nodes, 64, requires_grad=True)
    convolution = GATConv(64, 16, 4)
    steps: dict[str, Callable[[bool], object]] = {'GATConv': lambda new: convolution(x, batch.edge_index).sum().backward()}
    for name, make in masks.items():
        for each in ('auto', route):
            layer = MaskedLinearAttention(64, 4, make(), route=each)
            steps[f'{name}, {each}'] = partial(_step, layer, x, batch, used)
    seconds = [
        interleaved_medians({name: partial(step, new) for name, step in steps.items()}, 1 if quick else 7, time.process_time)
        for new in (False, True)
    ]
    return [
        {
            'graphs': f'{len(graphs)} {kind}' if len(graphs) > 1 else 'one tree',
            'nodes of each': graphs[0].num_nodes,
            'layer': name,
            **{
                f'{used_or_new}, {unit}': time[name] * 1e3 if unit == 'ms' else time[name] / time['GATConv']
                for used_or_new, time in zip(('graph used before', 'new graph'), seconds, strict=True)
                for unit in ('ms', '/ GATConv')
            },
        }
        for name in steps
    ]


def _step(layer: MaskedLinearAttention, x: Tensor, batch: Batch, used: Graph, new: bool) -> None:
    out: Tensor = layer(x, graph=Graph.from_data(batch) if new else used)
    out.sum().backward()
