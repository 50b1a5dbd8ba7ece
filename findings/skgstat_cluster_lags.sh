#!/usr/bin/env bash
# scikit-gstat 1.0.26: lag classes by kmeans and ward are shifted by half a cluster, and the last cluster is lost.
#
# Expected: with bin_func 'kmeans' or 'ward', n clusters of distances up to maxlag are found, and "the lag class edges are
# formed equidistant from each cluster center". "The cluster centroids are used to calculate the upper edges of the lag
# classes, by setting it to half of the distance between two neighboring clusters". So the upper edge of the class of a cluster
# is halfway to the next one, and each cluster has a class.
# Seen: the edges are halfway between 0 and the first center, the first and the second, and so on. The last edge is halfway
# between the last two centers. With three clusters of distances near 2, 6 and 12, the first class is empty, the second has
# those near 2, the third those near 6, and distances near 12 are in no class.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet scikit-gstat==1.0.26 numpy==2.4.6 scipy==1.16.3 scikit-learn==1.8.0 setuptools==80.9.0
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from skgstat import Variogram

print(f'scikit-gstat {version("scikit-gstat")}')
rng = np.random.default_rng(0)
distances = np.concatenate([rng.normal(center, 0.1, size) for center, size in ((2, 30), (6, 50), (12, 40))])
# Pairs of points on far parallel lines, so that only these distances are below maxlag.
points = np.array([(end, 100.0 * k) for k, distance in enumerate(distances) for end in (0.0, distance)])
values = rng.normal(size=len(points))
for name in ('kmeans', 'ward'):
    variogram = Variogram(points, values, n_lags=3, maxlag=20, bin_func=name)
    edges, counts = variogram.bins, variogram.bin_count
    print(f'{name}: upper edges {edges.round(2)}, numbers of pairs {counts}, in no class {len(distances) - counts.sum()}. '
          f'By the definition, edges 4 and 9 and the largest distance, pairs 30, 50 and 40')  # fmt: skip
    assert np.allclose(edges, [1, 4, 9], atol=0.2) and counts.tolist() == [0, 30, 50], 'this has changed'
PY
