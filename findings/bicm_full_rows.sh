#!/usr/bin/env bash
# bicm 3.4.0: every pair with a row that is linked to all columns is validated, as the fitness of that row is taken for 0.
#
# Expected: compute_projection validates pairs that have more common neighbors than in the bipartite configuration model. A row
# linked to all columns has link probabilities of 1, as get_bicm_matrix says. So its expected number of common neighbors with a
# row of degree k is k, which is also the observed number. The p-value is near 1/2, and no such pair is validated.
# Seen: the fitnesses x of such rows are not solved for and stay 0, and x y / (1 + x y) in the p-values is 0. No common
# neighbor is expected, so that the p-value of each such pair is 0. A row linked to all columns is linked to all rows in the
# projection.
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
matrix = (rng.random((10, 60)) < rng.uniform(0.2, 0.6, (10, 1))).astype(int)


def upper_tail(probabilities, observed):
    distribution = np.ones(1)  # of a sum of independent values of 0 or 1
    for p in probabilities:
        distribution = np.convolve(distribution, [1 - p, p])
    return distribution[observed:].sum()


for name, full in (('degree 59', 59), ('degree 60, all columns', 60)):
    matrix[9] = np.arange(60) < full
    for method in ('poibin', 'poisson'):
        graph = BipartiteGraph(biadjacency=matrix.copy())
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            graph.solve_tool()
            graph.compute_projection(rows=True, alpha=0.05, approx_method=method, threads_num=1)
        model = graph.get_bicm_matrix()
        right = np.array([upper_tail(model[i] * model[9], matrix[i] @ matrix[9]) for i in range(9)])
        seen = np.array([graph.rows_pvals[i][9] for i in range(9)])
        validated = sum(9 in graph.projected_rows_adj_list.get(i, []) for i in range(9))
        print(f'last row of {name}, {method}: p-values of its pairs {seen.min():.3f} to {seen.max():.3f}, by the definition '
              f'{right.min():.3f} to {right.max():.3f}, validated pairs {validated} of 9')  # fmt: skip
        assert np.allclose(model.sum(1), matrix.sum(1), atol=1e-3) and right.min() > 0.05
        if full < 60:
            assert validated == 0 and (method == 'poisson' or np.allclose(seen, right, atol=1e-6))
        else:
            assert np.allclose(model[9], 1) and right.min() > 0.4
            assert (seen == 0).all() and validated == 9 and graph.x[9] == 0, 'this has changed'
PY
