#!/usr/bin/env bash
# mapclassify 2.10.0: FisherJenks is far from optimal for values such as 2000 to 2005, and its bins are not even ascending.
#
# Expected: "Fisher Jenks optimal classifier - mean based". It has the k classes of the smallest sum of squared differences from
# class means. A constant, which is added to all values, is added to the bins, and changes nothing else.
# Seen: sums of values and of squares are in 32 bits, and the variance is their difference. With values near 2000 the sum of
# squares of 40 values is near 160 million, whose last digit stands for 16. So the variances of classes are noise. One bin is
# below the one before it, a class is empty, and the sum of squares is many times the optimum.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet mapclassify==2.10.0 numpy==2.4.6 scipy==1.17.1 pandas==3.1.1 networkx==3.6.1 \
    scikit-learn==1.8.0 numba==0.68.1 llvmlite==0.50.0
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from mapclassify import FisherJenks

print(f'mapclassify {version("mapclassify")}')


def optimal(values, number):  # dynamic programming over cuts of the sorted values
    values = np.sort(values)
    size = len(values)
    cost = np.full((size, size + 1), np.inf)
    for i in range(size):
        for j in range(i + 1, size + 1):
            cost[i, j] = ((values[i:j] - values[i:j].mean()) ** 2).sum()
    best, cuts = cost[0], [[j] for j in range(size + 1)]
    for _ in range(number - 1):
        options = np.array([[best[i] + cost[i, j] if i < j else np.inf for j in range(size + 1)] for i in range(size)])
        start = options.argmin(0)
        best, cuts = options.min(0), [[*cuts[start[j]], j] for j in range(size + 1)]
    return best[size], values[np.array(cuts[size]) - 1]


values = np.exp(np.random.default_rng(0).normal(size=40))
for shift in (0, 100, 2000, 5000, 100_000):
    result = FisherJenks(values + shift, k=5)
    right, bins = optimal(values + shift, 5)
    print(f'plus {shift}: bins minus it {(result.bins - shift).round(2)}, counts {result.counts}, '
          f'sum of squares {result.tss:.2f}. Optimal {(bins - shift).round(2)}, {right:.2f}')  # fmt: skip
    good = shift < 1000
    assert np.isclose(result.tss, right, rtol=1e-3) == good, 'this has changed'
    assert np.isclose(right, 1.35322, atol=1e-4)
    assert good or result.tss > 3 * right, 'this has changed'
    assert shift != 2000 or (np.diff(result.bins) < 0).any(), 'this has changed'
PY
