r"""Asymmetric GRF attention against GATConv with as many neighbours per node, and its growth with the number of nodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.nn import GATConv
from tqdm import tqdm

from benchmarks.graphs import random_graph, ring
from benchmarks.harness import KEEP_MEMORY, alone, interleaved_medians, keep_memory, write_table
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.nn import AsymmetricGRFAttention, GRFSoftmaxAttention

__all__ = ['run']

EDGES = {'ring': ring, 'random': random_graph}
CHANNELS, HEADS, WALKS, P_HALT, MAX_LENGTH = 64, 4, 4, 0.5, 10


def run(quick: bool, folder: Path) -> None:
    jobs = [
        (name, size, 3 if quick or size == 1_000_000 else 7)
        for name in EDGES
        for size in ((1_000, 2_000) if quick else (10_000, 100_000, 1_000_000))
    ]
    with keep_memory():
        rows = [row for job in tqdm(jobs, desc='asymmetric') for row in alone(_measure, *job)]
    start = {(row['graph'], row['method']): row['forward / CSR'] for row in reversed(rows)}
    for row in rows:
        row['growth'] = row['forward / CSR'] / start[row['graph'], row['method']]
    note = (
        f'{CHANNELS} channels, {HEADS} heads, {WALKS} walks per node, p_halt {P_HALT}, at most {MAX_LENGTH} hops, ReLU '
        f'features, float32, walks drawn before. GATConv runs on the graph whose edges are the entries of the mask, so that '
        f'every node has as many neighbours. "CSR" is one product of the CSR adjacency with an [N, {CHANNELS}] matrix, '
        f'measured in turn. glibc keeps all freed memory ({KEEP_MEMORY}). "growth" is the ratio to it divided by that at the '
        f'smallest size. Medians, ns per node.'
    )
    write_table('asymmetric', 'Asymmetric GRF attention against GATConv', note, rows, folder)


def _measure(name: str, size: int, repeats: int) -> list[dict[str, Any]]:
    torch.manual_seed(0)
    edge_index = EDGES[name](size)
    graph, x = Graph.from_tensors(edge_index, size), torch.randn(size, CHANNELS)
    walks: dict[str, Any] = {'num_walks': WALKS, 'p_halt': P_HALT, 'max_walk_length': MAX_LENGTH}
    linear = AsymmetricGRFAttention(CHANNELS, HEADS, **walks)
    softmax = GRFSoftmaxAttention(CHANNELS, HEADS, asymmetric=True, **walks)
    operator = linear.mask(graph)
    assert operator.entries is not None
    pattern = operator.entries().pattern
    neighbours = torch.stack([pattern.col, pattern.row]).long()
    gat = GATConv(CHANNELS, CHANNELS // HEADS, HEADS, add_self_loops=False)
    adjacency = torch.sparse_coo_tensor(
        edge_index, torch.ones(edge_index.size(1)), (size, size), check_invariants=False
    ).to_sparse_csr()
    layers = {
        'GATConv': lambda x: gat(x, neighbours),
        'AsymmetricGRFAttention': lambda x: linear(x, edge_index, graph=graph),
        'GRFSoftmaxAttention': lambda x: softmax(x, edge_index, graph=graph),
    }

    @torch.no_grad()
    def forward(layer: Any) -> Tensor:
        out: Tensor = layer(x)
        return out

    learned = x.clone().requires_grad_()
    functions: dict[str, Any] = {'CSR': lambda: adjacency @ x}
    for method, layer in layers.items():
        functions[method] = lambda attention=layer: forward(attention)
        functions[f'{method}, training'] = lambda attention=layer: attention(learned).sum().backward()
    seconds = interleaved_medians(functions, repeats)
    return [
        {
            'graph': name,
            'nodes': size,
            'neighbours per node': neighbours.size(1) / size,
            'method': method,
            'forward': seconds[method] / size * 1e9,
            'forward + backward': seconds[f'{method}, training'] / size * 1e9,
            'CSR': seconds['CSR'] / size * 1e9,
            'forward / CSR': seconds[method] / seconds['CSR'],
            'forward / GATConv': seconds[method] / seconds['GATConv'],
            'training / GATConv': seconds[f'{method}, training'] / seconds['GATConv, training'],
        }
        for method in layers
    ]
