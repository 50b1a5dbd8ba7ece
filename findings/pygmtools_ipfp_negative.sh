#!/usr/bin/env bash
# pygmtools 0.6.0: IPFP returns its starting point, which is no matching, if the score of all matchings is -1 or less.
#
# Expected: ipfp solves Lawler's quadratic assignment problem, of the largest vec(X)^T K vec(X): "The output is a discrete
# matching matrix (i.e. permutation matrix)". For graphs of the same size, a constant added to all of K adds the same to the
# score of each permutation, so that the best one stays the best one. Costs are negative affinities.
# Seen: the best score starts at -1 and not at minus infinity. Scores of -1 or less never count as better, and the result is the
# starting point, 1 / (n1 * n2) in all entries, without a warning. The test of convergence also divides by the score without
# taking its absolute value, and stops at once if it is negative.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pygmtools==0.6.0 numpy==2.4.6 scipy==1.17.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version
from itertools import permutations

import numpy as np
import pygmtools

print(f'pygmtools {version("pygmtools")}')
pygmtools.set_backend('numpy')
rng = np.random.default_rng(0)
n = 5
first = rng.random((n, n))
first += first.T
truth = np.eye(n)[rng.permutation(n)]
second = truth.T @ first @ truth
# By columns: entry (a * n + i, b * n + j) is for i with a, and j with b.
cost = (first[None, :, None, :] - second[:, None, :, None]).reshape(n * n, n * n) ** 2


def score(x, k):
    v = x.T.ravel()
    return v @ k @ v


similar = np.exp(-cost / 0.01)
for name, k in (('similarity', similar), ('similarity - 0.5', similar - 0.5), ('similarity - 1', similar - 1),
                ('similarity - 2', similar - 2), ('negative cost', -cost), ('negative cost - 1', -cost - 1)):  # fmt: skip
    best = max((np.eye(n)[list(p)] for p in permutations(range(n))), key=lambda x: score(x, k))
    seen = pygmtools.ipfp(k, n, n)
    kind = 'a permutation' if set(seen.ravel()) == {0, 1} and (seen.sum(0) == 1).all() else f'{np.unique(seen)} in all entries'
    print(f'{name}: {kind}, right: {np.array_equal(seen, truth)}. Best score of all permutations {score(best, k):.2f}')
    assert np.array_equal(best, truth), 'this has changed'
    assert np.allclose(seen, 1 / n**2) == (score(best, k) < -1), 'this has changed'
    assert (name != 'similarity') or np.array_equal(seen, truth), 'this has changed'
PY
