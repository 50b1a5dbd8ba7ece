#!/usr/bin/env bash
# pykrige 1.7.3: the fit statistics Q1, Q2 and cR are divided by the number of data minus 2 instead of minus 1.
#
# Expected: get_statistics "returns the Q1, Q2, and cR statistics for the variogram fit", as of Kitanidis. There, Q1 and Q2 are
# the means of the n - 1 normalized residuals of n data, and of their squares, as the first of the data has no residual. cR is
# Q2 times the geometric mean of the variances. "Q2 is close to 1" if the variogram fits.
# Seen: the array of residuals already has n - 1 entries, and 1 is subtracted again. So each statistic is too large by (n - 1)
# / (n - 2): by a tenth for 12 data. Q2 so is above 1 for a right variogram. The residuals themselves are right.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pykrige==1.7.3 numpy==2.4.6 scipy==1.17.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from pykrige.ok import OrdinaryKriging

print(f'pykrige {version("pykrige")}')
slope, nugget = 0.3, 0.2


def variogram(distance):
    return np.where(distance > 0, slope * distance + nugget, 0)


def residuals(x, y, z):
    """Of each value from those before it, by ordinary kriging."""
    result = []
    for i in range(1, len(z)):
        points = np.column_stack([x[:i], y[:i]])
        matrix = np.ones((i + 1, i + 1))
        matrix[:i, :i] = variogram(np.linalg.norm(points[:, None] - points, axis=2))
        matrix[i, i] = 0
        target = np.append(variogram(np.hypot(x[:i] - x[i], y[:i] - y[i])), 1)
        weights = np.linalg.solve(matrix, target)
        result.append((z[i] - weights[:i] @ z[:i], weights @ target))
    difference, variance = np.array(result).T
    return difference / np.sqrt(variance), variance


for n in (4, 12, 40):
    rng = np.random.default_rng(n)
    x, y = rng.uniform(0, 10, (2, n))
    z = rng.normal(size=n)
    kriging = OrdinaryKriging(x, y, z, variogram_model='linear', variogram_parameters={'slope': slope, 'nugget': nugget},
                              enable_statistics=True)  # fmt: skip
    normalized, variance = residuals(x, y, z)
    q1, q2 = abs(normalized.mean()), (normalized**2).mean()
    right = np.array([q1, q2, q2 * np.exp(np.log(variance).mean())])
    seen = np.array(kriging.get_statistics())
    print(f'{n} data: Q1, Q2 and cR {seen.round(4)}, by the definition {right.round(4)}')
    assert np.allclose(kriging.epsilon, normalized) and len(normalized) == n - 1
    assert np.allclose(seen, right * (n - 1) / (n - 2)), 'this has changed'
PY
