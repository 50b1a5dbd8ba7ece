#!/usr/bin/env bash
# tigramite 5.2.10.1: time_bin_with_mask counts NaN as 0, writes zeros into the data of the caller, and changes their shape.
#
# Expected: "time binned data where only about non-masked values is averaged". A value that is not there, NaN, is left out or gives NaN.
# The function returns its result.
# Seen: NaN is replaced by 0 before the average. A bin with half of its values missing has half of the mean. The zeros are written into the
# array of the caller, also where the mask leaves them out. Afterwards nothing shows that they were missing. A series of shape (T,) has the
# shape (T, 1) afterwards, and so has its mask.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet tigramite==5.2.10.1 numpy==2.4.6 scipy==1.17.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from tigramite.data_processing import time_bin_with_mask

print(f'tigramite {version("tigramite")}')
original = np.full((12, 2), 10.0)
original[1::2, 0] = np.nan  # Every other value of variable 0 is missing.
right = np.nanmean(original.reshape(3, 4, 2), axis=1)

data = original.copy()
seen, _ = time_bin_with_mask(data, 4)
print(f'no mask: {seen.tolist()}, mean of what is there {right.tolist()}. Missing values before {np.isnan(original).sum()}, '
      f'after {np.isnan(data).sum()}, zeros after {(data == 0).sum()}')  # fmt: skip
assert np.allclose(seen, [[5, 10]] * 3) and np.allclose(right, 10), 'this has changed'
assert np.isnan(original).sum() == (data == 0).sum() == 6 and not np.isnan(data).any(), 'this has changed'

data = original.copy()
seen, _ = time_bin_with_mask(data, 4, mask=np.isnan(data))
print(f'with a mask for the missing values: {seen.tolist()}, missing values after {np.isnan(data).sum()}, zeros {(data == 0).sum()}')
assert np.allclose(seen, 10) and (data == 0).sum() == 6, 'this has changed'

series, mask = np.arange(12.0), np.zeros(12, dtype=bool)
seen, _ = time_bin_with_mask(series, 4, mask=mask)
print(f'one series: result {seen.tolist()} of shape {seen.shape}, shape of the series afterwards {series.shape}, of the mask {mask.shape}')
assert seen.shape == (3,) and series.shape == mask.shape == (12, 1), 'this has changed'
PY
