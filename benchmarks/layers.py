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
from torch_geometric.utils import to_dense_batch

from benchmarks.harness import interleaved_medians, write_table
from benchmarks.steps import CHANNELS, DEGREE, HEADS, make_graphs, make_steps, step

__all__ = ['run']

#: What stands below the note of the table.
WHY_SLOWER = """Some attentions are slower than GATConv because they do more work. These times are for one core of an AMD EPYC:

- HeatKernel and PowerSeries of order 4, graphs of 400 nodes: half of all pairs of nodes have entries, or all. Attention
  takes seven products with 16 numbers for each of ten million pairs and heads. At one vector per cycle, this takes 21
  ms, longer than a whole step of GATConv. At the speed of MKL for these shapes, it would take 28 ms.
- RWGNK, graphs of 400 nodes: the walks of a node meet those of 54 nodes, and message passing reads 4.
- HeatKernel and PowerSeries of order 4, one sparse graph: the entries are too many to list, so the graph multiplies 256
  products of features and channels per head, once per term. If each vector were read from the L2 cache, at 32 bytes per
  cycle, this would take 27 ms for order 4 and 80 ms for a heat kernel of twelve terms. The package takes 2.5 to 5 times
  as long.
- KMIP, graphs of 400 nodes: the scores of all pairs take 3 ms at one vector per cycle. The search takes a quarter of
  the step, and softmax attention along the selected pairs takes a third."""


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
    repeats = 1 if quick else 25
    rows = [row for name, data in make_graphs(quick).items() for row in _rows(name, data, repeats)]
    note = (
        f'Forward and backward of one layer of {CHANNELS} channels and {HEADS} heads, float32, one thread: medians of the '
        f'processor times of {repeats} steps, in turns. The columns "prepared" are on a graph that the layer has seen, '
        f'the columns "new graph" prepare it in every step. Small graphs are random, of degree {DEGREE} on average. '
        f'PerformerAttention and MultiheadAttention work on padded batches, and not on large graphs. KMIP, which compares all '
        f'pairs of nodes, was timed on batches alone.\n\n{WHY_SLOWER}'
    )
    write_table('layers', 'A training step of every attention beside layers of PyG', note, rows, folder)


def _rows(name: str, data: Data, repeats: int) -> list[dict[str, object]]:
    x = torch.randn(data.num_nodes or 0, CHANNELS, requires_grad=True)
    steps: dict[str, Callable[[], object]] = {}
    gat, sage = GATConv(CHANNELS, CHANNELS // HEADS, HEADS), SAGEConv(CHANNELS, CHANNELS)
    steps['GATConv'] = partial(step, gat, x, data.edge_index)
    steps['SAGEConv'] = partial(step, sage, x, data.edge_index)
    if isinstance(data, Batch):
        for kind, attention in (
            ('PerformerAttention', PerformerAttention(CHANNELS, HEADS, CHANNELS // HEADS)),
            ('MultiheadAttention', torch.nn.MultiheadAttention(CHANNELS, HEADS, batch_first=True)),
        ):
            steps[kind] = partial(step, _Padded(attention), x, data.batch)
    new: dict[str, str] = {}
    for kind, (prepared, prepares) in make_steps(data).items():
        new[kind] = f'{kind}, new graph'
        steps |= {kind: prepared, new[kind]: prepares}
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
