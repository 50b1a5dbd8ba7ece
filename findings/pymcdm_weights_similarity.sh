#!/usr/bin/env bash
# pymcdm 1.4.0: the weights similarity coefficient wsc does not reach 0 for the most different weights.
#
# Expected: wsc is "the similarity of the weights in range [0, 1], where 0 is different weights, and 1 is the same weights". In
# the cited Shekhovtsov (2023), it is 1 - sum |w0 - w1| / (2 (1 - min w0)). The divisor is the largest sum that is possible for
# w0: all the weight of w1 is on the criterion of the smallest w0. So it is 0 there.
# Seen: a pair of brackets is missing. The sum is divided by 2, and multiplied by 1 - min w0. So the coefficient is larger than
# the symmetric wsc2, where it has to be smaller. For equal weights of two criteria, the smallest value is 0.75, and for five,
# 0.36.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pymcdm==1.4.0 numpy==2.4.6 scipy==1.17.1 matplotlib==3.11.2
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from pymcdm.correlations import wsc, wsc2

print(f'pymcdm {version("pymcdm")}')
for first in ([0.5, 0.5], [0.2] * 5, [0.2, 0.3, 0.5], [0.0, 1.0]):
    first = np.array(first)
    corners = np.eye(first.size)  # all weight on one criterion: the largest sum of differences is at one of them
    sums = np.abs(corners - first).sum(1)
    far = corners[sums.argmax()]
    assert np.isclose(sums.max(), 2 * (1 - first.min()))
    seen, right = float(wsc(first, far)), 1 - np.abs(first - far).sum() / (2 * (1 - first.min()))
    print(f'weights {first} and the most different ones {far}: wsc {seen:.3f}, by the equation {abs(right):.3f}, '
          f'wsc2 {float(wsc2(first, far)):.3f}')  # fmt: skip
    assert abs(right) < 1e-9
    assert np.isclose(seen, 1 - (1 - first.min()) ** 2), 'this has changed'
PY
