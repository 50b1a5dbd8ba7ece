r"""k-MIP attention against full attention: time and memory, in inference and in training."""

from __future__ import annotations

import importlib.util
import math
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from tqdm import tqdm

from benchmarks.full_attention import full_attention
from benchmarks.harness import alone, interleaved_medians, new_figure, peak_memory, write_table
from pyg_topomask.ops.softmax_entries import attend_pairs, pattern_of_slots
from pyg_topomask.ops.topk.topk_inner_product import topk_inner_product

__all__ = ['million', 'run', 'small_graphs']

KQ_DIM, VAL_DIM, KEYS = 10, 50, 10  # Table A.4
FULL, MATRIX = 'full attention (SDPA)', 'full attention (matrix)'
NAIVE = 'k-MIP, naive'
SIZES = tuple(round(100 * 10 ** (step / 2)) for step in range(7))
#: The largest number of nodes that a method is asked for, where it would take minutes or more memory than there is.
LIMITS = {FULL: 31_623, MATRIX: 10_000, NAIVE: 10_000, 'k-MIP, keops': 10_000}
NEEDS = {'k-MIP, keops': 'pykeops', 'k-MIP, faiss': 'faiss'}
METHODS = (FULL, MATRIX, NAIVE, 'k-MIP, auto', 'k-MIP, chunked', 'k-MIP, keops', 'k-MIP, faiss')


def run(quick: bool, folder: Path) -> None:
    methods = [name for name in METHODS if name not in NEEDS or importlib.util.find_spec(NEEDS[name])]
    sizes = SIZES[:3] if quick else SIZES
    jobs = [([name for name in methods if size <= LIMITS.get(name, size)], size) for size in sizes]
    measured: list[dict[str, Any]] = []
    for names, size in tqdm(jobs, desc='kmip_efficiency'):
        seconds = alone(_medians, names, size, 3 if quick or size > 3_000 else 15)
        measured += [{**row, 'training MB': alone(_memory, row['method'], size)} for row in seconds]
    base = {row['nodes']: row for row in measured if row['method'] == FULL}
    rows: list[dict[str, object]] = [
        {
            **row,
            **{
                f'{kind} speed-up': base[row['nodes']][f'{kind} ms'] / row[f'{kind} ms'] if row['nodes'] in base else math.nan
                for kind in ('inference', 'training')
            },
        }
        for row in measured
    ]
    missing = sorted(set(METHODS) - set(methods))
    note = (
        f'One head of one graph, queries and keys of {KQ_DIM}, values of {VAL_DIM} normal numbers, k = {KEYS} (Table A.4), '
        f'float32. Medians of {3 if quick else "15 calls in turn (3 from 3,162 nodes on)"}. Memory is the peak of training '
        f'beyond the inputs. Speed-ups are over scaled_dot_product_attention, with queries and keys padded with zeros to the '
        f'size of the values, without which it forms the scores. "matrix" forms them, as the thesis does. "naive" searches by '
        f'one product of matrices and torch.topk. The thesis (Sec. 6.2, Fig. 6.1, 6.2, on a GPU) has full attention with '
        f'matrices, naive k-MIP (5 times as fast in inference, 50 in training) and k-MIP with KeOps (50 and 500 times). Here, '
        f'the search takes nearly all of the time of k-MIP. The two columns are measured one after the other, so training may '
        f'come out below inference.'
        f'{" Not installed: " + ", ".join(missing) + "." if missing else ""}'
    )
    write_table('kmip_efficiency', 'k-MIP attention against full attention', note, rows, folder)
    _plot(measured, folder / 'kmip_efficiency.png')


def small_graphs(quick: bool, folder: Path) -> None:
    r"""Batches of graphs of equal size, where full attention is a batched product."""
    rows: list[dict[str, object]] = []
    for graphs, size in ((32, 1_000), (256, 150), (5_000, 20)):
        graphs = max(2, graphs // 16) if quick else graphs
        functions = {name: _in_batch(name, graphs, size) for name in (FULL, 'k-MIP, auto')}
        seconds = interleaved_medians({name: _inference(function) for name, function in functions.items()}, 3 if quick else 9)
        training = interleaved_medians({name: _training(function) for name, function in functions.items()}, 3 if quick else 9)
        for name in functions:
            memory = alone(_batch_memory, name, graphs, size)
            rows.append(
                {
                    'graphs': graphs,
                    'nodes each': size,
                    'method': name,
                    'inference ms': seconds[name] * 1e3,
                    'training ms': training[name] * 1e3,
                    'training MB': memory,
                    'inference time / SDPA': seconds[name] / seconds[FULL],
                    'training time / SDPA': training[name] / training[FULL],
                }
            )
    note = (
        f'One head, queries and keys of {KQ_DIM}, for full attention padded with zeros to the size of the values, {VAL_DIM}; '
        f'k = {KEYS}, float32, medians in one run.'
    )
    write_table('kmip_batches', 'k-MIP attention in batches of small graphs', note, rows, folder)


def million(quick: bool, folder: Path) -> None:
    r"""One training step on a million nodes, whose search takes about ten minutes."""
    size = 20_000 if quick else 1_000_000
    q, k, v = _inputs(size)
    function = _training(_kmip('auto', q, k, v, torch.tensor([0, size])))
    taken: list[float] = []
    peak = peak_memory(lambda: taken.append(_seconds(function)))
    row: dict[str, object] = {'nodes': size, 'seconds': taken[0], 'peak GB': peak / 1e9, 'bytes per node': peak / size}
    note = f'Forward and backward of one head, queries and keys of {KQ_DIM}, values of {VAL_DIM}, k = {KEYS}, float32, exact.'
    write_table('kmip_million', 'k-MIP attention on a million nodes', note, [row], folder)


def _medians(names: list[str], size: int, repeats: int) -> list[dict[str, Any]]:
    functions = {name: _attention(name, *_inputs(size)) for name in names}
    inference = interleaved_medians({name: _inference(function) for name, function in functions.items()}, repeats)
    training = interleaved_medians({name: _training(function) for name, function in functions.items()}, repeats)
    return [
        {'nodes': size, 'method': name, 'inference ms': inference[name] * 1e3, 'training ms': training[name] * 1e3}
        for name in names
    ]


def _memory(name: str, size: int) -> float:
    _training(_attention(name, *_inputs(100)))()  # what libraries load once does not count
    return peak_memory(_training(_attention(name, *_inputs(size)))) / 1e6


def _batch_memory(name: str, graphs: int, size: int) -> float:
    _training(_in_batch(name, 2, 10))()
    return peak_memory(_training(_in_batch(name, graphs, size))) / 1e6


def _in_batch(name: str, graphs: int, size: int) -> Callable[[], Tensor]:
    q, k, v = _inputs(graphs * size)
    if name == FULL:
        return partial(_batched, q, k, v, graphs)
    return _kmip('auto', q, k, v, torch.arange(graphs + 1) * size)


def _inputs(size: int) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(size, 1, dim, generator=generator).requires_grad_() for dim in (KQ_DIM, KQ_DIM, VAL_DIM))
    return q, k, v


def _attention(method: str, q: Tensor, k: Tensor, v: Tensor) -> Callable[[], Tensor]:
    if method == FULL:
        return partial(_batched, q, k, v, 1)
    if method == MATRIX:
        return lambda: (q[:, 0] @ k[:, 0].t() * KQ_DIM**-0.5).softmax(-1) @ v[:, 0]
    if method == NAIVE:
        return partial(_naive, q, k, v)
    return _kmip(method.removeprefix('k-MIP, '), q, k, v, torch.tensor([0, q.size(0)]))


def _naive(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    index = (q[:, 0] @ k[:, 0].t()).detach().topk(KEYS).indices.unsqueeze(1)
    return attend_pairs(q, k, v, pattern_of_slots(index, torch.ones_like(index, dtype=torch.bool)))[0]


def _batched(q: Tensor, k: Tensor, v: Tensor, graphs: int) -> Tensor:
    q, k, v = (x.view(graphs, -1, 1, x.size(-1)).transpose(1, 2) for x in (q, k, v))
    return full_attention(q, k, v)


def _kmip(backend: str, q: Tensor, k: Tensor, v: Tensor, ptr: Tensor) -> Callable[[], Tensor]:
    def attend() -> Tensor:
        pairs = pattern_of_slots(*topk_inner_product(q.detach(), k.detach(), KEYS, ptr, backend))
        return attend_pairs(q, k, v, pairs)[0]

    return attend


def _inference(function: Callable[[], Tensor]) -> Callable[[], Tensor]:
    return torch.no_grad()(function)


def _training(function: Callable[[], Tensor]) -> Callable[[], None]:
    return lambda: function().sum().backward()


def _seconds(function: Callable[[], object]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def _plot(rows: list[dict[str, Any]], path: Path) -> None:
    figure = new_figure(13, 4)
    axes = figure.subplots(1, 3)
    for axis, key in zip(axes, ('inference ms', 'training ms', 'training MB'), strict=True):
        for method in METHODS:
            points = [row for row in rows if row['method'] == method]
            axis.loglog([row['nodes'] for row in points], [row[key] for row in points], marker='o', label=method)
        axis.set(title=key, xlabel='nodes')
        axis.grid(alpha=0.3)
    axes[0].legend(fontsize='small')
    figure.savefig(path, dpi=120)
