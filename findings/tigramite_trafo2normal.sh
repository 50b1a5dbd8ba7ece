#!/usr/bin/env bash
# tigramite 5.2.10.1: trafo2normal puts the largest value below others, if there are more than 1000 values.
#
# Expected: data with standard normal marginals, says the documentation. The transformation keeps the order of the values. Ends at both
# sides look the same.
# Seen: the i-th smallest of n values goes to the quantile i / n. That of the largest, 1, is replaced by 1 - thres, 0.999, as the quantile of
# 1 is infinite. For n above 1000, other values are above 0.999 and remain there. Of 10000 values, 9 others are above the largest
# afterwards. It is not so at the lower end. The mean is not 0: for 20 values it is 0.15.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet tigramite==5.2.10.1 numpy==2.4.6 scipy==1.17.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from scipy.stats import norm, rankdata
from tigramite.data_processing import trafo2normal

print(f'tigramite {version("tigramite")}')
rng = np.random.default_rng(0)
for n in (20, 500, 2000, 10_000, 50_000):
    x = rng.gamma(2, size=n)
    seen = trafo2normal(x)
    order = np.argsort(-x)
    above = int((seen > seen[order[0]]).sum())
    right = norm.ppf((rankdata(x) - 0.5) / n)
    print(f'{n} values: largest {seen[order[0]]:.3f}, second largest {seen[order[1]]:.3f}, smallest {seen[order[-1]]:.3f}. Values above '
          f'the largest {above}. Mean {seen.mean():.4f}, with the quantiles (i - 0.5) / n {right.mean():.4f}')  # fmt: skip
    assert np.isclose(seen[order[0]], norm.ppf(0.999)) and np.isclose(seen[order[1]], norm.ppf((n - 1) / n)), 'this has changed'
    assert above == sum(i / n > 0.999 for i in range(1, n)) and (np.diff(seen[order[1:]]) < 0).all(), 'this has changed'
    assert n > 1000 or seen.mean() > 0.005, 'this has changed'

columns = np.column_stack([rng.normal(size=5000), rng.gamma(2, size=5000)])
moved = trafo2normal(columns)
kept = [bool((np.argsort(a) == np.argsort(b)).all()) for a, b in zip(columns.T, moved.T)]
print(f'two variables of 5000 values, the order is kept: {kept}')
assert kept == [False, False], 'this has changed'
PY
