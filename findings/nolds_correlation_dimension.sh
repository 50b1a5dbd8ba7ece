#!/usr/bin/env bash
# nolds 0.6.2: corr_dim counts each point as a neighbor of itself, so that correlation dimensions are far too low.
#
# Expected: C(r) is "the fraction of pairs of points X_i in the phase space whose distance is smaller than r". The source says
# of self-matches that "it is safe to assume that this was an oversight" in the first paper, and divides by n (n - 1), the
# number of pairs without them. So C(r) is of pairs of two points. Independent normal values have about the dimension of the
# embedding.
# Seen: the matrix of distances is filled with 0 on its diagonal, and the whole matrix is compared with r. So n self-matches
# are added to each sum, and C(r) is too large by 1 / (n - 1). It never falls below this. Where few pairs are near, this is
# nearly all of C(r), which is then flat. With 500 normal values in 4 dimensions, the result is 0.2 instead of 4.0. A noise
# looks like a low-dimensional attractor. Version 0.6.3 has the same source of this function.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet nolds==0.6.2 numpy==2.4.6 future==1.0.0 setuptools==80.9.0
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import nolds
import numpy as np

print(f'nolds {version("nolds")}')
data = np.random.default_rng(0).normal(size=500)
for dimension in (1, 2, 3, 4):
    seen, (radii, sums, _) = nolds.corr_dim(data, dimension, fit='poly', debug_data=True)
    points = np.lib.stride_tricks.sliding_window_view(data, dimension)
    distances = np.linalg.norm(points[:, None] - points[None], axis=-1)[np.triu_indices(len(points), 1)]
    pairs = np.array([(distances <= radius).mean() for radius in np.exp(radii)])
    found = pairs > 0
    right = np.polyfit(radii[found], np.log(pairs[found]), 1)[0]
    print(f'embedding in {dimension} dimensions: correlation dimension {seen:.3f}, without self-matches {right:.3f}. '
          f'C at the smallest r: {np.exp(sums[0]):.2e}, without self-matches {pairs[0]:.2e}')  # fmt: skip
    assert np.allclose(np.exp(sums), pairs + 1 / (len(points) - 1)), 'this has changed'
    assert dimension == 1 or seen < 0.9 * right, 'this has changed'
    assert right > 0.85 * dimension
assert seen < 0.4, 'this has changed'
PY
