#!/usr/bin/env bash
# hyppo 0.5.2: Energy with bias=True scales the square root of the distance covariance instead of the distance covariance.
#
# Expected: the documented equation of Energy, which is twice the mean distance between samples, minus the mean distances
# within both. With bias=True, "the biased [...] test statistics", means of distances include those of points to themselves, as
# in this equation.
# Seen: _dcov(bias=True) returns the root of the mean of products, which is then multiplied by (n + m)^4 / (2 n^2 m^2), a
# factor for the mean itself. The result is another multiple for each data set. If all values are multiplied by 4, it doubles.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet hyppo==0.5.2 numpy==2.4.6 scipy==1.17.1 numba==0.68.1 llvmlite==0.50.0 \
    scikit-learn==1.9.1 autograd==1.9.1 statsmodels==0.15.0 patsy==1.0.3 pandas==3.1.1 future==1.0.0
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from hyppo.ksample import Energy

print(f'hyppo {version("hyppo")}')


def by_definition(x, y):
    between, first, second = (np.linalg.norm(a[:, None] - b, axis=2).mean() for a, b in ((x, y), (x, x), (y, y)))
    return 2 * between - first - second


rng = np.random.default_rng(0)
x, y = rng.normal(size=(12, 2)), rng.normal(size=(15, 2)) + 0.5
ratios = []
for name, scale, shift in (('samples', 1, 0), ('values times 4', 4, 0), ('values times 16', 16, 0), ('shifted by 3', 1, 3)):
    a, b = scale * x, scale * y + shift
    seen, right = float(Energy(bias=True).statistic(a, b)), by_definition(a, b)
    factor = 27**4 / (2 * 12**2 * 15**2)
    ratios.append(seen / right)
    print(f'{name}: {seen:.4f}, by the equation {right:.4f}, ratio {ratios[-1]:.3f}')
    assert np.isclose(seen, np.sqrt(right / factor) * factor), 'this has changed'
assert max(ratios) > 3 * min(ratios), 'this has changed'
PY
