#!/usr/bin/env bash
# bicm 3.4.0: p-values of a binary matrix are products of fitnesses, which can exceed 1, instead of link probabilities.
#
# Expected: get_weighted_pvals_mat is to "Return the pvalues matrix representing the significance of the original matrix". For
# a binary matrix, the probability of at least the observed entry is the link probability for 1, and 1 for 0. The code has this
# as avg_mat ** biadjacency, if the graph is not weighted.
# Seen: the next line, which is for weights, is not in an else branch and overwrites it by (x y) ** biadjacency. In the binary
# model, x y is p / (1 - p). For a link of probability 0.8, the p-value is 4, and for one of 0.3 it is 0.43.
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
matrix = (rng.random((10, 30)) < np.clip(np.outer(rng.uniform(0.3, 1, 10), rng.uniform(0.3, 1, 30)) * 1.2, 0, 0.95)).astype(int)
graph = BipartiteGraph(biadjacency=matrix.copy())
with contextlib.redirect_stdout(io.StringIO()):
    graph.solve_tool()
    seen = graph.get_weighted_pvals_mat()
    model = graph.get_bicm_matrix()
assert np.allclose(model.sum(1), matrix.sum(1), atol=1e-3) and np.allclose(model.sum(0), matrix.sum(0), atol=1e-3)
assert (model > 0).all() and (model < 1).all()
right = np.where(matrix == 1, model, 1.0)
print(f'p-values of entries of 1: {seen[matrix == 1].min():.3f} to {seen[matrix == 1].max():.3f}, {np.sum(seen > 1)} exceed 1')
print(f'by the definition: {right[matrix == 1].min():.3f} to {right[matrix == 1].max():.3f}')
largest = np.unravel_index(seen.argmax(), seen.shape)
print(f'for the link of the probability {model[largest]:.3f}: {seen[largest]:.3f}')
assert np.allclose(seen, np.where(matrix == 1, model / (1 - model), 1)) and np.sum(seen > 1.01) > 10, 'this has changed'
assert not np.allclose(seen, right) and right.max() <= 1
PY
