#!/usr/bin/env bash
# segregation 2.5.4: metric='haversine' of the centralization indices takes degrees for radians, and so sorts units in a wrong order.
#
# Expected: AbsoluteCentralization and RelativeCentralization sort units by their distance from the center. Their documentation says to use
# metric='haversine' if coordinates are in degrees. The haversine formula has sines and cosines of angles.
# Seen: sines are taken of degrees as if they were radians. One degree of longitude at 60 degrees north is half as long as one of
# latitude. The index computes 0.95 of one for it, as cos(60 radians) is -0.95, and distances wrap around at a few degrees.
# Units get another order, and the indices other values, as for an order by the true distances, or for the same units in meters.
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
from segregation.singlegroup import AbsoluteCentralization, RelativeCentralization
from shapely.geometry import box

print(f'segregation {version("segregation")}')
east = np.array([0, 1.0, 0, 2.2, 0, 4, 0])
north = np.array([0, 0, 0.8, 0, 1.5, 0, 2.5])
group, total = np.array([50, 40, 30, 20, 10, 5, 1]), np.full(7, 60)
units = [box(10 + x - 0.01, 60 + y - 0.01, 10 + x + 0.01, 60 + y + 0.01) for x, y in zip(east, north)]
degrees = geopandas.GeoDataFrame({'group': group, 'total': total}, geometry=units, crs='EPSG:4326')
meters = degrees.to_crs('EPSG:32632')


def haversine(x, y, x0, y0):
    return 2 * np.arcsin(np.sqrt(np.sin((y - y0) / 2) ** 2 + np.cos(y0) * np.cos(y) * np.sin((x - x0) / 2) ** 2))


def by_hand(share_of, distance):
    order = distance.argsort()
    a, b = (np.cumsum(v[order]) / v.sum() for v in (group, share_of))
    return (a[:-1] * b[1:]).sum() - (a[1:] * b[:-1]).sum()


true = haversine(*np.radians([10 + east, 60 + north]), *np.radians([10, 60]))
taken = haversine(10 + east, 60 + north, 10, 60)
print(f'distances in km: {(6371 * true).round()}\nhaversine of degrees: {taken.round(2)}')
area = degrees.area.to_numpy()
for index, share_of in ((AbsoluteCentralization, area), (RelativeCentralization, total - group)):
    seen = float(index(degrees, 'group', 'total', center=(10, 60), metric='haversine').statistic)
    right, wrong = by_hand(share_of, true), by_hand(share_of, taken)
    print(f'{index.__name__}: {seen:.4f}, by the true distances {right:.4f}, by those of degrees as radians {wrong:.4f}')
    assert np.isclose(seen, wrong) and abs(seen - right) > 0.02, 'this has changed'
center = meters.geometry.centroid[0]
seen = float(RelativeCentralization(meters, 'group', 'total', center=(center.x, center.y)).statistic)
print(f'RelativeCentralization in meters: {seen:.4f}')
assert np.isclose(seen, by_hand(total - group, true)), 'this has changed'
PY
