#!/usr/bin/env bash
# pointpats 2.5.5: the functions F, G and J of a pattern depend on where the support ends, as the last distance always gets the value 1.
#
# Expected: G is the cumulative distribution of the distances to the nearest neighbors: G(d) is the share of points with a neighbor within d.
# F(d) is the same for random places. support says at which distances to evaluate them. It does not change their values.
# Seen: counts are divided by the number of distances within the support, not by the number of all. If the support ends before the largest
# distance, all values are too large, and the last one is 1. Points of which 30 % have a neighbor within 0.5 get G(0.5) = 1 for the support
# (0, 0.5), and 0.3 for (0, 2). J, the ratio (1 - G) / (1 - F), changes too.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pointpats==2.5.5 libpysal==4.14.1 geopandas==1.1.1 shapely==2.1.1 \
  numpy==2.2.6 pandas==2.2.3 scipy==1.15.3
cd "$folder"
"$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from pointpats import f, g
from pointpats.distance_statistics import j
from scipy.spatial.distance import cdist

print(f'pointpats {version("pointpats")}')
points = np.random.default_rng(0).uniform(0, 10, (60, 2))
between = cdist(points, points)
np.fill_diagonal(between, np.inf)
nearest = between.min(1)
empty = cdist(np.random.default_rng(1).uniform(0, 10, (500, 2)), points).min(1)  # From random places.
at = (0.25, 0.5)
right_g, right_f = ([(distance <= d).mean() for d in at] for distance in (nearest, empty))
right_j = [(1 - a) / (1 - b) for a, b in zip(right_g, right_f)]
print(f'at {at}, by the definition: G {np.round(right_g, 3)}, F {np.round(right_f, 3)}, J {np.round(right_j, 3)}')
for stop, count in ((4, 17), (1, 5), (0.5, 3)):
    support = np.linspace(0, stop, count)
    values = []
    for name, function, distances in (('G', g, nearest), ('F', f, empty), ('J', j, (nearest, empty))):
        options = {'truncate': False} if name == 'J' else {}
        grid, seen = function(points, support=support, distances=distances, **options)
        values.append([float(seen[np.isclose(grid, d)][0]) for d in at])
    print(f'support to {stop}: G {np.round(values[0], 3)}, F {np.round(values[1], 3)}, J {np.round(values[2], 3)}')
    same = all(np.allclose(value, right) for value, right in zip(values, (right_g, right_f, right_j)))
    assert same == (stop == 4), 'this has changed'
assert values[0][1] == values[1][1] == 1, 'this has changed'
PY
