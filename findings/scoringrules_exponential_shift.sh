#!/usr/bin/env bash
# scoringrules 0.10.0: crps_exponentialM subtracts the location from the array of observations of its caller.
#
# Expected: documented as computing the CRPS of observations for an exponential distribution with a point mass. The observations
# stay, and a second call gives the same scores.
# Seen: the observations are changed in place by "obs -= location". A second call, or another score, gets moved observations. A
# loop over models on the same observations ranks them by other data each time.
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
observed = np.array([1.5, 2.5, 4.0])
kept = observed.copy()
grid = np.linspace(0, 80, 800001)


def by_definition(y, mass, location, scale):
    cdf = np.where(grid < location, 0, mass + (1 - mass) * (1 - np.exp(-(grid - location) / scale)))
    return np.trapezoid((cdf - (grid >= y)) ** 2, grid)


right = np.array([by_definition(y, 0.2, 1.0, 2.0) for y in kept])
first = scoringrules.crps_exponentialM(observed, 0.2, 1.0, 2.0, backend='numpy')
print(f'observations {kept}, after the first call {observed}')
assert np.allclose(observed, kept - 1), 'this has changed'
second = scoringrules.crps_exponentialM(observed, 0.2, 1.0, 2.0, backend='numpy')
print(f'scores {first.round(4)}, of a second call {second.round(4)}, by the definition {right.round(4)}')
assert np.allclose(first, right, atol=1e-3)
assert np.abs(second - right).max() > 0.1, 'this has changed'
PY
