r"""Steps per second of the walk sampler, which also returns loads, against torch_sparse's, which returns nodes alone."""

from __future__ import annotations

from pathlib import Path

import torch

from benchmarks.graphs import random_graph, ring
from benchmarks.harness import interleaved_medians, write_table
from pyg_topomask.graph import Graph
from pyg_topomask.walks import generator_uniform, geometric_survival, sample_walks
from pyg_topomask.walks.sampler import walk

__all__ = ['run']

WALKS, LENGTH = 4, 8


def run(quick: bool, folder: Path) -> None:
    rows: list[dict[str, object]] = []
    for name, edges in (('ring', ring), ('random', random_graph)):
        for size in (2_000,) if quick else (10_000, 200_000, 1_000_000):
            edge_index = edges(size)
            graph = Graph.from_tensors(edge_index, size)
            uniform, survival = generator_uniform(None, graph.device), geometric_survival(0.0, LENGTH)
            functions = {
                'walks with loads': lambda g=graph, u=uniform, s=survival: walk(g, WALKS, s, u),
                'walks with loads, coalesced': lambda g=graph, u=uniform, s=survival: sample_walks(g, WALKS, s, u),
            }
            try:
                import torch_sparse
            except ImportError:
                pass
            else:
                rowptr, col, _ = torch_sparse.SparseTensor.from_edge_index(edge_index, sparse_sizes=(size, size)).csr()
                starts = torch.arange(size).repeat_interleave(WALKS)
                functions['torch_sparse.random_walk'] = lambda r=rowptr, c=col, s=starts: torch.ops.torch_sparse.random_walk(
                    r, c, s, LENGTH
                )
            steps = size * WALKS * LENGTH
            for method, seconds in interleaved_medians(functions, 3 if quick else 5).items():
                rows.append({'graph': name, 'nodes': size, 'method': method, 'million steps per second': steps / seconds / 1e6})
    note = f'{WALKS} walks of {LENGTH} hops from every node. torch_sparse appears where it is installed.'
    write_table('sampler', 'Speed of the walk sampler', note, rows, folder)
