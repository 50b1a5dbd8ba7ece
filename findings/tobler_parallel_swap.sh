#!/usr/bin/env bash
# tobler 0.13.0: area_interpolate with n_jobs=2 swaps source and target, if the target has as many columns as the source has rows, or more.
#
# Expected: n_jobs is the "number of processes to run in parallel to generate the area allocation", and changes no number. Columns of the
# target, which are not read, do not either. An extensive variable is shared out by w_ij = a_ij / sum_k a_ik.
# Seen: the parallel path compares the number of rows of the source with the number of columns of the target, to choose which of them goes
# out in parts. If it is the target, pairs come back as (target, source), and are read as (source, target). Areas are then of other
# polygons, and most intersections are empty: of 100 people, 50 remain. If the numbers of rows differ, an index may be out of
# range, which at least is an error.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet tobler==0.13.0 libpysal==4.14.1 geopandas==1.2.0 pandas==3.1.1 numpy==2.4.6 \
  scipy==1.17.1 shapely==2.2.0 joblib==1.6.0 statsmodels==0.15.0 rasterio==1.4.4 rasterstats==0.21.0
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import geopandas as gpd
import numpy as np
from shapely.geometry import box
from tobler.area_weighted import area_interpolate

print(f'tobler {version("tobler")}')
edges = {'source': np.arange(5.0), 'target': np.array([0, 0.25, 0.5, 0.75, 4])}  # Strips of a band from 0 to 4.
strips = {name: [box(a, 0, b, 1) for a, b in zip(at, at[1:])] for name, at in edges.items()}
people = np.array([10.0, 20, 30, 40])
source = gpd.GeoDataFrame({'people': people}, geometry=strips['source'], crs=3857)
target = gpd.GeoDataFrame(geometry=strips['target'], crs=3857)
low, high = (np.maximum if first else np.minimum for first in (True, False))
s, t = edges['source'], edges['target']
shared = np.clip(high(s[1:, None], t[None, 1:]) - low(s[:-1, None], t[None, :-1]), 0, None)
right = people @ (shared / shared.sum(1, keepdims=True))
for columns in range(1, 7):
    one, two = (area_interpolate(source, target, ['people'], n_jobs=n)['people'].to_numpy() for n in (1, 2))
    print(f'target of {len(target)} rows and {columns} columns: n_jobs=1 {one.round(2)}, n_jobs=2 {two.round(2)}, by the '
          f'definition {right}')  # fmt: skip
    assert np.allclose(one, right), 'this has changed'
    assert np.allclose(two, [10, 0, 0, 40] if columns >= len(source) else right), 'this has changed'
    target[f'column {columns}'] = 0
PY
