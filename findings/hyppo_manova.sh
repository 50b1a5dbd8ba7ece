#!/usr/bin/env bash
# hyppo 0.5.2: MANOVA takes inner products for outer products, so that its matrices have one number in all entries.
#
# Expected: the documented W is the sum of (x_ij - mean_i) (x_ij - mean_i)^T over all samples, and B that of n_i (mean_i -
# mean) (mean_i - mean)^T over the groups. Both are p x p matrices. The documented statistic is tr(B (B + W)^-1), Pillai's
# trace. It does not change by invertible linear maps of the dimensions.
# Seen: x_ij - mean_i is an array of one axis, so that x @ x.T is a number, which is added to all entries of W. So with b and w
# the sums of squares between and within groups, the statistic is b / (b + w), and the p-value belongs to another one. A clear
# difference in a dimension of small variance is lost next to one of large variance.
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
from hyppo.ksample import MANOVA
from scipy.stats import f

print(f'hyppo {version("hyppo")}')


def by_definition(groups):
    k, p, n = len(groups), groups[0].shape[1], sum(map(len, groups))
    center = np.concatenate(groups).mean(0)
    within = sum((x - x.mean(0)).T @ (x - x.mean(0)) for x in groups)
    between = sum(len(x) * np.outer(x.mean(0) - center, x.mean(0) - center) for x in groups)
    trace = np.trace(between @ np.linalg.inv(between + within))
    s, m, r = min(p, k - 1), (abs(p - k + 1) - 1) / 2, (n - k - p - 1) / 2
    ratio = (2 * r + s + 1) / (2 * m + s + 1) * trace / (s - trace)
    return trace, f.sf(ratio, s * (2 * m + s + 1), s * (2 * r + s + 1))


rng = np.random.default_rng(0)
groups = [rng.normal(size=(25, 3)) * [1, 1, 20] + [shift, 0, 0] for shift in (0, 0.8, 1.6)]
matrix = rng.normal(size=(3, 3))
for name, data in (('three groups that differ in the first of three dimensions', groups),
                   ('the same after an invertible linear map', [x @ matrix for x in groups]),
                   ('the same with equal variances', [x / [1, 1, 20] for x in groups])):  # fmt: skip
    seen, right = MANOVA().test(*data), by_definition(data)
    center = np.concatenate(data).mean(0)
    b = sum(len(x) * np.sum((x.mean(0) - center) ** 2) for x in data)
    w = sum(np.sum((x - x.mean(0)) ** 2) for x in data)
    print(f'{name}: {seen.stat:.4f}, p-value {seen.pvalue:.2g}, by the definition {right[0]:.4f} and {right[1]:.2g}')
    assert np.isclose(right[0], by_definition(groups)[0]) and right[1] < 1e-4
    assert np.isclose(seen.stat, b / (b + w)) and abs(seen.stat - right[0]) > 0.1, 'this has changed'
assert MANOVA().test(*groups).pvalue > 0.1, 'this has changed'
PY
