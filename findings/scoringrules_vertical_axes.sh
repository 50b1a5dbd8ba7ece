#!/usr/bin/env bash
# scoringrules 0.10.0: vrcrps_ensemble averages the weights of a grid of forecasts over a dimension of the grid, not over
# members.
#
# Expected: the documented equation, whose last factor is the mean over the M members of w(x_m), minus w(y). "The ensemble
# dimension is by default represented by the last axis", so that forecasts of shape (days, stations, members) get scores of
# shape (days, stations), and each one is that of its forecast alone.
# Seen: the numpy backend takes that mean over axis 1, which is the members only for forecasts of shape (n, members). With as
# many stations as members, the scores are wrong without a message. That backend is the default where Numba is not installed.
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
from scipy.stats import norm

print(f'scoringrules {version("scoringrules")}')
rng = np.random.default_rng(0)
days, stations, members = 3, 6, 6
observed, forecast = rng.normal(size=(days, stations)), rng.normal(size=(days, stations, members))
weight = norm(1, 1).cdf


def by_definition(y, x):
    wy, wx = weight(y), weight(x)
    spread = (np.abs(x[:, None] - x) * wx[:, None] * wx).mean()
    return (np.abs(x - y) * wx * wy).mean() - spread / 2 + ((np.abs(x) * wx).mean() - abs(y) * wy) * (wx.mean() - wy)


right = np.array([[by_definition(y, x) for y, x in zip(*day)] for day in zip(observed, forecast)])
grid = scoringrules.vrcrps_ensemble(observed, forecast, w_func=weight, backend='numpy')
rows = [scoringrules.vrcrps_ensemble(*day, w_func=weight, backend='numpy') for day in zip(observed, forecast)]
print(f'first day, in the grid: {grid[0].round(3)}')
print(f'first day, alone:       {rows[0].round(3)}')
print(f'by the definition:      {right[0].round(3)}')
assert np.allclose(rows, right)
assert np.abs(grid - right).max() > 0.05, 'this has changed'
PY
