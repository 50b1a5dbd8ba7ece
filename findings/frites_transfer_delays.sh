#!/usr/bin/env bash
# frites 0.4.6: the delays that conn_te names are not those that it computes, unless the step divides the range.
#
# Expected: with return_delays=True, transfer entropy has a dimension "delays", with steps of step_delay up to max_delay,
# "where to stop looking at in the past". If the target follows the source after 5 samples, transfer entropy is large at the
# delay named 5.
# Seen: delays are computed from max_delay downwards, and are named from min_delay + 1 upwards. With max_delay=30 and
# step_delay=5, those computed are 5, 10, 15, ..., 30, and those named are 1, 6, 11, ..., 26. So a delay of 5 is named 1.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet frites==0.4.6 mne==1.13.2 numpy==2.4.6 scipy==1.17.1 xarray==2026.9.0
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from frites.conn import conn_te

print(f'frites {version("frites")}')
rng = np.random.default_rng(0)


def conditional_information(x, y, z):
    """Of columns of normal values, in bits: from the partial correlation."""
    x, y, z = (values - values.mean() for values in (x, y, z))
    x, y = x - z * (x @ z) / (z @ z), y - z * (y @ z) / (z @ z)
    return -0.5 * np.log2(1 - (x @ y) ** 2 / (x @ x) / (y @ y))


for delay, step, changed in ((5, 5, True), (10, 5, True), (6, 3, True), (5, 1, False)):
    data = rng.normal(size=(200, 2, 60))
    data[:, 1, delay:] += 2 * data[:, 0, :-delay]
    options = dict(max_delay=30, step_delay=step, return_delays=True, verbose=False)
    te = conn_te(data, times=np.arange(60.0), roi=['x', 'y'], **options)
    te = te.sel(roi='x->y').mean('times')
    named, values = te['delays'].data, te.data
    right = {lag: np.mean([conditional_information(data[:, 0, t - lag], data[:, 1, t], data[:, 1, t - lag])
                           for t in range(30, 60)]) for lag in range(1, 31)}  # fmt: skip
    true = max(right, key=right.get)
    seen = int(named[values.argmax()])
    print(f'lag {delay}, step {step}: names {named[:4].tolist()}..., largest {values.max():.2f} bits at the one named {seen}. '
          f'By partial correlations, largest {right[true]:.2f} bits at {true}, and {right[seen]:.2f} at {seen}')  # fmt: skip
    assert true == delay and values.max() > 0.8
    assert (seen != true) == changed, 'this has changed'
PY
