#!/usr/bin/env bash
# nolds 0.6.2: mfhurst_b leaves out all differences which are 0, so that series with unchanged values get too low Hurst
# exponents.
#
# Expected: the docs of mfhurst_b say that c_q(d) is calculated "by taking the absolute differences" of values d apart,
# "raising them to the qth power and taking the mean", for c_q(d) = <(h(x) - h(x + d))^q>. For positive q, a difference of 0
# is a value of 0 in this mean. A random walk has H_2 = 0.5, whether or not it rests at times.
# Seen: differences of 0 are dropped before the mean. So c_q(d) is the mean over changes only. It is too large for small d, at
# which values often stay the same, and the slope is too low. For a random walk which moves in a tenth of the steps, H_2 is
# 0.31, and 0.17 if it moves in 2 % of them. Prices which are often unchanged, counts and quantized signals look
# anti-persistent. Version 0.6.3 has the same source of this function.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet nolds==0.6.2 numpy==2.4.6 future==1.0.0 setuptools==80.9.0
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import nolds
import numpy as np

print(f'nolds {version("nolds")}')
rng = np.random.default_rng(0)
for part in (1.0, 0.5, 0.1, 0.02):
    walk = np.cumsum(rng.choice([-1.0, 1.0], 20000) * (rng.random(20000) < part))
    seen, (distances, values, _) = nolds.mfhurst_b(walk, qvals=[2], debug_data=True)
    steps = np.exp(distances).round().astype(int)
    right = np.array([((walk[d:] - walk[:-d]) ** 2).mean() for d in steps])
    changed = np.array([((walk[d:] - walk[:-d])[walk[d:] != walk[:-d]] ** 2).mean() for d in steps])
    exponent = np.polyfit(np.log(steps), np.log(right), 1)[0] / 2
    print(f'moves in {part:.0%} of the steps: H_2 {seen[0]:.3f}, by the definition {exponent:.3f}. '
          f'c_2(1) {np.exp(values[0, 0]):.3f}, by the definition {right[0]:.3f}')  # fmt: skip
    assert np.allclose(np.exp(values[:, 0]), changed), 'this has changed'
    assert abs(exponent - 0.5) < 0.03 and (part > 0.5 or seen[0] < exponent - 0.04), 'this has changed'
assert seen[0] < 0.2, 'this has changed'
PY
