#!/usr/bin/env bash
# geostatspy 0.0.79: inverse distance estimates are too small where fewer than ndmax data are in the search radius.
#
# Expected: invdist has ndmin and ndmax, the smallest and largest numbers of data, and a "maximum isotropic search radius". The
# source says "constrain sum of the weights to 1.0 for unbiasedness". So if all data have the value 5, each estimate is 5.
# Seen: if fewer than ndmax data are within the radius, the arrays keep places of former nodes, or zeros. The weights are
# divided by a sum over all ndmax places, but only the found data are added. So the weights of the data sum to less than 1.
# From data that are all 5, the map has values below 4, which depend on the former nodes.
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
from geostatspy.geostats import invdist

print(f'geostatspy {version("geostatspy")}')
rng = np.random.default_rng(0)
points, centers = rng.uniform(0, 100, (40, 2)), 10 + 20 * np.arange(5)


def by_definition(values, radius, largest):
    result = np.full((5, 5), -999.0)
    for i, y in enumerate(centers[::-1]):
        for j, x in enumerate(centers):
            distance = np.hypot(points[:, 0] - x, points[:, 1] - y)
            used = [k for k in distance.argsort()[:largest] if distance[k] < radius]
            if used:
                result[i, j] = np.average(values[used], weights=1 / distance[used] ** 2)
    return result


for name, values in (('all 5', np.full(40, 5.0)), ('from 4 to 6', rng.uniform(4, 6, 40))):
    data = pd.DataFrame({'x': points[:, 0], 'y': points[:, 1], 'v': values})
    for radius in (20.0, 500.0):
        seen = invdist(data, 'x', 'y', 'v', -1e9, 1e9, 5, 10.0, 20.0, 5, 10.0, 20.0, 1, 10, radius, 2.0)
        right = by_definition(values, radius, 10)
        found = right > 0
        print(f'values {name}, radius {radius:.0f}: estimates from {seen[found].min():.2f} to {seen[found].max():.2f}, mean '
              f'{seen[found].mean():.2f}, by the definition {right[found].min():.2f} to {right[found].max():.2f}, '
              f'mean {right[found].mean():.2f}')  # fmt: skip
        assert np.array_equal(seen > 0, found)
        assert np.allclose(seen[found], right[found]) == (radius > 100), 'this has changed'
        if radius < 100:
            assert seen[found].mean() < 0.9 * right[found].mean(), 'this has changed'
PY
