r"""The curse of dimensionality in exact tree search, as in the thesis' Sec. 6.3."""

from __future__ import annotations

import heapq
import math
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from tqdm import tqdm

from benchmarks.harness import interleaved_medians, new_figure, write_table
from pyg_topomask.ops.topk.searches import search_chunked, search_tree

__all__ = ['count_visits', 'run']

K = 10
DIMS, TIMED_DIMS = (2, 3, 4, 5, 6, 8, 10), (2, 3, 10)
QUERIES = 100

Array = NDArray[Any]


def run(quick: bool, folder: Path) -> None:
    sizes = [round(100 * math.sqrt(10) ** i) for i in range(3 if quick else 7)]
    rng = np.random.default_rng(0)
    jobs = [(dim, size) for dim in (DIMS[::3] if quick else DIMS) for size in sizes]
    visits = []
    for dim, size in tqdm(jobs, desc='ball tree, visits'):
        keys, queries = rng.standard_normal((size, dim)), rng.standard_normal((5 if quick else QUERIES, dim))
        _, visited, nodes = count_visits(keys, queries, K)
        visits.append(
            {
                'd': dim,
                'keys': size,
                'tree nodes': nodes,
                'visited': float(visited.mean()),
                'share': float(visited.mean() / nodes),
            }
        )
    note = (
        f'Tree nodes whose bound (thesis, Eq. 4.10) is computed to find the k = {K} largest inner products exactly, in a ball '
        f'tree of scikit-learn with leaves of 1 or 2 keys, depth first, mean over '
        f'{5 if quick else QUERIES} normal queries. Where "share" stays the same as the keys grow, visits are linear in their '
        f'number. The thesis (Fig. 6.3): logarithmic growth in few dimensions, linear in many.'
    )
    write_table('ball_tree', 'Nodes visited by ball tree search', note, visits, folder)
    times = [_time(dim, size, 1 if quick else 3) for dim, size in tqdm(_timed(sizes), desc='ball tree, times')]
    note = (
        f'Seconds for the k = {K} best keys of as many queries as keys, 1 head, float32: "tree", the k-d tree of SciPy after '
        f'the reduction to nearest neighbors, and "brute force", the backend "chunked", both on the same CPU. "ratio" above 1: '
        f'brute force is faster. The thesis (Fig. 6.4), with a tree in C++ on a CPU against brute force on a GPU: brute force '
        f'is faster in 3 and in 10 dimensions.'
    )
    write_table('ball_tree_time', 'Tree search against brute force', note, times, folder)
    _plot(visits, times, folder / 'ball_tree.png')


def count_visits(keys: Array, queries: Array, num: int) -> tuple[Array, Array, int]:
    r"""Returns for each query the best scores, ascending, and how many tree nodes the search visits; and how many there are.

    Depth first, the child with the larger bound first; a subtree whose bound is below the worst of the best scores is skipped.
    """
    from sklearn.neighbors import BallTree

    _, order, nodes, centers = BallTree(keys, leaf_size=1).get_arrays()
    start, end, leaf = (nodes[name].tolist() for name in ('idx_start', 'idx_end', 'is_leaf'))
    bounds = queries @ centers[0].T + np.linalg.norm(queries, axis=1, keepdims=True) * nodes['radius']
    best, visited = [], []
    for query, row in zip(queries, bounds, strict=True):
        bound, score = row.tolist(), (keys[order] @ query).tolist()
        heap, stack, count = [-math.inf] * num, [0], 1
        while stack:
            node = stack.pop()
            if bound[node] <= heap[0]:
                continue
            if leaf[node]:
                for value in score[start[node] : end[node]]:
                    heapq.heappushpop(heap, value)
            else:
                count += 2
                stack += sorted((2 * node + 1, 2 * node + 2), key=bound.__getitem__)
        best.append(sorted(heap))
        visited.append(count)
    return np.array(best), np.array(visited), len(nodes)


def _timed(sizes: list[int]) -> list[tuple[int, int]]:
    # In ten dimensions the tree would take many minutes.
    return [(dim, size) for dim in TIMED_DIMS for size in sizes if dim < 10 or size <= 31_623]


def _time(dim: int, size: int, repeats: int) -> dict[str, Any]:
    torch.manual_seed(0)
    q, k = torch.randn(2, size, dim)
    nearest = torch.empty(size, K, dtype=torch.long)

    # The backends themselves: topk_inner_product would leave small graphs to "dense".
    arguments = q, k, torch.get_num_threads() * 2**22, nearest
    searches = {'tree': lambda: search_tree(*arguments), 'chunked': lambda: search_chunked(*arguments)}
    seconds = interleaved_medians(searches, repeats)
    return {
        'd': dim,
        'nodes': size,
        'tree': seconds['tree'],
        'brute force': seconds['chunked'],
        'ratio': seconds['tree'] / seconds['chunked'],
    }


def _plot(visits: list[dict[str, Any]], times: list[dict[str, Any]], path: Path) -> None:
    figure = new_figure(14, 4.2)
    axes = figure.subplots(1, 3)
    for dim in dict.fromkeys(row['d'] for row in visits):
        points = [row for row in visits if row['d'] == dim]
        for axis in axes[:2]:
            axis.plot([row['keys'] for row in points], [row['visited'] for row in points], marker='o', label=f'd = {dim}')
    for dim in dict.fromkeys(row['d'] for row in times):
        points = [row for row in times if row['d'] == dim]
        for name, line in (('tree', '-'), ('brute force', '--')):
            axes[2].plot(
                [row['nodes'] for row in points], [row[name] for row in points], line, marker='o', label=f'{name}, d = {dim}'
            )
    axes[0].set(title='nodes visited per query', xlabel='keys', xscale='log', yscale='log')
    axes[1].set(title='nodes visited per query, linear scale', xlabel='keys', xscale='log')
    axes[2].set(title='seconds', xlabel='nodes', xscale='log', yscale='log')
    for axis in axes:
        axis.grid(alpha=0.3)
        axis.legend(fontsize='x-small')
    figure.savefig(path, dpi=120)
