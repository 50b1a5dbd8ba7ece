r"""Steps per second of the walk sampler, which also returns loads, against torch_sparse's, which returns nodes alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from benchmarks.graphs import random_graph, ring
from benchmarks.harness import interleaved_medians, write_table
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.utils.random import counter_uniform
from pyg_topomask.walks import WalkSettings, sample_walks
from pyg_topomask.walks.steps import Transitions
from pyg_topomask.walks.walk import walk, walk_compiled

__all__ = ['run']

WALKS, LENGTH = 4, 8


def run(quick: bool, folder: Path) -> None:
    rows: list[dict[str, object]] = []
    for name, edges in (('ring', ring), ('random', random_graph)):
        for size in (2_000,) if quick else (10_000, 50_000, 100_000, 200_000, 1_000_000):
            functions = _functions(edges(size), size)
            seconds = interleaved_medians(functions, 3 if quick else 7 if size >= 1_000_000 else 21)
            baseline = seconds.get('torch_sparse.random_walk', float('nan'))
            rows += [
                {
                    'graph': name,
                    'nodes': size,
                    'method': method,
                    'million steps per second': size * WALKS * LENGTH / time / 1e6,
                    'speed / torch_sparse': baseline / time,
                }
                for method, time in seconds.items()
            ]
    note = (
        f'{WALKS} walks of {LENGTH} hops from every node. "walks" returns visited nodes and loads in the order of the visits; '
        f'"features" adds up the loads of equal visits and sorts them. Tables of transitions are made once, as torch_sparse is '
        f'given its CSR matrix. torch_sparse appears where it is installed; it returns nodes and edges, no loads.'
    )
    write_table('sampler', 'Speed of the walk sampler', note, rows, folder)


def _functions(edge_index: Tensor, size: int) -> dict[str, Callable[[], object]]:
    graph, settings = Graph.from_tensors(edge_index, size), WalkSettings(WALKS, 0.0, LENGTH)
    transitions = Transitions.of(graph, settings.normalization)
    position, nodes = graph.segments.position, range(size)
    uniform = counter_uniform(0, position, WALKS)
    functions: dict[str, Callable[[], object]] = {
        'walks, Numba': lambda: walk_compiled(nodes, position, transitions, settings, 0, merge=False),
        'features, Numba': lambda: sample_walks(graph, settings, 0, 'numba'),
        'walks, torch': lambda: walk(transitions, settings, uniform, nodes),
        'features, torch': lambda: sample_walks(graph, settings, 0, 'torch'),
    }
    try:
        import torch_sparse
    except ImportError:
        return functions
    rowptr, col, _ = torch_sparse.SparseTensor.from_edge_index(edge_index, sparse_sizes=(size, size)).csr()
    starts = torch.arange(size).repeat_interleave(WALKS)
    functions['torch_sparse.random_walk'] = lambda: torch.ops.torch_sparse.random_walk(rowptr, col, starts, LENGTH)
    return functions
