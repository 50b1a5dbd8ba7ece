#!/usr/bin/env bash
# pointpats 2.5.5: with a matrix of distances, the G function of any pattern is 1 at once: each point is its own nearest neighbor.
#
# Expected: g(points, distances=D) accepts the distances of all points, (n, n), or of each point to its nearest neighbor, (n,). Both are
# distances to another point, and have the same result, as for k and l, and as without distances.
# Seen: of a row, the minimum is taken with its diagonal entry, which is 0. All nearest neighbor distances are 0, and G is 1 from the first
# step on. With them J is 0: any pattern looks completely clustered. A warning says that the matrix is more than needed, and that
# the distances to the nearest neighbors are computed. An infinite diagonal is right.
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
from pointpats import g, k
from pointpats.distance_statistics import j
from scipy.spatial.distance import cdist

print(f'pointpats {version("pointpats")}')
side = np.arange(8.0)
points = np.array([(x, y) for x in side for y in side])  # A grid, the most regular pattern: no neighbors within 1.
points += np.random.default_rng(0).uniform(-0.2, 0.2, points.shape)
matrix = cdist(points, points)
open_matrix = matrix + np.diag(np.full(len(points), np.inf))
nearest = open_matrix.min(1)
support = np.linspace(0, 2, 9)
right = np.array([(nearest <= d).mean() for d in support])
print(f'distances {support}\nG by the definition      {right.round(2)}')
for name, distances in (('no distances', None), ('nearest distances', nearest), ('infinite diagonal', open_matrix), ('matrix', matrix)):
    seen = g(points, support=support, distances=distances)[1]
    print(f'G, {name:18}    {seen.round(2)}')
    assert np.allclose(seen, right) == (name != 'matrix'), 'this has changed'
assert np.array_equal(seen, (support > 0).astype(float)), 'this has changed'
assert np.allclose(k(points, support=support, distances=matrix)[1], k(points, support=support)[1]), 'this has changed'
empty = cdist(np.random.default_rng(1).uniform(0, 7, (500, 2)), points).min(1)
regular, clustered = (j(points, support=support, distances=(d, empty))[1][2] for d in (nearest, matrix))
print(f'J(0.5), which is above 1 for regular patterns and below 1 for clustered ones: {regular:.2f}, with the matrix {clustered:.2f}')
assert regular > 1 and clustered == 0, 'this has changed'
PY
