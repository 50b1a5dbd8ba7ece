r"""Time and memory per node against the number of nodes: is GRF attention linear, and what does it cost?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.nn import GATConv
from torch_geometric.nn.attention import PerformerAttention
from tqdm import tqdm

from benchmarks.graphs import random_graph, ring
from benchmarks.harness import KEEP_MEMORY, alone, interleaved_medians, keep_memory, new_figure, peak_memory, write_table
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks import GRFMask
from pyg_topomask.nn import GRFAttention, MaskedLinearAttention
from pyg_topomask.ops import masked_linear_attention

__all__ = ['run']

CHANNELS, HEADS, WALKS, P_HALT, MAX_LENGTH = 64, 4, 4, 0.5, 10
# Where a method would take minutes or more memory than there is.
LIMITS = {'dense masked': 16_000, 'dense alone': 16_000, 'GRF alone': 16_000, 'GRF features route': 100_000}
METHODS = (
    'GRF edges route',
    'GRF features route',
    'GRF alone',
    'unmasked linear',
    'dense masked',
    'dense alone',
    'PerformerAttention',
    'GATConv',
)


def run(quick: bool, folder: Path) -> None:
    sizes = (1_000,) if quick else (1_000, 10_000, 16_000, 100_000, 1_000_000)
    jobs = [
        (graph, size, method)
        for graph in ('ring', 'random')
        for size in sizes
        for method in METHODS
        if size <= LIMITS.get(method, size)
    ]
    repeats = 3 if quick else 15
    rows = _measure_all(jobs, 'kept', repeats)
    rows += _measure_all([job for job in jobs if job[2] == METHODS[0] and job[1] in (10_000, 1_000_000)], 'default', repeats)
    by_job = {(row['graph'], row['nodes'], row['method'], row['memory']): row for row in rows}
    for row in rows:
        start = by_job.get((row['graph'], 10_000, row['method'], row['memory']), {'forward / CSR': float('nan')})
        row['growth from 1e4'] = row['forward / CSR'] / start['forward / CSR']
    note = (
        f'{CHANNELS} channels, {HEADS} heads, {WALKS} walks per node, p_halt {P_HALT}, at most {MAX_LENGTH} hops, ReLU '
        f'features, float32; walks stored, their sampling and pairing ("prepare", timed once) apart. Medians in ns per node, '
        f'of {repeats} calls, from 1,000,000 nodes on of 3; all methods of a graph called in turn. "CSR" is one product of the '
        f'CSR adjacency with an [N, {CHANNELS}] matrix, in turn with them. "growth from 1e4" is the ratio to it divided by '
        f'that at N = 10,000: 1 is as linear as a sparse product on this machine. '
        f'PerformerAttention has its default of 44 random features a head, GRF and linear attention have 16. "dense masked" '
        f'loops over heads with the matrix of the mask given. "GRF alone" (edges route) and "dense alone" are the attention of '
        f'these layers without their four projections, which are the same in both. Memory is the peak of '
        f'forward and backward beyond inputs and parameters. Memory "kept": the allocator keeps freed blocks '
        f'(GLIBC_TUNABLES={KEEP_MEMORY}), for all methods and for CSR alike; "default": glibc as it comes, where a step at '
        f'N = 1,000,000 spends about half of its time on pages that the system zeroes anew.'
    )
    write_table('scaling', 'Scaling of attention with the number of nodes', note, rows, folder)
    _plot(rows, folder / 'scaling.png')


def _measure_all(jobs: list[tuple[str, int, str]], memory: str, repeats: int) -> list[dict[str, Any]]:
    graphs = list(dict.fromkeys((name, size) for name, size, _ in jobs))
    with keep_memory() if memory == 'kept' else nullcontext():
        peaks = {job: alone(_measure_memory, *job) for job in tqdm(jobs, desc=f'memory, {memory}')}
        rows: list[dict[str, Any]] = []
        for graph in tqdm(graphs, desc=f'time, memory {memory}'):
            methods = [job[2] for job in jobs if job[:2] == graph]
            for row in alone(measure_time, *graph, methods, repeats):
                rows.append({**row, **peaks[graph[0], graph[1], row['method']], 'memory': memory})
    return rows


def measure_time(graph_name: str, size: int, methods: Sequence[str], repeats: int) -> list[dict[str, Any]]:
    r"""Times methods on one graph, all of them and the CSR product in turn."""
    edge_index, x = _input(graph_name, size)
    plain = x.detach()
    adjacency = torch.sparse_coo_tensor(
        edge_index, torch.ones(edge_index.size(1)), (size, size), check_invariants=False
    ).to_sparse_csr()
    forward = {method: _build(method, edge_index, size)[1] for method in methods}

    def predict(method: str) -> None:
        with torch.no_grad():
            forward[method](plain)

    def train(method: str) -> None:
        forward[method](x).sum().backward()

    functions: dict[str, Callable[[], object]] = {'CSR': lambda: adjacency @ plain}
    functions |= {f'{kind.__name__} {method}': partial(kind, method) for method in methods for kind in (predict, train)}
    seconds = interleaved_medians(functions, min(repeats, 3) if size >= 1_000_000 else repeats)
    return [
        {
            'graph': graph_name,
            'nodes': size,
            'method': method,
            'forward': seconds[f'predict {method}'] / size * 1e9,
            'forward + backward': seconds[f'train {method}'] / size * 1e9,
            'CSR': seconds['CSR'] / size * 1e9,
            'forward / CSR': seconds[f'predict {method}'] / seconds['CSR'],
        }
        for method in methods
    ]


def _measure_memory(graph_name: str, size: int, method: str) -> dict[str, float]:
    r"""Measures the memory of one method, in a process of its own, and the time of its preparation."""
    edge_index, x = _input(graph_name, size)
    prepare, forward = _build(method, edge_index, size)
    prepared = interleaved_medians({'prepare': prepare}, 1)['prepare']
    memory = peak_memory(lambda: forward(x).sum().backward())
    return {'prepare': prepared / size * 1e9, 'peak memory, bytes per node': memory / size}


def _input(graph_name: str, size: int) -> tuple[Tensor, Tensor]:
    torch.manual_seed(0)
    return ring(size) if graph_name == 'ring' else random_graph(size), torch.randn(size, CHANNELS, requires_grad=True)


def _build(method: str, edge_index: Tensor, size: int) -> tuple[Callable[[], object], Callable[[Tensor], Tensor]]:
    if method == 'GATConv':
        gat = GATConv(CHANNELS, CHANNELS // HEADS, HEADS)
        return _nothing, lambda x: gat(x, edge_index)
    if method == 'PerformerAttention':
        performer = PerformerAttention(CHANNELS, HEADS, head_channels=CHANNELS // HEADS)
        return _nothing, lambda x: performer(x.unsqueeze(0))
    graph = Graph.from_tensors(edge_index, size)
    if method == 'unmasked linear':
        linear = MaskedLinearAttention(CHANNELS, HEADS)
        return _nothing, lambda x: linear(x, edge_index, graph=graph)
    route = 'features' if method == 'GRF features route' else 'edges'
    grf = GRFAttention(CHANNELS, HEADS, num_walks=WALKS, p_halt=P_HALT, max_walk_length=MAX_LENGTH, route=route)

    def prepare() -> None:
        operator = grf.mask(Graph.from_tensors(edge_index, size))
        if route == 'edges' and operator.entries is not None:
            operator.entries()

    if method == 'GRF alone':
        return prepare, lambda x: masked_linear_attention(*_features(x, x, x), grf.mask(graph), route)
    if method.startswith('dense'):
        matrix = _mask_matrix(edge_index, size)
        if method == 'dense alone':
            return prepare, lambda x: _attend_dense(*_features(x, x, x), matrix)
        return prepare, lambda x: grf.lin_out(_attend_dense(*_features(grf.lin_q(x), grf.lin_k(x), grf.lin_v(x)), matrix))
    return prepare, lambda x: grf(x, edge_index, graph=graph)


@cache
@torch.no_grad()
def _mask_matrix(edge_index: Tensor, size: int) -> Tensor:
    r"""The mask of one head, which all heads begin with."""
    matrix: Tensor = GRFMask(1, WALKS, P_HALT, MAX_LENGTH)(Graph.from_tensors(edge_index, size)).to_dense()[0]
    return matrix


def _features(*projected: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    q, k, v = (tensor.view(-1, HEADS, CHANNELS // HEADS) for tensor in projected)
    return q.relu(), k.relu(), v


def _attend_dense(q: Tensor, k: Tensor, v: Tensor, matrix: Tensor) -> Tensor:
    heads = []
    for head in range(HEADS):
        score = (q[:, head] @ k[:, head].t()) * matrix
        heads.append(score @ v[:, head] / score.sum(-1, keepdim=True).clamp(min=1e-6))
    return torch.cat(heads, dim=-1)


def _nothing() -> None:
    pass


def _plot(rows: list[dict[str, Any]], path: Path) -> None:
    shown = [row for row in rows if row['memory'] == 'kept']
    figure = new_figure(10, 7)
    axes = figure.subplots(2, 2, sharex=True)
    for column, graph in enumerate(('ring', 'random')):
        for line, (key, unit) in enumerate((('forward', 'ns per node'), ('peak memory, bytes per node', 'bytes per node'))):
            axis = axes[line, column]
            for method in METHODS:
                points = [row for row in shown if row['graph'] == graph and row['method'] == method]
                axis.loglog([row['nodes'] for row in points], [row[key] for row in points], marker='o', label=method)
            if key == 'forward':
                points = [row for row in shown if row['graph'] == graph and row['method'] == METHODS[0]]
                axis.loglog([row['nodes'] for row in points], [row['CSR'] for row in points], 'k:', label='one CSR product')
            axis.set(title=f'{graph} graph: {key.split(",")[0]}', xlabel='nodes', ylabel=unit)
            axis.grid(alpha=0.3)
    axes[0, 0].legend(fontsize='small')
    figure.savefig(path, dpi=120)
