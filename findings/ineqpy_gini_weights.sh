#!/usr/bin/env bash
# ineqpy 0.4.1: the weighted Gini index is far too large if weights differ, as it takes no mean ranks.
#
# Expected: gini is documented as "done following (discrete probability distribution): G = 1 - [sum f(y_i)(S_{i-1} + S_i)]",
# with S the share of income up to y_i. A weight of 3 is the same as three people with this income. The README compares
# weighted results with those of "income values replicated w times each one".
# Seen: the index is 2 cov(x, F) / mean, with F the cumulated weights up to and with each income, and with an unbiased
# covariance. Both are right only for many people of small weights. The correct F is half a weight lower. For incomes 1 and 2
# with weights 1 and 3, the index is 0.43, and 0.11 is right. The same four people in a list have another index, 0.14.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet ineqpy==0.4.1 numpy==2.4.6 pandas==3.1.1 numba==0.68.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from ineqpy.inequality import gini

print(f'ineqpy {version("ineqpy")}')


def by_definition(income, weights):
    order = np.argsort(income)
    income, share = income[order], weights[order] / weights.sum()
    below = np.append(0, (share * income).cumsum() / (share * income).sum())
    return 1 - (share * (below[:-1] + below[1:])).sum()


rng = np.random.default_rng(0)
for name, income, weights in (
    ('two groups', np.array([1.0, 2.0]), np.array([1, 3])),
    ('three groups', np.array([1.0, 2.0, 5.0]), np.array([50, 40, 10])),
    ('five groups', np.array([1.0, 2.0, 3.0, 5.0, 20.0]), np.array([5, 2, 8, 1, 1])),
):
    replicated = np.repeat(income, weights)
    right, other = by_definition(income, weights), by_definition(replicated, np.ones(replicated.size))
    half_difference = np.abs(replicated[:, None] - replicated).mean() / 2 / replicated.mean()
    seen, listed = float(gini(income, weights.astype(float))), float(gini(replicated, np.ones(replicated.size)))
    print(f'{name}: index with weights {seen:.3f}, of the list of people {listed:.3f}, by the documented equation {right:.3f}')
    assert np.isclose(right, other) and np.isclose(right, half_difference)
    assert seen > 1.1 * right and seen > 1.1 * listed, 'this has changed'
PY
