r"""Softmax attention under masks without sparse entries, compared with the attention of PyTorch with a dense bias."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Batch, Data
from torch_geometric.utils import to_dense_batch

from benchmarks.harness import interleaved_medians, peak_memory, write_table
from benchmarks.steps import CHANNELS, HEADS, make_graphs
from pyg_topomask import Graph
from pyg_topomask.masks import CausalMask, HeatKernelMask, Mask, PackingMask, RWGNKMask, SinDegreeMask, ToeplitzMask, TreeMask
from pyg_topomask.ops import masked_softmax_attention

__all__ = ['run']

MASKS: dict[str, Callable[[], Mask]] = {
    'Packing': PackingMask,
    'Causal': CausalMask,
    'Toeplitz': partial(ToeplitzMask, HEADS, 1),
    'SinDegree': partial(SinDegreeMask, HEADS),
    'HeatKernel, tolerance 1e-3': partial(HeatKernelMask, HEADS, tolerance=1e-3),
    'RWGNK, exact': partial(RWGNKMask, HEADS, num_walks=None),
}
#: Nodes of the graph on which memory is measured.
LARGE = 10_000


def run(quick: bool, folder: Path) -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    batches = [(name, data) for name, data in make_graphs(quick).items() if isinstance(data, Batch)]
    rows = [row for name, data in batches for row in _times(name, data, 1 if quick else 11)]
    rows += _memory(LARGE // 20 if quick else LARGE)
    note = (
        f'Forward and backward of attention, {HEADS} heads of {CHANNELS // HEADS} channels, float32, one thread. Times are '
        'medians of processor times, in turns, and contain the entries of the mask and their gradients. The bias of '
        '`scaled_dot_product_attention` is there already. Memory is the peak of a step on a path, beyond what was held before.'
    )
    write_table('softmax', 'Softmax attention under masks without sparse entries', note, rows, folder)


def _inputs(nodes: int) -> list[Tensor]:
    return [torch.randn(nodes, HEADS, CHANNELS // HEADS, requires_grad=True) for _ in range(3)]


def _ours(inputs: list[Tensor], mask: Mask, graph: Graph) -> None:
    q, k, v = inputs
    masked_softmax_attention(q, k, v, mask(graph)).sum().backward()


def _theirs(inputs: list[Tensor], bias: Tensor, batch: Tensor | None) -> None:
    (q, present), (k, _), (v, _) = (to_dense_batch(x, batch) for x in inputs)
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    F.scaled_dot_product_attention(q, k, v, attn_mask=bias).transpose(1, 2)[present].sum().backward()


def _times(name: str, data: Batch, repeats: int) -> list[dict[str, object]]:
    graph, inputs, size = Graph.from_data(data), _inputs(data.num_nodes), data.num_nodes // data.num_graphs
    bias = torch.randn(data.num_graphs, HEADS, size, size)
    steps: dict[str, Callable[[], object]] = {
        'PyTorch, constant bias': partial(_theirs, inputs, bias, data.batch),
        'PyTorch, learned bias': partial(_theirs, inputs, bias.clone().requires_grad_(), data.batch),
        **{kind: partial(_ours, inputs, make(), graph) for kind, make in MASKS.items()},
    }
    seconds = interleaved_medians(steps, repeats, time.process_time)
    constant, learned = (seconds[f'PyTorch, {kind} bias'] for kind in ('constant', 'learned'))
    return [
        {
            'graph': name,
            'attention': kind,
            'ms': seconds[kind] * 1e3,
            'ms / constant bias': seconds[kind] / constant,
            'ms / learned bias': seconds[kind] / learned,
            'peak, MiB': '',
        }
        for kind in steps
    ]


def _memory(nodes: int) -> list[dict[str, object]]:
    edges = torch.stack([torch.arange(nodes - 1), torch.arange(1, nodes)])
    graph, inputs = Graph.from_data(Data(edge_index=torch.cat([edges, edges.flip(0)], dim=1), num_nodes=nodes)), _inputs(nodes)
    kinds = {kind: partial(_ours, inputs, make(), graph) for kind, make in (MASKS | {'Tree': partial(TreeMask, HEADS)}).items()}
    steps: dict[str, Callable[[], object]] = {
        **{kind: kinds[kind] for kind in ('Packing', 'Toeplitz', 'Tree', 'SinDegree')},
        'PyTorch, constant bias': lambda: _theirs(inputs, torch.randn(1, HEADS, nodes, nodes), None),
    }
    peaks = {kind: peak_memory(step) for kind, step in steps.items()}
    empty = dict.fromkeys(('ms', 'ms / constant bias', 'ms / learned bias'), '')
    return [
        {'graph': f'path of {nodes:,} nodes', 'attention': kind, **empty, 'peak, MiB': peak / 2**20}
        for kind, peak in peaks.items()
    ]
