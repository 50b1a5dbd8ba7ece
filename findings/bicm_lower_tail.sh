#!/usr/bin/env bash
# bicm 3.4.0: p-values of projections by the normal approximations are of the lower tail, so that significance is inverted.
#
# Expected: the p-value of a pair in a projection is the probability of at least the observed number of common neighbors, under
# the bipartite configuration model. "Implemented methods are *poisson*, *poibin*, *normal*, *rna*", which are "Method for the
# approximation of the pvalues computation". The first two give this upper tail.
# Seen: normal and rna return the distribution function at the observed number, so about 1 minus the p-value. Pairs with far
# too many common neighbors have p-values near 1. Pairs with far too few are validated as similar, and the others are not.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet bicm==3.4.0 numpy==2.4.6 scipy==1.17.1 numba==0.68.1 llvmlite==0.50.0 \
    tqdm==4.70.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
import contextlib
import io
from importlib.metadata import version

import numpy as np
from bicm import BipartiteGraph

print(f'bicm {version("bicm")}')
rng = np.random.default_rng(0)
matrix = (rng.random((12, 80)) < rng.uniform(0.2, 0.6, (12, 1))).astype(int)
matrix[1] = np.where(rng.random(80) < 0.9, matrix[0], matrix[1])  # similar to row 0
matrix[3] = np.where(rng.random(80) < 0.8, 1 - matrix[2], matrix[3])  # nearly disjoint from row 2


def upper_tail(probabilities, observed):
    distribution = np.ones(1)  # of a sum of independent values of 0 or 1
    for p in probabilities:
        distribution = np.convolve(distribution, [1 - p, p])
    return distribution[observed:].sum()


results, right = {}, None
for method in ('poibin', 'normal', 'rna'):
    graph = BipartiteGraph(biadjacency=matrix.copy())
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        graph.solve_tool()
        graph.compute_projection(rows=True, alpha=0.05, approx_method=method, threads_num=1)
    model = graph.get_bicm_matrix()
    assert np.allclose(model.sum(1), matrix.sum(1), atol=1e-3) and np.allclose(model.sum(0), matrix.sum(0), atol=1e-3)
    right = {(i, j): upper_tail(model[i] * model[j], matrix[i] @ matrix[j]) for i in range(12) for j in range(i + 1, 12)
             if matrix[i] @ matrix[j] > 0}  # fmt: skip
    results[method] = np.array([graph.rows_pvals[i][j] for i, j in right])
    pairs = sorted((int(i), int(j)) for i, row in graph.projected_rows_adj_list.items() for j in row)
    print(f'{method}: p-values {graph.rows_pvals[0][1]:.4f} and {graph.rows_pvals[2][3]:.4f}, by the definition '
          f'{right[0, 1]:.4f} and {right[2, 3]:.4f}, validated pairs {pairs}')  # fmt: skip
    assert right[0, 1] < 1e-4 and right[2, 3] > 0.99
    assert ((0, 1) in pairs) == (method == 'poibin') and ((2, 3) in pairs) == (method != 'poibin'), 'this has changed'
right = np.array(list(right.values()))
assert np.allclose(results['poibin'], right, atol=1e-6)
for method in ('normal', 'rna'):
    change = np.corrcoef(results[method], right)[0, 1]
    print(f'{method}: correlation with the right p-values {change:.3f}')
    assert change < -0.95, 'this has changed'
PY
