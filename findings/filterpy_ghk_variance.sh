#!/usr/bin/env bash
# filterpy 2.0.0: variance reduction factors of the g-h-k filter are wrong, and may be negative.
#
# Expected: GHKFilter.VRF returns "the Variance Reduction Factor (VRF) of the state variable of the filter (x) and its
# derivatives (dx, ddx)": VAR of each of these for noise of variance 1. GHKFilter.VRF_prediction is that of the prediction of
# the next x.
# Seen: the first two of the three factors are wrong. For g, h and k of optimal_noise_smoothing(0.5), the variance of x is said
# to be -0.68, and it is 0.44. The factor of dx is half of what is right for dt = 1, and does not depend on dt. That of the
# prediction is too small by a third. Denominators of the formulas differ from those of the third factor. The factors of
# GHFilter are right.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet filterpy==2.0.0 numpy==2.4.6 scipy==1.17.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from filterpy.gh import GHFilter, GHKFilter, critical_damping_parameters, optimal_noise_smoothing

print(f'filterpy {version("filterpy")}')


def by_recursion(make, size, dt):
    """A step is x' = A x + b z. The covariance C for noise z of variance 1 solves C = A C A^T + b b^T."""
    columns = []
    for state, z in [*((row, 0.0) for row in np.eye(size)), (np.zeros(size), 1.0)]:
        ghk = make(*state)
        ghk.update(z)
        columns.append([ghk.x, ghk.dx, ghk.ddx] if size == 3 else [ghk.x, ghk.dx])
    a, b = np.array(columns[:-1]).T, np.array(columns[-1])
    covariance = np.linalg.solve(np.eye(size**2) - np.kron(a, a), np.outer(b, b).ravel()).reshape(size, size)
    ahead = np.array([1, dt, dt**2 / 2])[:size]
    return np.diag(covariance), ahead @ covariance @ ahead


for dt in (1.0, 0.5):
    right, prediction = by_recursion(lambda x, dx: GHFilter(x, dx, dt, 0.6, 0.2), 2, dt)
    gh = GHFilter(0, 0, dt, 0.6, 0.2)
    print(f'g-h, dt {dt}: VRF {np.round(gh.VRF(), 4)}, by the recursion {right.round(4)}. '
          f'Prediction {gh.VRF_prediction():.4f}, by the recursion {prediction:.4f}')  # fmt: skip
    assert np.allclose(gh.VRF(), right) and np.isclose(gh.VRF_prediction(), prediction), 'this has changed'
    for g, h, k in (optimal_noise_smoothing(0.5), critical_damping_parameters(0.5, order=3)):
        right, prediction = by_recursion(lambda x, dx, ddx: GHKFilter(x, dx, ddx, dt, g, h, k), 3, dt)
        ghk = GHKFilter(0, 0, 0, dt, g, h, k)
        seen = np.array(ghk.VRF())
        print(f'g-h-k, dt {dt}, g {g:.3f}, h {h:.3f}, k {k:.3f}: VRF {seen.round(4)}, by the recursion {right.round(4)}. '
              f'Prediction {ghk.VRF_prediction():.4f}, by the recursion {prediction:.4f}')  # fmt: skip
        assert seen[0] < 0 < right[0] and np.isclose(seen[1], right[1] * dt**2 / 2), 'this has changed'
        assert np.isclose(seen[2], right[2]) and ghk.VRF_prediction() < 0.7 * prediction, 'this has changed'
PY
