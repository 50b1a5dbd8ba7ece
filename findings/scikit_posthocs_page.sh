#!/usr/bin/env bash
# scikit-posthocs 0.17.1: the continuity correction of Page's test makes p-values of decreasing trends smaller.
#
# Expected: test_page has p-values "from the standard normal distribution, with a continuity correction always applied". A
# continuity correction moves the statistic L by 0.5 towards its mean. The two-sided p-value is the same if the order of the
# groups is reversed. With alternative="less", the p-value is that of alternative="greater" for the reversed order.
# Seen: 0.5 is always subtracted. For L below the mean, and for alternative="less", this moves it away from its mean. So the
# p-value is too small, and smaller than without a correction. Reversed groups have other p-values, on both sides of 0.05.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet scikit-posthocs==0.17.1 numpy==2.4.6 scipy==1.17.1 pandas==3.1.1 statsmodels==0.15.0
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version
from itertools import permutations, product
from math import erfc, sqrt

import numpy as np
from scikit_posthocs import test_page

print(f'scikit-posthocs {version("scikit-posthocs")}')
k, n = 3, 4
weights = np.arange(1, k + 1)
all_sums = np.array([sum(rows) for rows in product([np.dot(weights, p) for p in permutations(weights)], repeat=n)])
mean, deviation = n * k * (k + 1) ** 2 / 4, sqrt(n * k**2 * (k + 1) * (k**2 - 1) / 144)
assert np.isclose(all_sums.mean(), mean) and np.isclose(all_sums.std(), deviation)

rng = np.random.default_rng(0)
sides = 0
for _ in range(200):
    data = rng.normal(size=(n, k)) - 0.5 * weights
    ranks = data.argsort(1).argsort(1) + 1
    total = float((ranks @ weights).sum())
    if total >= mean:
        continue
    right = erfc((abs(total - mean) - 0.5) / deviation / sqrt(2))
    none = erfc(abs(total - mean) / deviation / sqrt(2))
    exact = (np.abs(all_sums - mean) >= abs(total - mean)).mean()
    seen, reverse = test_page(data)[0], test_page(data[:, ::-1])[0]
    less, greater = test_page(data, alternative='less')[0], test_page(data[:, ::-1], alternative='greater')[0]
    assert np.isclose(reverse, right) and np.isclose(less, seen / 2) and np.isclose(greater, right / 2), 'this has changed'
    assert seen < none < right, 'this has changed'
    sides += seen < 0.05 < right
    if seen < 0.05 < right and sides == 1:
        print(f'L {total:.0f}, mean {mean:.0f}: two-sided p {seen:.4f}, of reversed groups {reverse:.4f}, without correction '
              f'{none:.4f}, with the correction {right:.4f}, by all permutations {exact:.4f}')  # fmt: skip
        print(f'alternative "less" {less:.4f}, "greater" of reversed groups {greater:.4f}')
print(f'{sides} of 200 data sets with p below 0.05, and above 0.05 with the correction')
assert sides > 3, 'this has changed'
PY
