#!/usr/bin/env bash
# frites 0.4.6: the standard error of confidence_interval counts missing values, so that it is too small.
#
# Expected: confidence_interval "also supports computing standard deviation ('sd') and / or standard error on the mean
# ('sem')". "Skip NaN when computing CI. By default NaN are skipped." The standard error is the standard deviation divided by
# the root of the number of values. It is the same if a row of NaN is removed before.
# Seen: the mean and the standard deviation skip NaN. The number of values is the whole length of the axis. With 3 of 4 values
# missing, the standard error is half of the right one. The bounds of 95 % by bootstrap skip NaN.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet frites==0.4.6 mne==1.13.2 numpy==2.4.6 scipy==1.17.1 xarray==2026.9.0
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from frites.stats import confidence_interval

print(f'frites {version("frites")}')
data = np.random.default_rng(0).normal(size=(40, 3))
data[20:, 1] = np.nan
data[10:, 2] = np.nan
low, high = confidence_interval(data, axis=0, cis=['sem'], verbose=False)[0]
for column in range(3):
    values = data[:, column][~np.isnan(data[:, column])]
    right, seen = values.std() / np.sqrt(values.size), (high[column] - low[column]) / 2
    alone = confidence_interval(values[:, None], axis=0, cis=['sem'], verbose=False)[0]
    print(f'{values.size} of 40 values: standard error {seen:.4f}, by the definition {right:.4f}, without the rows of NaN '
          f'{(alone[1, 0] - alone[0, 0]) / 2:.4f}')  # fmt: skip
    assert np.isclose((alone[1, 0] - alone[0, 0]) / 2, right)
    assert np.isclose(seen, right * np.sqrt(values.size / 40)), 'this has changed'
PY
