#!/usr/bin/env bash
# graphlearning 1.7.5: eigen_decomp gives the eigenvalue 2 of a bipartite graph as 0, and spectral clustering of a grid is a chessboard.
#
# Expected: "Computes the low-lying eigenvectors and eigenvalues of various normalizations of the graph Laplacian", "eigenvalues in
# increasing order" (docstring of graph.eigen_decomp, jwcalder.github.io/GraphLearning/graph.html). A connected graph has the eigenvalue 0
# once. For v and its value, L v = value * v.
# Seen: for 'normalized' and 'randomwalk', graph.py takes 1 - s for the singular values s of D^-1/2 W D^-1/2. They are the absolute values
# of its eigenvalues: an eigenvalue 1 - m becomes 1 - |1 - m|, and any m above 1 is returned as 2 - m. The library's own grid_graph is
# bipartite: each eigenvalue below 1 comes twice, and the vectors solve no equation. clustering.spectral(W, 2) of two grids with one edge
# between them gives the two colors of a chessboard in many runs, instead of the two grids. diffusion_map has the same eigenvalues.
# 'combinatorial' is right, as is the branch for gamma > 0, for gamma near 0.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet numpy==2.4.6 scipy==1.17.1 scikit-learn==1.9.1 matplotlib==3.11.2
"$folder/venv/bin/pip" install --quiet --no-deps graphlearning==1.7.5
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import graphlearning as gl
import numpy as np

print(f'graphlearning {version("graphlearning")}')
grid = gl.weightmatrix.grid_graph(5, 6)
graph = gl.graph(grid)


def laplacian(w, norm):
    w = w.toarray()
    d = w.sum(1)
    if norm == 'combinatorial':
        return np.diag(d) - w
    if norm == 'randomwalk':
        return np.eye(len(w)) - w / d[:, None]
    return np.eye(len(w)) - w / np.sqrt(np.outer(d, d))


def residuals(matrix, values, vectors):
    return np.linalg.norm(matrix @ vectors - vectors * values, axis=0) / np.linalg.norm(vectors, axis=0)


for norm in ('normalized', 'randomwalk', 'combinatorial'):
    matrix = laplacian(grid, norm)
    right = np.sort(np.linalg.eigvals(matrix).real)
    values, vectors = graph.eigen_decomp(normalization=norm, k=4)
    worst = residuals(matrix, values, vectors).max()
    other, _ = graph.eigen_decomp(normalization=norm, k=4, gamma=1e-12)
    print(f'{norm}: {abs(values).round(4)}, right {abs(right[:4]).round(4)}, largest |L v - value v| / |v| {worst:.2f}, '
          f'with gamma=1e-12 {other.round(4)}')  # fmt: skip
    assert np.allclose(other, right[:4], atol=1e-6), 'this has changed'
    if norm == 'combinatorial':
        assert np.allclose(values, right[:4]) and worst < 1e-6, 'this has changed'
    else:
        folded = np.sort(1 - abs(1 - right))[:4]
        assert np.allclose(values, folded, atol=1e-6) and values[1] < 1e-6 < 0.05 < right[1] and worst > 0.1, 'this has changed'

values, _ = graph.diffusion_map(d=4, full=True)
print(f'diffusion_map: {abs(values).round(4)}')
assert values[1] < 1e-6, 'this has changed'

two = np.kron(np.eye(2), grid.toarray())
two[29, 30] = two[30, 29] = 1
sides = np.arange(60) // 30
by_definition = np.linalg.eigh(laplacian(gl.graph(two).weight_matrix, 'normalized'))[1][:, 1]
right = max(np.mean((by_definition > 0) == sides), np.mean((by_definition < 0) == sides))
agreement = []
for _ in range(20):
    seen = gl.clustering.spectral(two, num_clusters=2).fit_predict()
    agreement.append(round(gl.clustering.clustering_accuracy(seen, sides)))
print(f'two grids: in the right cluster by the sign of the second eigenvector {right:.0%}, by clustering.spectral in 20 runs {agreement} %')
assert right == 1 and min(agreement) < 80, 'this has changed'
PY
