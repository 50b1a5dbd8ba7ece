r"""Graph random features per second against fast-graph-gp, and exact power series against scipy."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from scipy.sparse import csr_array
from torch import Tensor

from benchmarks.graphs import random_graph, ring
from benchmarks.harness import interleaved_medians, write_table
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks import PowerSeriesMask
from pyg_topomask.walks import WalkSettings, sample_walks
from pyg_topomask.walks.features import WalkFeatures

__all__ = ['run']

WALKS, P_HALT, MAX_LENGTH, ORDER, COLUMNS = 4, 0.5, 10, 10, 64


def run(quick: bool, folder: Path) -> None:
    rows: list[dict[str, object]] = []
    for name, edges in (('ring', ring), ('random', random_graph)):
        for size in (1_000,) if quick else (10_000, 100_000):
            edge_index = edges(size)
            for task, functions in (('features', _features(edge_index, size)), ('series', _series(edge_index, size))):
                seconds = interleaved_medians(functions, 3 if quick or (task == 'features' and size > 10_000) else 7)
                baseline = next(iter(seconds.values()))
                rows += [
                    {
                        'task': task,
                        'graph': name,
                        'nodes': size,
                        'method': method,
                        'ms': time * 1e3,
                        'nodes per second': size / time,
                        'speed / baseline': baseline / time,
                    }
                    for method, time in seconds.items()
                ]
    note = (
        f'"features": {WALKS} walks from every node, p_halt {P_HALT}, at most {MAX_LENGTH} hops, from the graph to coalesced '
        f'sparse features; the baseline is fast-graph-gp 0.1.3 (GRFSampler, 2 processes) where it is installed. "series": '
        f'sum_k alpha_k W^k x for k up to {ORDER} and x of {COLUMNS} columns, float32, by Horner; the baseline is '
        f'scipy.sparse (csr_array @ ndarray). Medians of {3 if quick else 7} calls, of features of 100,000 nodes of 3.'
    )
    write_table('grf_features', 'Graph random features and exact power series against their peers', note, rows, folder)


def _features(edge_index: Tensor, size: int) -> dict[str, Callable[[], object]]:
    settings = WalkSettings(WALKS, P_HALT, MAX_LENGTH)
    functions: dict[str, Callable[[], object]] = {}
    try:
        from grf_gp.sampler import GRFSampler
    except ImportError:
        pass
    else:
        weight = Graph.from_tensors(edge_index, size).normalized_weight('sym').float()
        adjacency = torch.sparse_coo_tensor(edge_index, weight, (size, size), check_invariants=False).coalesce().to_sparse_csr()
        sampler = GRFSampler(adjacency, WALKS, P_HALT, MAX_LENGTH + 1, seed=0, use_tqdm=False)
        functions['fast-graph-gp'] = sampler
    for backend in ('numba', 'torch'):
        functions[f'pyg_topomask, {backend}'] = partial(_sample, edge_index, size, settings, backend)
    return functions


def _sample(edge_index: Tensor, size: int, settings: WalkSettings, backend: str) -> WalkFeatures:
    # A new graph: nothing is kept from before.
    return sample_walks(Graph.from_tensors(edge_index, size), settings, 0, backend)


def _series(edge_index: Tensor, size: int) -> dict[str, Callable[[], object]]:
    graph, alpha = Graph.from_tensors(edge_index, size), [0.5**k for k in range(ORDER + 1)]
    weight = graph.normalized_weight('sym').float()
    matrix: Any = csr_array((weight.numpy(), edge_index.numpy()), shape=(size, size))
    x = torch.randn(size, COLUMNS)
    array, mask = x.numpy(), PowerSeriesMask(1, ORDER, torch.tensor(alpha))
    operator = mask(graph)

    def scipy_horner() -> object:
        total = alpha[-1] * array
        for coefficient in reversed(alpha[:-1]):
            total = matrix @ total + coefficient * array
        return total

    def ours() -> Tensor:
        with torch.no_grad():
            out: Tensor = operator.matmul(x.unsqueeze(1))
            return out

    return {'scipy.sparse': scipy_horner, 'PowerSeriesMask': ours}
