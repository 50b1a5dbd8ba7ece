#!/usr/bin/env bash
# tsfel 0.2.0: ECDF features take a signal that ends at the value at which it began for a constant signal.
#
# Expected: ecdf_percentile gives the values of the signal at percentiles of its ECDF, ecdf_slope the slope between two of
# these, and ecdf_percentile_count the numbers of samples up to them. "check if signal is constant" in the code has separate
# results.
# Seen: the check is that the sum of differences is 0. That sum is the last value minus the first one. For full periods, as of
# integers from an analog-to-digital converter, all percentiles are the first value, the slope is infinite, and the counts are
# the first value instead of a number of samples.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet tsfel==0.2.0 numpy==2.4.6 scipy==1.17.1 pandas==2.3.3 scikit-learn==1.7.2 \
  statsmodels==0.15.0 PyWavelets==1.9.0 ipython==9.18.1 requests==2.34.2 setuptools==80.9.0
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from tsfel import ecdf_percentile, ecdf_percentile_count, ecdf_slope

print(f'tsfel {version("tsfel")}')
whole = np.round(1000 * np.sin(2 * np.pi * np.arange(401) / 100)).astype(int) + 1500
for name, signal in (('period not closed', whole[:-7]), ('full periods', whole)):
    right = [np.sort(signal)[int(np.floor(p * len(signal))) - 1] for p in (0.2, 0.8)]
    count = [int(np.floor(p * len(signal))) for p in (0.2, 0.8)]
    middle = [np.sort(signal)[int(np.floor(p * len(signal))) - 1] for p in (0.5, 0.75)]
    slope = 0.25 / (middle[1] - middle[0])
    seen = [int(value) for value in ecdf_percentile(signal)]
    counts, slopes = [int(value) for value in ecdf_percentile_count(signal)], ecdf_slope(signal)
    print(f'{name}: percentiles {seen}, by the definition {[int(value) for value in right]}')
    print(f'  counts {counts}, by the definition {count}, slope {slopes:.5f}, by the definition {slope:.5f}')
    if name == 'full periods':
        assert signal[0] == signal[-1] and seen == counts == [1500, 1500] and slopes == np.inf, 'this has changed'
        assert right[0] < 800 and right[1] > 2200 and slope < 0.001
    else:
        assert seen == right and counts == count and np.isclose(slopes, slope), 'this has changed'
PY
