#!/usr/bin/env bash
# momepy 0.11.0: street_profile says that a street between unbroken walls is open, the more the shorter it is.
#
# Expected: street_profile draws perpendicular lines to a street every distance, and measures on these. Openness is the part of lines that
# meet no building on their side. Between two unbroken rows of houses it is 0, and the width is the distance of the rows.
# Seen: the first and the last point of a street have lines of length 0, which meet nothing, and count as open. Of a street of 40 between
# such rows, openness is 0.4, and of one of 20 it is 0.67. A street which is not longer than distance has no other lines: its openness is
# 1 and its width is tick_length, as if there were no houses. So openness mostly depends on length. A smaller distance makes it smaller.
# The function came with: https://github.com/pysal/momepy/pull/593
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet momepy==0.11.0 networkx==3.6.1 libpysal==4.14.1 geopandas==1.2.0 pandas==3.1.1 numpy==2.4.6 \
  shapely==2.2.0
cd "$folder"
"$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import geopandas
import momepy
import numpy as np
from shapely.geometry import LineString, box

print(f'momepy {version("momepy")}')
both = geopandas.GeoDataFrame(geometry=[box(-100, 5, 500, 15), box(-100, -15, 500, -5)])
one = both.iloc[:1]
for length in (8.0, 10.0, 20.0, 40.0, 100.0, 400.0):
    street = geopandas.GeoDataFrame(geometry=[LineString([(0, 0), (length, 0)])])
    points = np.linspace(0, length, int(np.ceil(length / 10)) + 1)
    seen = momepy.street_profile(street, both, distance=10, tick_length=50).iloc[0]
    half = momepy.street_profile(street, one, distance=10, tick_length=50).iloc[0]
    # By the definition: each line of 25 to a side meets the wall at 5.
    right = np.mean([[not 5 <= 25, not 5 <= 25] for _ in points])
    print(f'length {length:.0f} between two walls: openness {seen["openness"]:.3f}, expected {right:.0f}, '
          f'width {seen["width"]:.0f}, expected 10. Beside one wall: openness {half["openness"]:.3f}, expected 0.5')  # fmt: skip
    ends = 2 / len(points)
    assert np.isclose(seen['openness'], ends) and np.isclose(half['openness'], ends + (1 - ends) / 2), 'this has changed'
    assert seen['width'] == (50 if length <= 10 else 10), 'this has changed'

street = geopandas.GeoDataFrame(geometry=[LineString([(0, 0), (40, 0)])])
values = [float(momepy.street_profile(street, both, distance=d, tick_length=50)['openness'].iloc[0]) for d in (40, 20, 10, 5, 1)]
print(f'the same street of 40, with lines every 40, 20, 10, 5 and 1: openness {np.round(values, 3).tolist()}, expected 0')
assert values[0] == 1 and (np.diff(values) < 0).all(), 'this has changed'
PY
