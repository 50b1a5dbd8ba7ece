#!/usr/bin/env bash
# hyppo 0.5.2: Hotelling's test of samples of one dimension does not divide by the variance, so that it depends on the unit.
#
# Expected: "Hotelling T^2" is documented as a "generalization of Student's t-test", with the inverse of the pooled covariance
# between the differences of means. In one dimension, the statistic is the square of t of Student's test. It does not change if
# all values are multiplied by a number, and the p-value is that of the t-test.
# Seen: for p = 1, the inverse of the covariance is replaced by 1 / p, which is 1. For equal normal distributions of a standard
# deviation of 10, most p-values are below 0.05. If all values are multiplied by 0.01, a clear difference goes unnoticed.
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
from hyppo.ksample import Hotelling
from scipy import stats

print(f'hyppo {version("hyppo")}')


def by_definition(x, y):
    n, m = len(x), len(y)
    pooled = (np.sum((x - x.mean()) ** 2) + np.sum((y - y.mean()) ** 2)) / (n + m - 2)
    statistic = (x.mean() - y.mean()) ** 2 / pooled * n * m / (n + m)
    return statistic, stats.f.sf(statistic, 1, n + m - 2)


rng = np.random.default_rng(0)
first, second = rng.normal(size=30), rng.normal(0.8, 1, 40)
for scale in (0.01, 1.0, 10.0):
    x, y = scale * first, scale * second
    seen, right = Hotelling().test(x, y), by_definition(x, y)
    print(f'values times {scale}: T^2 {float(seen.stat[0]):.5f}, p-value {float(seen.pvalue[0]):.2g}, by the definition '
          f'{right[0]:.5f} and {right[1]:.2g}')  # fmt: skip
    assert np.isclose(right[1], stats.ttest_ind(x, y).pvalue) and np.isclose(right[0], by_definition(first, second)[0])
    assert np.isclose(seen.stat[0], (x.mean() - y.mean()) ** 2 * 30 * 40 / 70), 'this has changed'
small = []
for _ in range(200):
    x, y = 10 * rng.normal(size=30), 10 * rng.normal(size=40)
    small.append((Hotelling().test(x, y).pvalue[0] < 0.05, by_definition(x, y)[1] < 0.05))
small = np.mean(small, axis=0)
print(f'equal distributions of standard deviation 10: p < 0.05 in {small[0]:.3f} of cases, by the definition {small[1]:.3f}')
assert small[1] < 0.1 and small[0] > 0.6, 'this has changed'
wide = rng.normal(size=(30, 2)), rng.normal(size=(40, 2))
assert np.isclose(Hotelling().test(*wide).pvalue, Hotelling().test(*(100 * x for x in wide)).pvalue)
PY
