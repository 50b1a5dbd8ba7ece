r"""The action of heat kernels against scipy's expm_multiply: error and time on one core."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_array, diags_array
from scipy.sparse.linalg import expm_multiply
from torch import Tensor

from benchmarks.graphs import random_graph, ring
from benchmarks.harness import interleaved_medians, write_table
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks.heat_kernel import HeatKernelMask, HeatState

__all__ = ['run']

COLUMNS = 16
KINDS = ('laplacian', 'random_walk_laplacian', 'normalized_laplacian', 'adjacency')


def run(quick: bool, folder: Path) -> None:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    rows: list[dict[str, object]] = []
    for name, edges in (('ring', ring), ('random', random_graph)):
        size = 1_000 if quick else 20_000
        for kind in KINDS:
            for lam in (0.1, 1.0, 10.0):
                measured = _measure(edges(size), size, kind, lam)
                rows.append({'graph': name, 'nodes': size, 'kind': kind, 'lambda': lam, **measured})
    torch.set_num_threads(threads)
    note = (
        f'exp(-lambda T) x in float64 for x of {COLUMNS} columns, on one core: HeatKernelMask with the default tolerance of '
        f'1e-8 against scipy.sparse.linalg.expm_multiply, which works to 1e-16 and is told the trace. "adjacency" is '
        f'exp(lambda (A - rho)) for both. "time / scipy" below 1 is faster. "error" is that of HeatKernelMask, the norm of the '
        f'difference over the norm of the result of expm_multiply; "forward + backward" has gradients in x and lambda.'
    )
    write_table('heat', 'Heat kernels against expm_multiply', note, rows, folder)


def _measure(edge_index: Tensor, size: int, kind: str, lam: float) -> dict[str, object]:
    mask = HeatKernelMask(1, kind, lam).double()
    graph = Graph.from_tensors(edge_index, size)
    state = mask.prepare(graph)
    generator = _generator(edge_index, size, kind, state)
    x = torch.randn(size, 1, COLUMNS, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    array, trace = x.squeeze(1).numpy(), float(generator.trace())

    def ours() -> Tensor:
        with torch.no_grad():
            out: Tensor = mask.bind(graph, state).matmul(x)
            return out

    def scipy_action() -> Any:
        return expm_multiply(lam * generator, array, traceA=lam * trace)

    leaf = x.clone().requires_grad_()

    def train() -> None:
        mask.bind(graph, state).matmul(leaf).sum().backward()

    functions: dict[str, Callable[[], object]] = {'scipy': scipy_action, 'ours': ours, 'train': train}
    seconds = interleaved_medians(functions, 3)
    expected = scipy_action()
    error = np.linalg.norm(ours().squeeze(1).numpy() - expected) / np.linalg.norm(expected)
    return {
        'degree': mask.coefficients(state)[0].size(1) - 1,
        'error': float(error),
        'expm_multiply ms': seconds['scipy'] * 1e3,
        'ms': seconds['ours'] * 1e3,
        'forward + backward ms': seconds['train'] * 1e3,
        'time / scipy': seconds['ours'] / seconds['scipy'],
    }


def _generator(edge_index: Tensor, size: int, kind: str, state: HeatState) -> Any:
    r"""Returns :math:`-\mathbf{T}`, built by scipy."""
    adjacency: Any = csr_array((np.ones(edge_index.size(1)), edge_index.numpy()), shape=(size, size))
    adjacency.sum_duplicates()
    degree = adjacency.sum(0)
    # The pseudo-inverse: a node without edges keeps its heat.
    inverse, connected = np.divide(1.0, degree, out=np.zeros(size), where=degree > 0), diags_array((degree > 0).astype(float))
    if kind == 'laplacian':
        return (adjacency - diags_array(degree)).tocsr()
    if kind == 'random_walk_laplacian':
        return (adjacency @ diags_array(inverse) - connected).tocsr()
    if kind == 'normalized_laplacian':
        half = diags_array(np.sqrt(inverse))
        return (half @ adjacency @ half - connected).tocsr()
    # The shift of each connected component, as the mask has chosen it.
    on_diagonal = state.pattern.row == state.pattern.col
    shift = (1.0 - state.value[on_diagonal].numpy()) * state.radius + adjacency.diagonal()
    return (adjacency - diags_array(shift)).tocsr()
