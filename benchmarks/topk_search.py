r"""Time and memory of the exact top-k search against the number of nodes, as in the thesis' Fig. 6.1 and 6.2."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from tqdm import tqdm

from benchmarks.full_attention import full_attention
from benchmarks.harness import alone, interleaved_medians, new_figure, peak_memory, write_table
from pyg_topomask.ops.topk.searches import load_faiss, load_keops
from pyg_topomask.ops.topk.topk_inner_product import choose_topk_backend, topk_inner_product

__all__ = ['run']

DIM, VALUE_DIM, K = 10, 50, 10
BACKENDS = ('auto', 'dense', 'chunked', 'keops', 'faiss', 'tree')
ALONE = ('KeOps argKmin alone', 'faiss alone', 'matmul + torch.topk', 'full attention')
NEEDS = {'keops': 'pykeops', 'faiss': 'faiss', 'KeOps argKmin alone': 'pykeops', 'faiss alone': 'faiss'}
# Where a method would take many minutes.
LIMITS = {
    'tree': 10_000,
    'keops': 10_000,
    'KeOps argKmin alone': 31_623,
    'matmul + torch.topk': 10_000,
    'full attention': 31_623,
}


def run(quick: bool, folder: Path) -> None:
    sizes = [round(100 * math.sqrt(10) ** i) for i in range(3 if quick else 7)]
    methods = [name for name in BACKENDS + ALONE if importlib.util.find_spec(NEEDS.get(name, 'torch')) is not None]
    jobs = [(1, size, [name for name in methods if size <= LIMITS.get(name, size)]) for size in sizes]
    jobs.append((32, 1_000, ['auto', 'full attention']))
    rows: list[dict[str, Any]] = []
    for graphs, size, names in tqdm(jobs, desc='top-k search'):
        seconds = alone(_seconds, names, graphs, size, 1 if quick else 3 if size > 10_000 else 9)
        for name in names:
            memory = alone(_memory, name, graphs, size)
            row = {'method': name, 'graphs': graphs, 'nodes per graph': size, 'seconds': seconds[name]}
            rows.append({**row, 'peak memory, MiB': memory / 2**20})
    by_job = {(row['method'], row['graphs'], row['nodes per graph']): row['seconds'] for row in rows}
    for row in rows:
        for baseline in ('KeOps argKmin alone', 'faiss alone', 'full attention'):
            time = by_job.get((baseline, row['graphs'], row['nodes per graph']), math.nan)
            row[f'{baseline} / it'] = time / row['seconds']
    note = (
        f'Search for the k = {K} largest inner products of normal queries and keys, d = {DIM}, 1 head, float32, median of '
        f'{"1 call" if quick else "9 calls (3 beyond 10,000 nodes)"} of each in turn. A first call, in which KeOps compiles, '
        f'does not count. "auto" to "tree" are topk_inner_product(backend=...). "alone" calls the library itself. "full '
        f'attention" is scaled_dot_product_attention with {VALUE_DIM} value channels, and queries and keys padded with zeros '
        f'to as many. It does more than search. "x / it" is how many times as long x takes. Memory is the peak of one call in '
        f'a new process beyond its input, and includes the code that it loads. All backends use "dense" for graphs of at most '
        f'1,024 nodes, and "auto" uses "{choose_topk_backend(31_623, DIM)}" for larger ones. In the thesis (Sec. 6.2), on a '
        f'GPU, k-MIP attention with KeOps is 10 to 15 times as fast as with matmul and topk, which is faster than full '
        f'attention from 10,000 nodes on.'
    )
    write_table('topk_search', 'Exact top-k inner product search', note, rows, folder)
    _plot(rows, folder / 'topk_search.png')


def _seconds(names: list[str], graphs: int, size: int, repeats: int) -> dict[str, float]:
    functions = _builders(names, graphs, size)
    return interleaved_medians(functions, repeats)


def _memory(name: str, graphs: int, size: int) -> int:
    return peak_memory(_builders([name], graphs, size)[name])


def _builders(names: list[str], graphs: int, size: int) -> dict[str, Callable[[], object]]:
    torch.manual_seed(0)
    q, k = torch.randn(2, graphs * size, 1, DIM)
    ptr = torch.arange(0, graphs * size + 1, size)
    return {name: _build(name, q, k, ptr) for name in names}


def _build(name: str, q: Tensor, k: Tensor, ptr: Tensor) -> Callable[[], object]:
    if name in BACKENDS:
        return lambda: topk_inner_product(q, k, K, ptr, backend=name)
    query, key = (tensor.view(ptr.numel() - 1, -1, DIM) for tensor in (q, k))
    if name == 'full attention':
        value = torch.randn(query.size(0), 1, query.size(1), VALUE_DIM)
        return lambda: full_attention(query.unsqueeze(1), key.unsqueeze(1), value)
    query, key = query[0], key[0]
    if name == 'KeOps argKmin alone':
        lazy_tensor = load_keops()
        return lambda: (-(lazy_tensor(query[:, None]) | lazy_tensor(key[None]))).argKmin(K, dim=1)
    if name == 'faiss alone':
        faiss = load_faiss()

        def search() -> object:
            index = faiss.IndexFlatIP(DIM)
            index.add(key.numpy())
            return index.search(query.numpy(), K)

        return search
    return lambda: [(block @ key.t()).topk(K) for block in query.split(512)]


def _plot(rows: list[dict[str, Any]], path: Path) -> None:
    figure = new_figure(11, 4.5)
    axes = figure.subplots(1, 2)
    for axis, key in zip(axes, ('seconds', 'peak memory, MiB'), strict=True):
        for name in dict.fromkeys(row['method'] for row in rows):
            points = [row for row in rows if row['method'] == name and row['graphs'] == 1]
            line = '--' if name in ALONE else '-'
            axis.plot([row['nodes per graph'] for row in points], [row[key] for row in points], line, marker='o', label=name)
        axis.set_xscale('log')
        axis.set_yscale('log' if key == 'seconds' else 'symlog')
        axis.set(title=key, xlabel='nodes')
        axis.grid(alpha=0.3)
    axes[0].legend(fontsize='small')
    figure.savefig(path, dpi=120)
