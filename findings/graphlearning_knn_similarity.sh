#!/usr/bin/env bash
# graphlearning 1.7.5: knnsearch with similarity='dot' returns the least similar of its candidates, and knn with eta raises an error.
#
# Expected: similarity 'dot' is one of the choices of a "k-nearest neighbor" search (docstring of weightmatrix.knnsearch,
# jwcalder.github.io/GraphLearning/weightmatrix.html). Annoy, which runs it, gives the largest inner products first. For eta, "If provided,
# this overrides the kernel option and instead uses the weights" eta(|x_i - x_j|^2 / d_k(x_i)^2) (docstring of weightmatrix.knn).
# Seen: knnsearch asks Annoy for 2 k candidates, the largest inner products, sorts them by the inner product as if it was a distance, and
# keeps the first k: the smaller half. None of the k most similar points is left. knn divides a matrix (n, k + 1) by a vector (n), instead
# of a column: a ValueError, even for the eta of the default kernel. If n is k + 1, there is no error, but the distance is divided by
# that of the other point, and the weights are wrong.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet numpy==2.4.6 scipy==1.17.1 scikit-learn==1.9.1 matplotlib==3.11.2 annoy==1.17.3
"$folder/venv/bin/pip" install --quiet --no-deps graphlearning==1.7.5
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from graphlearning.weightmatrix import knn, knnsearch

print(f'graphlearning {version("graphlearning")}')
rng = np.random.default_rng(0)
k, points = 5, rng.normal(size=(60, 8))
product = points @ points.T
right = np.argsort(-product, axis=1)[:, :k]
for similarity in ('euclidean', 'dot'):
    index, values = knnsearch(points, k, similarity=similarity)
    if similarity == 'euclidean':
        best = np.argsort(np.linalg.norm(points[:, None] - points, axis=2), axis=1)[:, :k]
    else:
        best = right
    shared = np.mean([len(set(a) & set(b)) / k for a, b in zip(index.tolist(), best.tolist())])
    print(f'{similarity}: {shared:.0%} of the {k} nearest are found. Of point 0: {values[0].round(2)}')
    assert shared > 0.95 if similarity == 'euclidean' else shared < 0.05, 'this has changed'
print(f'largest inner products of point 0: {product[0, right[0]].round(2)}')


def eta(t):
    return np.exp(-4 * t)


def weights(points, k):
    """By the definition, for k neighbors."""
    square = ((points[:, None] - points) ** 2).sum(2)
    order = np.argsort(square, axis=1)
    result = np.zeros_like(square)
    for i, row in enumerate(order):
        for j in row[1:k + 1]:
            result[i, j] = eta(square[i, j] / square[i, row[k]])
    return result


points = rng.random((50, 3))
assert np.allclose(knn(points, k, symmetrize=False).toarray(), weights(points, k))
try:
    knn(points, k, eta=eta, symmetrize=False)
except ValueError as e:
    print(f'knn of 50 points, with the eta of the kernel: {e}')
else:
    raise AssertionError('this has changed')

points = points[:k + 1]
seen = knn(points, k, eta=eta, symmetrize=False).toarray()
print(f'knn of {k + 1} points: first row {seen[0].round(3)}, right {weights(points, k)[0].round(3)}')
assert np.allclose(knn(points, k, symmetrize=False).toarray(), weights(points, k)), 'this has changed'
assert abs(seen - weights(points, k)).max() > 0.05, 'this has changed'
PY
