#!/usr/bin/env bash
# geostatspy 0.0.79: the variograms of gam name each lag one step too short, and leave out the first row of the grid.
#
# Expected: gam is "GSLIB's GAM program", the variogram of "2D gridded data", from all pairs of cells that are a lag apart,
# with ixd and iyd as the "lag offset in grid cells". So with cells of 10, the semi-variance of neighbors belongs to the lag
# 10. It is the same if the grid is turned upside down.
# Seen: the lag number is counted from 0 for the distance, and from 1 for the pairs. So the semi-variance of neighbors is
# returned for the lag 0, and looks like a nugget. gam_1D does the same. In gam, the second cell of a pair also has to be in
# row 1 or later, as in Fortran, where 1 is the first. So no pair within the first row is counted. An array of one row has a
# variogram of zeros.
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
from geostatspy.geostats import gam, gam_1D

print(f'geostatspy {version("geostatspy")}')


def by_definition(grid, x, y):
    rows, columns = grid.shape
    pairs = [(grid[i, j], grid[i + y, j + x]) for i in range(rows) for j in range(columns)
             if 0 <= i + y < rows and 0 <= j + x < columns]  # fmt: skip
    return sum((tail - head) ** 2 for tail, head in pairs) / 2 / len(pairs), len(pairs)


rng = np.random.default_rng(0)
for name, values in (('linear', 10.0 * np.arange(40)), ('random walk', rng.normal(size=40).cumsum())):
    for step in (1, 2):
        lags, seen, pairs = gam_1D(values, -1e9, 1e9, 10.0, step, 4, 0)
        right = np.array([by_definition(values[None], step * k, 0) for k in range(1, 5)])
        column = gam(values[:, None], -1e9, 1e9, 10.0, 10.0, 0, step, 4, 0)
        print(f'{name}, offset {step}: lags {lags}, semi-variances {seen.round(2)}. By the definition, those of lags '
              f'{10 * step * np.arange(1, 5)}')  # fmt: skip
        assert np.allclose(seen, right[:, 0]) and np.array_equal(pairs, right[:, 1]) and np.allclose(column[1], seen)
        assert np.allclose(lags, 10 * step * np.arange(4)) and np.allclose(column[0], lags), 'this has changed'

grid = rng.normal(size=(5, 6))
grid[0] *= 5  # the first row varies more than the others
for name, x, y, wrong in (('along rows', 1, 0, True), ('along columns', 0, 1, False), ('along columns, down', 0, -1, True)):
    _, seen, pairs = gam(grid, -1e9, 1e9, 1.0, 1.0, x, y, 1, 0)
    flipped = gam(grid[::-1], -1e9, 1e9, 1.0, 1.0, x, -y, 1, 0)
    right, count = by_definition(grid, x, y)
    print(f'{name}: semi-variance {seen[0]:.3f} of {pairs[0]:.0f} pairs, of the turned grid {flipped[1][0]:.3f} of '
          f'{flipped[2][0]:.0f}, by the definition {right:.3f} of {count}')  # fmt: skip
    assert (np.isclose(seen[0], right) and pairs[0] == count) != wrong, 'this has changed'
    if x:
        rest = by_definition(grid[1:], x, y)
        assert np.isclose(seen[0], rest[0]) and pairs[0] == rest[1], 'this has changed'
_, seen, pairs = gam(grid[:1], -1e9, 1e9, 1.0, 1.0, 1, 0, 3, 0)
print(f'one row: semi-variances {seen} of {pairs} pairs, by the definition {by_definition(grid[:1], 1, 0)[0]:.3f} of 5')
assert not seen.any() and not pairs.any(), 'this has changed'
PY
