#!/usr/bin/env bash
# geostatspy 0.0.79: the normal score of the smallest value is extrapolated, and may be far below what it has to be.
#
# Expected: nscore is "GSLIB's NSCORE program". The score of the k-th smallest of n values is the normal quantile at (k - 1/2)
# / n. The transformation table that is returned has this. Scores of data and table agree, and have a mean of 0 and a variance
# near 1.
# Seen: the lookup starts at index 1, which is the second smallest value in Python. So the smallest value is extrapolated from
# the line through the second and third. If it is an outlier, or if these two are close to each other, its score is far too
# low: below -20 instead of -2.2 in a sample of 40. All other scores are right.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet geostatspy==0.0.79 numpy==2.4.6 scipy==1.17.1 pandas==3.1.1 \
  numba==0.68.1 statsmodels==0.15.0 tqdm==4.70.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version
from statistics import NormalDist

import numpy as np
import pandas as pd
from geostatspy.geostats import nscore

print(f'geostatspy {version("geostatspy")}')
right = np.array([NormalDist().inv_cdf((k + 0.5) / 40) for k in range(40)])
smallest = []
for seed in range(30):
    values = np.random.default_rng(seed).normal(size=40)
    scores, table, table_scores = nscore(pd.DataFrame({'v': values}), 'v')
    order = values.argsort()
    ordered, seen = values[order], scores[order]
    line = right[1] - (ordered[1] - ordered[0]) * (right[2] - right[1]) / (ordered[2] - ordered[1])
    assert np.allclose(table, ordered) and np.allclose(table_scores, right, atol=1e-3)
    assert np.allclose(seen[1:], right[1:], atol=1e-3)
    assert np.isclose(seen[0], line, rtol=1e-2), 'this has changed'
    smallest.append(seen[0])
smallest = np.array(smallest)
print(f'score of the smallest of 40 values: in 30 samples from {smallest.min():.2f} to {smallest.max():.2f}, median '
      f'{np.median(smallest):.2f}, right is {right[0]:.2f}')  # fmt: skip
assert smallest.min() < -20 and (np.abs(smallest - right[0]) > 0.2).mean() > 0.5, 'this has changed'
PY
