#!/usr/bin/env bash
# pymannkendall 1.4.3: regional_test and correlated_seasonal_test ignore alpha, and decide at 0.05.
#
# Expected: both have "alpha: significance level (0.05 default)", and return "h: True (if trend is present) or False (if trend
# is absence)". So h says whether p is below alpha, as it does in the other tests, such as seasonal_test and multivariate_test.
# Seen: both call another test without passing alpha on. With alpha=0.01 and a p-value of 0.03, h is True, and the trend is
# said to be 'increasing'. With alpha=0.1 and a p-value of 0.07, there is 'no trend'.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pymannkendall==1.4.3 numpy==2.4.6 scipy==1.17.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version
from itertools import product
from math import erf, sqrt

import numpy as np
import pymannkendall as mk

print(f'pymannkendall {version("pymannkendall")}')
tests = {
    'multivariate_test': lambda x, alpha: mk.multivariate_test(x, alpha=alpha),
    'regional_test': lambda x, alpha: mk.regional_test(x, alpha=alpha),
    'correlated_multivariate_test': lambda x, alpha: mk.correlated_multivariate_test(x, alpha=alpha),
    'correlated_seasonal_test': lambda x, alpha: mk.correlated_seasonal_test(x.ravel(), period=3, alpha=alpha),
}
wrong = {name: 0 for name in tests}
for seed, alpha in product(range(60), (0.01, 0.05, 0.2)):
    data = np.random.default_rng(seed).normal(size=(20, 3)) + 0.04 * np.arange(20)[:, None]
    score = sum(np.sign(data[j] - data[i]).sum() for i in range(20) for j in range(i + 1, 20))
    for name, test in tests.items():
        result = test(data, alpha)
        assert result.s == score and np.isclose(result.p, 1 - erf(abs(result.z) / sqrt(2)))
        right = result.p < alpha
        if bool(result.h) != right:
            wrong[name] += 1
            if wrong[name] == 1:
                print(f'{name}, alpha {alpha}: p {result.p:.3f}, h {bool(result.h)}, {result.trend}, right is h {right}')
        if name in ('regional_test', 'correlated_seasonal_test'):
            assert bool(result.h) == (result.p < 0.05), 'this has changed'
print(f'numbers of wrong decisions of 180: {wrong}')
for name, count in wrong.items():
    assert (count > 20) == (name in ('regional_test', 'correlated_seasonal_test')), 'this has changed'
    assert count > 20 or count == 0, 'this has changed'
PY
