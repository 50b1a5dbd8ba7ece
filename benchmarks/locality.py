r"""A training step on one large graph: of short edges, with its nodes in order and shuffled, and of random edges."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from torch import Tensor
from torch_geometric.nn import GATConv
from torch_geometric.utils import grid, to_undirected

from benchmarks.graphs import random_graph
from benchmarks.harness import interleaved_medians, write_table
from benchmarks.steps import CHANNELS, HEADS, step
from pyg_topomask import Graph
from pyg_topomask.masks import GRFMask, HeatKernelMask, HopMask, Mask, PowerSeriesMask
from pyg_topomask.nn import MaskedLinearAttention
from pyg_topomask.operators.polynomial import Polynomial
from pyg_topomask.ops.routes.choice import choose_route

__all__ = ['MASKS', 'roads', 'run']

#: The side of the grid, and the share of its edges that are kept: nodes have 2.5 neighbors, as on roads.
SIDE, KEPT = 447, 0.625
#: The mean degree of the random graph.
DEGREE = 6
REPEATS = 2

MASKS: dict[str, Callable[[], Mask]] = {
    'GRF': lambda: GRFMask(HEADS),
    'Hop, 2 hops': lambda: HopMask(HEADS, 2),
    'Hop, 8 hops': lambda: HopMask(HEADS, 8),
    'PowerSeries, order 4': lambda: PowerSeriesMask(HEADS, 4),
    'HeatKernel, tolerance 1e-3': lambda: HeatKernelMask(HEADS, tolerance=1e-3),
}


#: Numbers that a mask's products read or write for each entry, of all heads: rows of keys and values, of these and of queries
#: and gradients in the backward pass, and entries of the mask.
_OF_ENTRY = 6 * CHANNELS + 6 * HEADS
#: Products with a matrix for each one of the forward pass. The backward pass makes these again, and those of the transpose.
_PASSES = 3


def run(quick: bool, folder: Path) -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    scale = 8 if quick else 1
    grid_roads, random = roads(SIDE // scale), random_graph((SIDE // scale) ** 2, DEGREE)
    copied, rows = _copy_rate(2**26 // scale), []
    for kind, edges in (('roads', grid_roads), ('random', random)):
        size = (SIDE // scale) ** 2
        x, shuffled = torch.randn(size, CHANNELS, requires_grad=True), torch.randperm(size)[edges]
        conv = GATConv(CHANNELS, CHANNELS // HEADS, HEADS)
        for name, make in MASKS.items():
            if (kind, name) == ('random', 'Hop, 8 hops'):
                continue  # almost all pairs of nodes
            layer = MaskedLinearAttention(CHANNELS, HEADS, make())
            steps: dict[str, Callable[[], object]] = {
                'GATConv': partial(step, conv, x, edges),
                'in order': partial(step, layer, x, graph=(kept := Graph(edges, size))),
            }
            if kind == 'roads':
                steps['shuffled'] = partial(step, layer, x, graph=Graph(shuffled, size))
                steps['moved'] = partial(_move, x.detach(), torch.randperm(size))
            seconds = interleaved_medians(steps, 1 if quick else REPEATS, time.process_time)
            ordered, moved = seconds['in order'], _bytes_moved(layer, kept)
            rows.append(
                {
                    'graph': kind,
                    'mask': name,
                    'in order ms': ordered * 1e3,
                    'in order / GATConv': ordered / seconds['GATConv'],
                    'shuffled / in order': seconds['shuffled'] / ordered if 'shuffled' in seconds else '-',
                    'moved / in order': 1 + seconds['moved'] / ordered if 'moved' in seconds else '-',
                    'GB moved': moved / 1e9,
                    'GB/s': moved / ordered / 1e9,
                    'floor / GATConv': moved / copied / seconds['GATConv'],
                }
            )
    note = (
        f'Forward and backward of one layer of {CHANNELS} channels and {HEADS} heads on a prepared graph, one thread: medians '
        f'of {REPEATS} processor times, in turns. "roads" is a square grid of {size:,} nodes with {KEPT:.1%} of its edges, '
        f'"random" has as many nodes of mean degree {DEGREE}. "in order" numbers the nodes of the grid row by row, "shuffled" '
        f'at random. The package then numbers them anew inside, so that neighbors are near in memory. "moved / in order" adds '
        f'to the step in order what it takes to move the rows that the layer receives and returns, and their gradients. "GB '
        f'moved" counts what products with the mask read and write in the whole step, if no cache keeps anything: rows of '
        f'keys, values, queries and gradients at each entry, or the block of products of features and channels at each entry '
        f'of the matrix, and twice more for each power. "GB/s" is that over the time of the step, which also has four '
        f'projections. It may exceed the {copied / 1e9:.1f} GB/s at which this machine copies memory, since caches serve. '
        f'"floor / GATConv" is moving these bytes at that rate.'
    )
    write_table('locality', 'A training step on one large graph', note, rows, folder)


def _move(x: Tensor, place: Tensor) -> None:
    r"""Moves rows to other places and back, as what a layer receives and returns, and the gradients of both."""
    for _ in range(4):
        x = x.index_select(0, place)


def _bytes_moved(layer: MaskedLinearAttention, graph: Graph) -> float:
    mask, width = layer.mask(graph), CHANNELS // HEADS
    entries = mask.entries
    if entries is not None and choose_route(mask, width, width) == 'edges':
        return 4 * _OF_ENTRY * entries().pattern.nnz
    product = mask.formed()
    assert isinstance(product, Polynomial)
    powers, numbers = product.coefficients.size(1) - 1, CHANNELS * width
    return 4 * _PASSES * powers * numbers * (product.pattern.nnz + 2 * graph.num_nodes)


def _copy_rate(size: int) -> float:
    r"""Returns the bytes that a copy of numbers in float32 reads and writes in a second."""
    source, target = torch.ones(2, size)
    seconds = interleaved_medians({'copy': lambda: target.copy_(source)}, 5, time.process_time)
    return 8 * size / seconds['copy']


def roads(side: int) -> Tensor:
    r"""Returns a share of the edges between nodes that are next to each other in a square grid, in both directions."""
    source, target = grid(side, side)[0]
    straight = (target - source == 1) | (target - source == side)
    kept = straight & (torch.rand(source.numel(), generator=torch.Generator().manual_seed(0)) < KEPT)
    edges: Tensor = to_undirected(torch.stack([source, target])[:, kept])
    return edges
