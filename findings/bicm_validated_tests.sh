#!/usr/bin/env bash
# bicm 3.4.0: get_validated_matrix corrects for the number of pairs of columns, not for the number of entries that it tests.
#
# Expected: get_validated_matrix is to "extract a backbone of the original network keeping only the most significant links". It
# has a p-value per entry of the matrix, and "'fdr' for False Discovery Rate or 'bonferroni' for Bonferroni correction". So the
# number of tests is that of rows times that of columns. Bonferroni keeps entries with p <= alpha divided by it.
# Seen: the number of tests is that of projections, n (n - 1) / 2 with n columns. For 400 rows and 40 columns, it is 780
# instead of 16000. For the same matrix transposed, it is 79800. So a network and its transpose have different backbones.
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
matrix = rng.geometric(1 / (1 + np.outer(rng.uniform(0.2, 0.8, 400), rng.uniform(0.2, 0.8, 40)))) - 1
matrix[np.arange(80), np.arange(80) % 40] += rng.integers(4, 20, 80)  # significant entries


def fdr(values, alpha):
    """The largest p-value p_(k) with p_(k) <= k alpha / n, by Benjamini and Hochberg."""
    values = np.sort(values)
    below = np.flatnonzero(values <= np.arange(1, values.size + 1) * alpha / values.size)
    return values[below[-1]] if below.size else -1


counts = {}
for name, weights in (('400 rows and 40 columns', matrix), ('transposed', matrix.T)):
    graph = BipartiteGraph(biadjacency=weights.copy())
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        graph.solve_tool()
        values = graph.get_weighted_pvals_mat()
        seen = {method: graph.get_validated_matrix(0.05, method) for method in ('bonferroni', 'fdr')}
    # By the model, entries are geometric with means m of the sums of the matrix, and P(at least w) = (m / (1 + m))^w.
    product = np.outer(graph.x, graph.y)
    assert np.allclose((product / (1 - product)).sum(1), weights.sum(1), rtol=1e-3) and np.allclose(values, product**weights)
    right = {'bonferroni': values <= 0.05 / weights.size, 'fdr': values <= fdr(values.ravel(), 0.05)}
    for method in seen:
        counts[name, method] = int(seen[method].sum()), int(right[method].sum())
        print(f'{name}, {method}: {counts[name, method][0]} entries kept, by the definition {counts[name, method][1]}')
    columns = weights.shape[1]
    pairs = columns * (columns - 1) / 2
    assert np.array_equal(seen['bonferroni'], values <= 0.05 / pairs), 'this has changed'
for method in ('bonferroni', 'fdr'):
    (first, right), (second, other) = counts['400 rows and 40 columns', method], counts['transposed', method]
    assert right == other and first > right > second, 'this has changed'
PY
