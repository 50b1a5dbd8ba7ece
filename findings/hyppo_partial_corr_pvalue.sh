#!/usr/bin/env bash
# hyppo 0.5.2: p-values of PartialCorr are half of those of the t-test that it documents, so never above 0.5.
#
# Expected: "The partial correlation test is implemented as a t-test". With auto=True, "the p-value is computed by
# t-distribution approximation". Its statistic t enters by its absolute value, which is two-sided: p = 2 P(T > |t|).
# Independent variables have uniform p-values, below 0.05 in 5 % of cases.
# Seen: the p-value is P(T > |t|), without the factor 2. It is between 0 and 0.5, and independent variables are found dependent
# at level 0.05 in 10 % of cases.
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
from hyppo.conditional import PartialCorr
from scipy.stats import t

print(f'hyppo {version("hyppo")}')


def by_definition(x, y, z):
    """The p-value of the coefficient of x in the regression of y on 1, x and z."""
    design = np.column_stack([np.ones_like(z), x, z])
    coefficients, residuals = np.linalg.lstsq(design, y, rcond=None)[:2]
    variance = residuals[0] / (len(y) - 3) * np.linalg.inv(design.T @ design)[1, 1]
    return 2 * t.sf(abs(coefficients[1]) / np.sqrt(variance), len(y) - 3)


rng = np.random.default_rng(0)
seen, right = [], []
for _ in range(1000):
    z = rng.normal(size=60)
    x, y = z + rng.normal(size=60), z + rng.normal(size=60)  # independent, given z
    seen.append(PartialCorr().test(x, y, z).pvalue)
    right.append(by_definition(x, y, z))
seen, right = np.array(seen), np.array(right)
print(f'p < 0.05 in {np.mean(seen < 0.05):.3f} of 1000 cases, by the t-test {np.mean(right < 0.05):.3f}')
print(f'largest p-value {seen.max():.3f}, by the t-test {right.max():.3f}')
assert np.allclose(2 * seen, right) and seen.max() <= 0.5, 'this has changed'
assert 0.03 < np.mean(right < 0.05) < 0.07 and np.mean(seen < 0.05) > 0.08, 'this has changed'
PY
