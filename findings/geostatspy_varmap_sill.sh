#!/usr/bin/env bash
# geostatspy 0.0.79: varmapv does not standardize the sill.
#
# Expected: isill of varmapv is "standardize sill to be 1.0". So with isill=1, the variogram map is divided by the variance of
# the data, as it is in gamv and gam.
# Seen: the division is done on an array of zeros. This array is then filled with the values that were not divided. So isill
# has no effect, and maps of variables in other units, with isill=1, can not be compared.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet geostatspy==0.0.79 numpy==2.4.6 scipy==1.17.1 pandas==3.1.1 \
  numba==0.68.1 statsmodels==0.15.0 tqdm==4.70.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
import pandas as pd
from geostatspy.geostats import gamv, varmapv

print(f'geostatspy {version("geostatspy")}')
rng = np.random.default_rng(0)
data = pd.DataFrame({'x': rng.uniform(0, 100, 150), 'y': rng.uniform(0, 100, 150), 'v': 10 * rng.normal(size=150)})
variance = data.v.to_numpy().var()
maps = {isill: varmapv(data, 'x', 'y', 'v', -1e9, 1e9, 3, 3, 20.0, 20.0, 1, isill)[0] for isill in (0, 1)}
lines = {isill: gamv(data, 'x', 'y', 'v', -1e9, 1e9, 20.0, 10.0, 4, 0.0, 90.0, 1e9, isill)[1] for isill in (0, 1)}
x, y, v = (data[name].to_numpy() for name in 'xyv')
dx, dy = ((values - values[:, None]) / 20 for values in (x, y))
near = (1 <= dx) & (dx < 2) & (np.abs(dy) < 1)  # the pairs of the cell to the right of the center, with its int()
right = ((v - v[:, None])[near] ** 2).mean() / 2
print(f'variance {variance:.1f}. Cell at lag (1, 0): isill=0 {maps[0][3, 4]:.2f}, isill=1 {maps[1][3, 4]:.2f}, '
      f'by the definition {right:.2f} and {right / variance:.3f}')  # fmt: skip
print(f'gamv: isill=0 {lines[0][2]:.2f}, isill=1 {lines[1][2]:.3f}')
assert np.isclose(maps[0][3, 4], right) and np.allclose(lines[1], lines[0] / variance)
assert np.array_equal(maps[0], maps[1]), 'this has changed'
PY
