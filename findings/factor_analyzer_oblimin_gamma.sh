#!/usr/bin/env bash
# factor_analyzer 0.5.1: the oblimin rotation with a gamma other than 0 leaves the loadings nearly as they are.
#
# Expected: gamma is "the gamma level for the oblimin objective". In GPArotation, from which the rotations "are ported", the
# criterion is the sum over pairs of factors of sum(a b) - gamma / p sum(a) sum(b), with their squared loadings a and b of p
# variables. gamma = 0 is quartimin, and small values of gamma give rotations near to it.
# Seen: for gamma other than 0, the matrix I - gamma / p is built as np.diag(np.full(1, p)) - np.zeros((p, p)), which is p
# everywhere. The criterion is then the sum of all squared loadings, times p. All values of gamma other than 0 give the same
# loadings, which are nearly those before the rotation.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet factor_analyzer==0.5.1 numpy==2.4.6 scipy==1.17.1 pandas==2.3.3 scikit-learn==1.7.2 \
  setuptools==80.9.0
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from factor_analyzer import Rotator

print(f'factor_analyzer {version("factor_analyzer")}')
rng = np.random.default_rng(0)

truth = np.zeros((9, 3))
truth[:3, 0], truth[3:6, 1], truth[6:, 2] = 0.8, 0.6, 0.9
correlation = np.array([[1, 0.5, 0.1], [0.5, 1, 0.3], [0.1, 0.3, 1]])
start = truth @ np.linalg.cholesky(correlation) @ np.linalg.qr(rng.normal(size=(3, 3)))[0]
p = len(start)


def by_definition(gamma):  # the algorithm of GPFoblq, with the criterion of oblimin
    def objective(loadings):
        x = (np.eye(p) - gamma / p) @ loadings**2 @ (1 - np.eye(3))
        return loadings * x, (loadings**2 * x).sum() / 4

    rotation, step = np.eye(3), 1.0
    for _ in range(3000):
        loadings = start @ np.linalg.inv(rotation).T
        gradient, value = objective(loadings)
        gradient = -(loadings.T @ gradient @ np.linalg.inv(rotation)).T
        projected = gradient - rotation * (rotation * gradient).sum(0)
        step, size = 2 * step, (projected**2).sum()
        for _ in range(30):
            new = rotation - step * projected
            new /= np.sqrt((new**2).sum(0))
            if value - objective(start @ np.linalg.inv(new).T)[1] > 0.5 * size * step:
                rotation = new
                break
            step /= 2
    return start @ np.linalg.inv(rotation).T


for gamma in (0, -0.01, -0.5):
    seen, right = Rotator('oblimin', gamma=gamma).fit_transform(start), by_definition(gamma)
    print(f'gamma {gamma}: first row {seen[0].round(3)}, by the definition {right[0].round(3)}, before {start[0].round(3)}')
    if gamma:
        assert np.abs(seen - start).max() < 0.06 and np.abs(seen - right).max() > 0.2, 'this has changed'
        assert np.allclose(seen, Rotator('oblimin', gamma=0.3).fit_transform(start)), 'this has changed'
        assert np.abs(right - by_definition(0)).max() < (0.02 if gamma == -0.01 else 0.3)
    else:
        assert np.allclose(seen, right, atol=1e-3), 'this has changed'
PY
