#!/usr/bin/env bash
# scoringrules 0.10.0: weighted_interval_score adds the median itself instead of its distance from the observation.
#
# Expected: the documented equation, WIS = (w_0 |y - m| + the sum of w_k IS_k) / (K + 0.5), where m is the median. The score
# does not change if the observation, the median and the intervals are moved by the same number.
# Seen: with the numpy backend, the first term is w_0 m. That backend is the default where Numba is not installed. A forecast
# with a lower median gets a better score, and scores can be negative. The code for Numba has |y - m|.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet scoringrules==0.10.0 numpy==2.4.6 scipy==1.17.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
import scoringrules

print(f'scoringrules {version("scoringrules")}')
rng = np.random.default_rng(0)
alpha = np.array([0.1, 0.5])
observed, median = rng.normal(size=4), rng.normal(size=4)
lower, upper = median[:, None] - [1.6, 0.7], median[:, None] + [1.6, 0.7]


def by_definition(y, m, lower, upper):
    scores = upper - lower
    for k, level in enumerate(alpha):
        scores[:, k] += 2 / level * (np.maximum(lower[:, k] - y, 0) + np.maximum(y - upper[:, k], 0))
    return (0.5 * np.abs(y - m) + (scores * alpha / 2).sum(1)) / (len(alpha) + 0.5)


seen, right = [], []
for shift in (0.0, -20.0):
    case = observed + shift, median + shift, lower + shift, upper + shift
    seen.append(scoringrules.weighted_interval_score(*case, alpha, backend='numpy'))
    right.append(by_definition(*case))
    print(f'all moved by {shift}: scores {seen[-1].round(3)}, by the definition {right[-1].round(3)}')
    wrong = right[-1] + 0.5 * (case[1] - np.abs(case[0] - case[1])) / 2.5
    assert np.allclose(seen[-1], wrong) and not np.allclose(seen[-1], right[-1]), 'this has changed'
assert np.allclose(right[0], right[1]) and (right[0] > 0).all()
assert (seen[1] < 0).all(), 'this has changed'
PY
