#!/usr/bin/env bash
# geostatspy 0.0.79: declus minimizes the declustered mean if it is asked to maximize it, and the reverse.
#
# Expected: iminmax of declus is "1 / True: for use cell size with max decluster mean", and "0 / False: for declustered mean
# minimizing cell size". GSLIB's DECLUS, from which it is converted, has 0 for the minimum and 1 for the maximum. So if low
# values are clustered, iminmax=1 gives them less weight.
# Seen: with iminmax=1, a cell size is taken if its mean is smaller than the best one, and with 0, if it is larger. So the
# weights are those of the other choice. If low values are clustered, the mean with iminmax=1 is that of equal weights or less,
# and the bias is not removed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet geostatspy==0.0.79 numpy==2.4.6 scipy==1.17.1 pandas==3.1.1 \
  numba==0.68.1 matplotlib==3.11.2 statsmodels==0.15.0 tqdm==4.70.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
import contextlib
import io
from importlib.metadata import version

import numpy as np
import pandas as pd
from geostatspy.geostats import declus

print(f'geostatspy {version("geostatspy")}')
rng = np.random.default_rng(0)
spread = rng.uniform(0, 100, (60, 2))
for name, center in (('low', 20), ('high', 80)):
    points = np.vstack([spread, center + rng.uniform(-5, 5, (60, 2))])
    values = points.sum(1) / 10  # small near the origin: the mean of the area is 10
    data = pd.DataFrame({'x': points[:, 0], 'y': points[:, 1], 'v': values})
    means = {}
    for iminmax in (0, 1):
        with contextlib.redirect_stdout(io.StringIO()):
            weights, _, by_size = declus(data, 'x', 'y', 'v', iminmax, 4, 12, 8.0, 56.0)
        means[iminmax] = np.average(values, weights=weights)
    sizes = by_size[:-1] if by_size[-1] == 0 else by_size
    print(f'{name} values clustered, mean {values.mean():.2f}, true mean 10: declustered with iminmax=1 (maximum) '
          f'{means[1]:.2f}, with 0 (minimum) {means[0]:.2f}. By cell sizes, means from {sizes.min():.2f} to '
          f'{sizes.max():.2f}')  # fmt: skip
    assert np.isclose(means[1], sizes.min()) and np.isclose(means[0], sizes.max()), 'this has changed'
    assert sizes.max() - sizes.min() > 1
PY
