r"""A training step on a large graph of short edges, with its nodes in order and shuffled."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from torch import Tensor
from torch_geometric.nn import GATConv
from torch_geometric.utils import grid, to_undirected

from benchmarks.harness import interleaved_medians, write_table
from benchmarks.steps import CHANNELS, HEADS, step
from pyg_topomask import Graph
from pyg_topomask.masks import GRFMask, HeatKernelMask, HopMask, Mask, PowerSeriesMask
from pyg_topomask.nn import MaskedLinearAttention

__all__ = ['run']

#: The side of the grid, and the share of its edges that are kept: nodes have 2.5 neighbors, as on roads.
SIDE, KEPT = 447, 0.625

MASKS: dict[str, Callable[[], Mask]] = {
    'GRF': lambda: GRFMask(HEADS),
    'Hop, 2 hops': lambda: HopMask(HEADS, 2),
    'Hop, 8 hops': lambda: HopMask(HEADS, 8),
    'PowerSeries, order 4': lambda: PowerSeriesMask(HEADS, 4),
    'HeatKernel, tolerance 1e-3': lambda: HeatKernelMask(HEADS, tolerance=1e-3),
}


def run(quick: bool, folder: Path) -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    side = SIDE // 8 if quick else SIDE
    size, edges = side**2, _roads(side)
    x, shuffled = torch.randn(size, CHANNELS, requires_grad=True), torch.randperm(size)[edges]
    conv, rows = GATConv(CHANNELS, CHANNELS // HEADS, HEADS), []
    for name, make in MASKS.items():
        layer, graph, kept = MaskedLinearAttention(CHANNELS, HEADS, make()), Graph(shuffled, size), Graph(shuffled, size)
        kept.cached('near', lambda: None)
        begin = time.process_time()
        graph.near(layer.mask)
        numbering = time.process_time() - begin
        steps: dict[str, Callable[[], object]] = {
            'in order': partial(step, layer, x, graph=Graph(edges, size)),
            'shuffled': partial(step, layer, x, graph=graph),
            'kept': partial(step, layer, x, graph=kept),
            'GATConv': partial(step, conv, x, edges),
        }
        seconds = interleaved_medians(steps, 1 if quick else 3, time.process_time)
        rows.append(
            {
                'mask': name,
                'in order ms': seconds['in order'] * 1e3,
                'shuffled ms': seconds['shuffled'] * 1e3,
                'shuffled / in order': seconds['shuffled'] / seconds['in order'],
                'numbers kept / in order': seconds['kept'] / seconds['in order'],
                'numbering ms': numbering * 1e3,
                'in order / GATConv': seconds['in order'] / seconds['GATConv'],
            }
        )
    note = (
        f'Forward and backward of one layer of {CHANNELS} channels and {HEADS} heads on a prepared graph, one thread: medians '
        f'of processor times, in turns. The graph is a square grid of {size:,} nodes with {KEPT:.1%} of its edges, about as '
        f'roads. "in order" numbers the nodes row by row, "shuffled" at random. The package then numbers them anew inside, so '
        f'that neighbors are near in memory, once per graph ("numbering"). "numbers kept" is the shuffled graph without this.'
    )
    write_table('locality', 'Node numbers of a large graph', note, rows, folder)


def _roads(side: int) -> Tensor:
    r"""Returns a share of the edges between nodes that are next to each other in a square grid, in both directions."""
    source, target = grid(side, side)[0]
    straight = (target - source == 1) | (target - source == side)
    kept = straight & (torch.rand(source.numel(), generator=torch.Generator().manual_seed(0)) < KEPT)
    edges: Tensor = to_undirected(torch.stack([source, target])[:, kept])
    return edges
