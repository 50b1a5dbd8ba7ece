r"""Products with functions of the distance in trees: against one sparse product, and as trees grow."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import log
from pathlib import Path

import torch
from torch import Tensor

from benchmarks.harness import interleaved_medians, write_table
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks import AdjacencyMask
from pyg_topomask.masks.tree import TreeMask
from pyg_topomask.operators.sparse_matmul import multiply

__all__ = ['run']

COLUMNS = (1, 16)


def run(quick: bool, folder: Path) -> None:
    rows: list[dict[str, object]] = []
    for name in ('path', 'uniform random tree', 'random recursive tree'):
        for shuffled in (False, True):
            rows += _exp_rows(name, (1_000, 10_000) if quick else (10_000, 100_000, 1_000_000), shuffled, quick)
    note = (
        'Products M x with M = exp(a dist + b) of weighted trees, float32, one head. Nodes are numbered as the tree grows, or '
        'at random. The baseline is one product of the adjacency matrix of the tree with the same x (torch CSR, MKL). The '
        'target is at most 30 times its time. TreeMask runs O(log N) rounds of rake and compress on the contracted forest, '
        'which "prepare" computes once per graph. "slope" is that of log time over log N from the row before. Times include '
        'the allocation of new pages of memory by the system, which some runs do without.'
    )
    write_table('tree', 'Tree masks, exponential of the distance', note, rows, folder)
    rows = [row for name in TREES for row in _distance_rows(name, (1_000, 4_000) if quick else SIZES, quick)]
    note = (
        'Products with f(dist) for any f on unweighted trees, float32, one head, one column. f has one value per distance. '
        '"slope" is that of log time over log N from the row before: 1 is linear, and 2 that of a dense matrix. "auto" names '
        'the method that TreeMask chooses. "rings" is left out beyond 4,096 distances.'
    )
    write_table('tree_distance', 'Tree masks, any function of the distance', note, rows, folder)


SIZES = (1_000, 4_000, 16_000, 64_000, 256_000)


def _path(size: int) -> Tensor:
    return torch.stack([torch.arange(size - 1), torch.arange(1, size)])


def _uniform(size: int) -> Tensor:
    r"""A tree drawn uniformly from all labelled ones (Aldous 1990): node :math:`i` is joined to a random node, or to the one
    before it where the random one comes later.
    """
    node = torch.arange(1, size)
    return torch.stack([torch.minimum(torch.randint(size, (size - 1,), generator=_generator()), node - 1), node])


def _recursive(size: int) -> Tensor:
    node = torch.arange(1, size)
    chosen = torch.rand(size - 1, dtype=torch.float64, generator=_generator()) * node
    return torch.stack([chosen.long(), node])


def _star(size: int) -> Tensor:
    r"""Paths of as many nodes as there are paths, from one center."""
    node = torch.arange(1, size)
    arms = int(size**0.5)
    return torch.stack([(node - arms).clamp(min=0), node])


TREES: dict[str, Callable[[int], Tensor]] = {
    'path': _path,
    'uniform random tree': _uniform,
    'random recursive tree': _recursive,
    'star of paths': _star,
}


def _generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def _graph(name: str, size: int, shuffled: bool = True) -> Graph:
    edge_index = TREES[name](size)
    if shuffled:
        edge_index = torch.randperm(size, generator=_generator())[edge_index]
    return Graph.from_tensors(edge_index, size, torch.rand(size - 1, generator=_generator()))


def _exp_rows(name: str, sizes: tuple[int, ...], shuffled: bool, quick: bool) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    before: dict[tuple[int, str], float] = {}
    for step, size in enumerate(sizes):
        seconds = _exp_seconds(name, size, shuffled, quick)
        for (columns, method), time in seconds.items():
            rows.append(
                {
                    'tree': name,
                    'nodes': size,
                    'numbered': 'at random' if shuffled else 'in order',
                    'columns': columns,
                    'method': method,
                    'ms': time * 1e3,
                    'time / baseline': time / seconds[columns, 'one sparse product'],
                    'slope': log(time / before[columns, method]) / log(size / sizes[step - 1]) if before else '',
                }
            )
        before = seconds
    return rows


def _exp_seconds(name: str, size: int, shuffled: bool, quick: bool) -> dict[tuple[int, str], float]:
    medians: dict[tuple[int, str], float] = {}
    graph = _graph(name, size, shuffled)
    both = Graph.from_tensors(torch.cat([graph.edge_index, graph.edge_index.flip(0)], dim=1), size)
    adjacency = AdjacencyMask(1, None).prepare(both)
    mask = TreeMask()
    operator = mask.bind(graph, mask.prepare(graph))
    prepare = interleaved_medians({'prepare': lambda: mask.prepare(graph).forest.schedule}, 1)
    for columns in COLUMNS:
        x = torch.randn(size, columns, generator=_generator())
        functions: dict[str, Callable[[], object]] = {
            'one sparse product': partial(multiply, adjacency.pattern.rowptr, adjacency.pattern.col, adjacency.weight, x),
            'TreeMask': partial(torch.no_grad()(operator.matmul), x.unsqueeze(1)),
        }
        seconds = interleaved_medians(functions, 3 if quick else 9)
        if columns == COLUMNS[0]:
            seconds |= prepare
        medians |= {(columns, method): time for method, time in seconds.items()}
    return medians


def _distance_rows(name: str, sizes: tuple[int, ...], quick: bool) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    before: dict[str, float] = {}
    for step, size in enumerate(sizes):
        graph = _graph(name, size)
        state = TreeMask().prepare(graph)
        diameter = state.forest.diameter
        x = torch.randn(size, 1, 1, generator=_generator())
        functions: dict[str, Callable[[], object]] = {}
        for method in ('rings', 'fft'):
            if method == 'fft' or diameter <= 4096:
                mask = TreeMask(1, 'distance', max_distance=diameter, f=torch.rand(diameter + 1), method=method)
                functions[method] = partial(torch.no_grad()(mask.bind(graph, state).matmul), x)
        chosen = TreeMask(1, 'distance', max_distance=diameter).bind(graph, state).formed()
        seconds = interleaved_medians(functions, 1 if quick else 3)
        for method, time in seconds.items():
            slope = log(time / before[method]) / log(size / sizes[step - 1]) if before else ''
            rows.append(
                {
                    'tree': name,
                    'nodes': size,
                    'distances': diameter + 1,
                    'method': method,
                    'auto': getattr(chosen, 'method', ''),
                    'ms': time * 1e3,
                    'slope': slope,
                }
            )
        before = seconds
    return rows
