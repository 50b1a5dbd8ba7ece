#!/usr/bin/env bash
# segregation 2.5.4: the indices of clustering take distance for proximity: a checkerboard is more clustered than two separate halves.
#
# Expected: SpatialProximity, AbsoluteClustering, DistanceDecayIsolation and DistanceDecayInteraction follow Massey and Denton (1988), and
# Morgan (1983): the proximity of two units is exp(-distance), and within a unit exp(-(0.6 area)^0.5). If the units of a group lie
# together, its isolation and clustering are higher, and its contact with others is lower, than if they alternate.
# Seen: the matrix of proximities is one minus this exponential: 0 for units at the same place, and growing with distance. People meet those
# far away most. All four indices order a row of two halves and an alternating row the wrong way round. Distances are divided
# by the sums of the rows as well, along the wrong axis, so that the matrix is not symmetric.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet segregation==2.5.4 libpysal==4.14.1 geopandas==1.1.1 shapely==2.1.1 numpy==2.2.6 pandas==2.2.3 \
  scipy==1.15.3 scikit-learn==1.9.1
cd "$folder"
"$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import geopandas
import numpy as np
from segregation.singlegroup import AbsoluteClustering, DistanceDecayInteraction, DistanceDecayIsolation, SpatialProximity
from shapely.geometry import box

print(f'segregation {version("segregation")}')
total = np.full(8, 100.0)
place = np.arange(8.0)
distance = np.abs(place[:, None] - place)
np.fill_diagonal(distance, 0.6**0.5)  # Units are squares of area 1.
near = np.exp(-distance)


def by_hand(x):
    y, t, n = total - x, total, len(x)
    meet = near * t / (near * t).sum(1, keepdims=True)
    chance = x.sum() / n**2 * near.sum()
    mean = {name: v @ near @ v / v.sum() ** 2 for name, v in (('x', x), ('y', y), ('t', t))}
    return {
        'SpatialProximity': (x.sum() * mean['x'] + y.sum() * mean['y']) / (t.sum() * mean['t']),
        'AbsoluteClustering': (x / x.sum() @ near @ x - chance) / (x / x.sum() @ near @ t - chance),
        'DistanceDecayIsolation': x / x.sum() @ meet @ (x / t),
        'DistanceDecayInteraction': x / x.sum() @ meet @ (y / t),
    }


rows = {'halves': np.array([90.0] * 4 + [10.0] * 4), 'alternating': np.array([90.0, 10.0] * 4)}
right = {name: by_hand(x) for name, x in rows.items()}
for index in (SpatialProximity, AbsoluteClustering, DistanceDecayIsolation, DistanceDecayInteraction):
    name = index.__name__
    seen = {}
    for row, x in rows.items():
        units = [box(p, 0, p + 1, 1) for p in place]
        frame = geopandas.GeoDataFrame({'group': x, 'total': total}, geometry=units, crs='EPSG:32633')
        seen[row] = float(index(frame, 'group', 'total').statistic)
    print(f'{name}: halves {seen["halves"]:.3f}, alternating {seen["alternating"]:.3f}. '
          f'By the definition {right["halves"][name]:.3f} and {right["alternating"][name]:.3f}')  # fmt: skip
    higher = name != 'DistanceDecayInteraction'
    assert (right['halves'][name] > right['alternating'][name]) == higher
    assert (seen['halves'] > seen['alternating']) != higher, 'this has changed'
PY
