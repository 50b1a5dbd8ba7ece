r"""Stitched walks compared with long ones, and couplings of walk lengths, on kernels of long range."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from torch import Tensor
from tqdm import tqdm

from benchmarks.graphs import make_data
from benchmarks.harness import compare, interleaved_medians, write_table
from pyg_topomask.apps.runs.compare import mean_error
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks import GRFMask
from pyg_topomask.transforms import ToGridGraph
from pyg_topomask.utils.random import Uniform
from pyg_topomask.walks.settings import GeometricLength
from pyg_topomask.walks.steps import SAMPLERS, IIDSampler

__all__ = ['run']

Matrix = NDArray[np.float64]
NODES, TIMED, DEGREE, COLUMNS = 400, 10_000, 6, 16
HOPS, P_HALT, TIME, SIGMA = 32, 0.05, 10.0, 4.0
KERNELS: dict[str, Callable[[Matrix], Matrix]] = {
    f'heat:{TIME:g}': lambda w: np.exp(TIME * (w - 1)),
    f'regularized_laplacian:{SIGMA:g}': lambda w: 1 / (1 + SIGMA**2 * (1 - w)),
}
BINS, COUPLED_WALKS, COUPLED_P_HALT = 32, 4, 0.1


class Method(NamedTuple):
    r"""How many walks of how many hops are stitched, and whether keys have walks of their own."""

    stitch: int
    hops: int
    walks: int
    ensembles: int = 2

    def mask(self, kernel: str) -> GRFMask:
        independent = self.ensembles == 2
        return GRFMask(1, self.walks, P_HALT, self.hops, kernel, stitch=self.stitch, independent_ensembles=independent)


#: The first is the baseline. Walks of one ensemble are twice as many, for the same work.
METHODS = (
    Method(1, HOPS, 16),
    Method(1, HOPS, 64),
    Method(2, HOPS // 2, 16),
    Method(4, HOPS // 4, 16),
    Method(2, HOPS, 8),
    Method(4, HOPS, 4),
    Method(1, HOPS, 32, 1),
    Method(4, HOPS // 4, 32, 1),
)


def make_graph(kind: str, size: int) -> Graph:
    r"""Returns a graph with edges: a square grid, a ring or a random graph."""
    side = math.isqrt(size)
    return Graph.from_data(ToGridGraph()(torch.zeros(1, side, side)) if kind == 'grid' else make_data(kind, size, DEGREE))


class Example(NamedTuple):
    r"""A graph, and the eigenvalues and eigenvectors of its adjacency matrix."""

    kind: str
    graph: Graph
    values: Matrix
    vectors: Matrix

    @classmethod
    def of(cls, kind: str, size: int) -> Example:
        graph = make_graph(kind, size)
        row, col = graph.row_and_col('source_to_target')
        matrix = torch.zeros(graph.num_nodes, graph.num_nodes, dtype=torch.float64)
        matrix.index_put_((row, col), graph.normalized_weight('sym', 'source_to_target').double(), accumulate=True)
        return cls(kind, graph, *np.linalg.eigh(matrix.numpy()))

    def error(self, mask: GRFMask, kernel: str, seed: int) -> float:
        r"""Returns the relative error of an estimate in the Frobenius norm."""
        exact = (self.vectors * KERNELS[kernel](self.values)) @ self.vectors.T
        estimate = mask(self.graph, torch.Generator().manual_seed(seed)).to_dense()[0].detach().double().numpy()
        return float(np.linalg.norm(estimate - exact) / np.linalg.norm(exact))


@torch.no_grad()
def run(quick: bool, folder: Path) -> None:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    examples = [Example.of(kind, 100 if quick else NODES) for kind in ('grid', 'ring', 'random')]
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')  # of short walks, which omit a part of the kernel
        _run_stitching(examples, quick, folder)
        _run_couplings(examples, quick, folder)
    torch.set_num_threads(threads)


def _run_stitching(examples: list[Example], quick: bool, folder: Path) -> None:
    trials = 2 if quick else 6
    rows: list[dict[str, Any]] = []
    for example in tqdm(examples, desc='stitching'):
        seconds = _times(example.kind, 1000 if quick else TIMED, 1 if quick else 3)
        for kernel in KERNELS:
            plain: dict[str, float] = {}
            for method in METHODS:
                errors = [example.error(method.mask(kernel), kernel, seed) for seed in range(trials)]
                error, deviation = mean_error(errors)
                walk, multiply = seconds[f'walk {method}'], seconds[f'multiply {method}']
                cost = {'first pass': error**2 * (walk + multiply), 'later pass': error**2 * multiply}
                plain = plain or cost
                rows.append(
                    {
                        'graph': example.kind,
                        'kernel': kernel,
                        **method._asdict(),
                        'error': f'{error:.4f} ± {deviation:.4f}',
                        'walk, ms': 1e3 * walk,
                        'multiply, ms': 1e3 * multiply,
                        **{f'{name} / plain': value / plain[name] for name, value in cost.items()},
                    }
                )
    note = (
        f'Errors on graphs of about {NODES} nodes, times on graphs of about {TIMED} nodes (random: degree {DEGREE}), W = '
        f'D^-1/2 A D^-1/2, p_halt = {P_HALT}. A chain (GRFs++, arXiv:2510.07716) has "stitch" independent walks of at '
        f'most "hops" hops, so only "hops" hops follow one after the other. "walks" are those per node, factor and '
        f'ensemble. With 2 "ensembles", the keys have other walks than the queries, and the estimate is unbiased but for '
        f'what short walks leave out of the series. "error": ||estimate - exact||_F / ||exact||_F, {trials} draws, mean '
        f'and standard error. The exact kernel has all powers. Times are those of the process on one thread: to draw the '
        f'walks, and to multiply {COLUMNS} columns by the mask. "first pass / plain" is error^2 times the time of both, '
        f'divided by the same for the first row of the graph and kernel, which is plain GRF. "later pass / plain" is the '
        f'same without drawing walks. The square of the error of walks is inverse to the time, so numbers below 1 are '
        f'better at equal time.'
    )
    write_table('stitching', 'Stitched walks compared with plain graph random features', note, rows, folder)


def _times(kind: str, size: int, repeats: int) -> dict[str, float]:
    r"""Returns the seconds that it takes to draw the walks, and to multiply by the mask."""
    graph, generator = make_graph(kind, size), torch.Generator().manual_seed(0)
    x = torch.rand(graph.num_nodes, 1, COLUMNS, generator=generator)
    functions: dict[str, Callable[[], object]] = {}
    for method in METHODS:
        mask = method.mask('heat:1')
        functions[f'walk {method}'] = partial(mask.prepare, graph, generator)
        functions[f'multiply {method}'] = partial(mask(graph, generator).apply, x)
    return interleaved_medians(functions, repeats, time.process_time)


class AssignedSampler(IIDSampler):
    r"""Pairs of walkers whose lengths are coupled: if the number of the first is in the quantile :math:`b`, that of the second
    is in the quantile :math:`\sigma(b)`.
    """

    paired = True
    #: The permutation :math:`\sigma`.
    order: Tensor

    def lengths(self, uniform: Uniform, walkers: Tensor, survival: Tensor) -> Tensor:
        second = walkers & 1
        numbers = uniform(0, walkers - second)
        partner = (self.order[(numbers * BINS).long()] + uniform(0, walkers)) / BINS
        numbers = torch.where(second == 1, partner, numbers)
        return torch.searchsorted(-survival[1:].to(numbers.dtype), -numbers)


@contextmanager
def _assigned(order: Tensor) -> Iterator[None]:
    r"""Adds the sampler with a permutation to those of the package."""
    AssignedSampler.order = order
    SAMPLERS['assigned'] = AssignedSampler
    try:
        yield
    finally:
        del SAMPLERS['assigned']


def _best_order(values: Matrix, f: Matrix) -> tuple[Tensor, float]:
    r"""Returns the permutation with the least variance, by linear assignment, and the cost of the reversal over its cost.

    The only terms of the variance that depend on the permutation are products of the expected features of both walkers given
    their quantiles, :math:`P_b = \sum_l f_l S_{l|b} / S_l W^l`. Their sum over all nodes is the trace of
    :math:`P_b F^2 P_{b'}` if the expectation :math:`F` replaces the other ensemble.
    """
    survival = GeometricLength(COUPLED_P_HALT).survival(len(f) - 1).numpy()
    given = np.clip(survival * BINS - np.arange(BINS)[:, None], 0, 1)
    powers = values ** np.arange(len(f))[:, None]
    expected = (given * f / survival) @ powers
    cost = (expected * (f @ powers) ** 2) @ expected.T
    places, order = linear_sum_assignment(cost)
    return torch.from_numpy(order), float(cost[places, ::-1].diagonal().sum() / cost[places, order].sum())


def _run_couplings(examples: list[Example], quick: bool, folder: Path) -> None:
    trials = 2 if quick else 10
    rows: list[dict[str, Any]] = []
    for example in tqdm(examples, desc='couplings'):
        for kernel in KERNELS:
            errors: dict[str, list[float]] = {}
            options: dict[str, Any] = {'modulation': kernel, 'independent_ensembles': True}
            plain = GRFMask(1, COUPLED_WALKS, COUPLED_P_HALT, HOPS, **options)
            best, reversal = _best_order(example.values, plain.f[0].double().numpy())
            with _assigned(best):
                for name in SAMPLERS:
                    mask = GRFMask(1, COUPLED_WALKS, COUPLED_P_HALT, HOPS, sampler=name, **options)
                    errors[name] = [example.error(mask, kernel, seed) for seed in range(trials)]
            rows += [
                {
                    'graph': example.kind,
                    'kernel': kernel,
                    'sampler': name,
                    'error': '{:.4f} ± {:.4f}'.format(*mean_error(measured)),
                    'reversal / assigned': reversal,
                    **compare([-x for x in measured], [-x for x in errors['iid']], 'below iid', name == 'iid', 4),
                }
                for name, measured in errors.items()
            ]
    note = (
        f'Plain graph random features of {COUPLED_WALKS} walks per node and ensemble, p_halt = {COUPLED_P_HALT}, at '
        f'most {HOPS} hops, two ensembles. All samplers make the same expected number of hops. "assigned" couples the '
        f'lengths of two walks by a permutation of {BINS} quantiles, an idea of "Variance-Reducing Couplings for '
        f'Random Features" (arXiv:2405.16541, abstract). The permutation is our derivation: it minimizes the variance '
        f'by linear assignment, given the exact spectrum of the graph. "reversal / assigned" compares the cost of the '
        f'reversal, which is the sampler "coupled" and needs no spectrum, with that of the best permutation: at 1, the '
        f'reversal is the best. "error" as in the table stitching, {trials} draws. "below iid" is the error of iid '
        f'minus that of the sampler, paired by seed.'
    )
    write_table('couplings', 'Couplings of walk lengths compared with the samplers of the package', note, rows, folder)
