r"""Graph random features projected by a Gaussian matrix, compared with fewer walks at equal cost."""

from __future__ import annotations

import math
import statistics
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from benchmarks.candidates.errors import SEEDS, Errors, compared, relative_error
from benchmarks.harness import write_table
from benchmarks.stitching import Example
from pyg_topomask.masks import GRFMask, modulation

__all__ = ['run']

WALKS, HOPS, P_HALT = 16, 32, 0.05
#: Times of heat kernels.
TIMES = (0.25, 10)
#: Seeds by the number of nodes.
SIZES = {400: SEEDS, 1600: 5}


def projected(features: tuple[Tensor, Tensor], rank: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    r"""Returns features of queries and keys, projected to a rank by a Gaussian matrix (Johnson-Lindenstrauss). The product of
    the projected features has the same expectation.
    """
    left, right = features
    matrix = torch.randn(left.size(1), rank, generator=generator, dtype=left.dtype) / math.sqrt(rank)
    return left @ matrix, right @ matrix


def _walk_features(example: Example, kernel: str, walks: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    r"""Returns the features of two ensembles of walks as dense matrices."""
    mask = GRFMask(1, walks, P_HALT, HOPS, kernel, independent_ensembles=True)
    state = mask.prepare(example.graph, generator)
    series = modulation(kernel, HOPS).float().unsqueeze(0)
    matrices = torch.zeros(2, example.graph.num_nodes, example.graph.num_nodes, dtype=torch.float64)
    for matrix, side in zip(matrices, (state.query, state.key), strict=True):
        matrix[side.pattern.row.long(), side.pattern.col.long()] = side.values(series)[0].double()
    return matrices[0], matrices[1]


def _chains(example: Example, kernel: str, walks: int, generator: torch.Generator) -> tuple[Tensor, float]:
    r"""Returns the estimate of stitched walks, and the numbers per row of half of its factors."""
    mask = GRFMask(1, walks, P_HALT, HOPS // 4, kernel, stitch=4, independent_ensembles=True)
    state = mask.prepare(example.graph, generator)
    count = sum(side.pattern.nnz for factor in (state, *state.stitched) for side in (factor.query, factor.key))
    return mask.bind(example.graph, state).to_dense()[0].double(), count / (2 * example.graph.num_nodes)


def _estimates(example: Example, kernel: str, seed: int) -> dict[str, tuple[Tensor, float]]:
    r"""Returns estimates of a kernel, each with the numbers that a row of its factors keeps."""
    generator = torch.Generator().manual_seed(seed)
    plain = _walk_features(example, kernel, WALKS, generator)
    count = sum(int(side.count_nonzero()) for side in plain) / (2 * example.graph.num_nodes)
    estimates = {f'GRF, {WALKS} walks': (plain[0] @ plain[1].t(), count)}
    for walks in (WALKS // 4, WALKS):
        estimates[f'GRF, chains of 4, {walks} walks'] = _chains(example, kernel, walks, generator)
    for walks in (WALKS, 4 * WALKS, 16 * WALKS):
        features = plain if walks == WALKS else _walk_features(example, kernel, walks, generator)
        for times, cost in ((1, 'operations'), (2, 'bytes')):
            rank = round(times * count)
            left, right = projected(features, rank, generator)
            estimates[f'projection of {walks} walks, equal {cost}'] = left @ right.t(), rank
    return estimates


@torch.no_grad()
def run(quick: bool, folder: Path) -> None:
    rows: list[dict[str, object]] = []
    for kind, size in tqdm([(kind, size) for size in SIZES for kind in ('grid', 'ring', 'random')], desc='projections'):
        example = Example.of(kind, size // 4 if quick else size)
        for scale in TIMES:
            exact = torch.from_numpy((example.vectors * np.exp(scale * (example.values - 1))) @ example.vectors.T)
            errors: dict[str, Errors] = {}
            counts: dict[str, list[float]] = {}
            for seed in range(2 if quick else SIZES[size]):
                for name, (estimate, count) in _estimates(example, f'heat:{scale:g}', seed).items():
                    errors.setdefault(name, []).append(relative_error(estimate, exact))
                    counts.setdefault(name, []).append(count)
            rows += [
                {
                    'graph': kind,
                    'nodes': example.graph.num_nodes,
                    'kernel': f'heat:{scale:g}',
                    'method': name,
                    'numbers per row': f'{statistics.mean(counts[name]):.1f}',
                    'operations per node and column': round(4 * statistics.mean(counts[name])),
                    **compared(values, errors[f'GRF, {WALKS} walks']),
                }
                for name, values in errors.items()
            ]
    note = (
        f'Heat kernels exp(-t L) of the normalized Laplacian (random graphs: degree 6), estimated from walks of at most {HOPS} '
        f'hops, p_halt = {P_HALT}, two ensembles, in float64. Chains are stitched walks of at most {HOPS // 4} hops (option '
        f'stitch). A projection multiplies the features by a matrix of N x rank independent Gaussian numbers of variance '
        f'1 / rank. "Equal operations": its rank is the number of features per row of {WALKS} walks, so that a product with a '
        f'column costs the same. "Equal bytes": twice this rank, because a sparse feature also has an index. Not counted: a '
        f'projection of more walks takes as many more hops, and every projection takes 2 * features * rank operations per '
        f'node, once per set of coefficients. {SIZES[400]} seeds at 400 nodes, {SIZES[1600]} at 1600; relative error is '
        f'||estimate - exact||_F / ||exact||_F, mean ± standard error; differences are paired by seed, and below two standard '
        f'errors "not distinguishable".'
    )
    write_table('candidates_projections', 'Gaussian projections of graph random features', note, rows, folder)
