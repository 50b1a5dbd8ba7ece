#!/usr/bin/env bash
# POT 0.9.7.post1: gmm_barycenter_fixed_point is wrong for weights w_bar that are not equal, and writes into its arguments.
#
# Expected: 'euclidean' projects by a "convex combination" of the components that the plan sends a component to, says the documentation. The
# row i of the plan sums to w_bar_i, and is divided by it. barycentric_proj_method='bures' does so. The barycenter of two mixtures which
# differ by a shift is the mixture half way.
# Seen: 'euclidean', the default, multiplies by the number of components instead, which is right for equal weights only. With weights 0.8
# and 0.2, the means are multiplied by 1.6 and 0.4, and so are the covariances. Both methods write the result into means_init and covs_init.
# If these are arrays of means_list and covs_list, that mixture changes between the iterations, and the result goes to the other.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet POT==0.9.7.post1 numpy==2.4.6 scipy==1.17.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from ot.gmm import gmm_barycenter_fixed_point

print(f'POT {version("POT")}')
means = [np.array([[1.0, 0.0], [5.0, 0.0]]), np.array([[1.0, 2.0], [5.0, 2.0]])]
covs = [np.stack([np.eye(2)] * 2) for _ in range(2)]
half_way = np.array([[1.0, 1.0], [5.0, 1.0]])


def barycenter(weights, w_bar, iterations, method):
    starts = means[0] + 0.1, covs[0].copy()
    m, c = gmm_barycenter_fixed_point(means, covs, [weights] * 2, *starts, np.array([0.5, 0.5]), w_bar=w_bar, iterations=iterations,
                                      barycentric_proj_method=method)  # fmt: skip
    assert np.array_equal(m, starts[0]) and np.array_equal(c, starts[1]), 'this has changed'
    return m, c[:, 0, 0]


equal, other = np.full(2, 0.5), np.array([0.8, 0.2])
for weights in (equal, other):
    for method in ('euclidean', 'bures'):
        for iterations in (1, 3):
            m, variance = barycenter(weights, weights, iterations, method)
            print(f'weights {weights}, {method}, {iterations} iterations: means {m.round(3).tolist()}, variances {variance.round(4)}')
            right = np.allclose(m, half_way) and np.allclose(variance, 1, atol=1e-3)
            assert right == (method == 'bures' or weights is equal), 'this has changed'
            if not right:
                factor = 2 * weights
                assert np.allclose(m, half_way * factor[:, None]) and np.allclose(variance, factor, rtol=1e-3), 'this has changed'

m, _ = gmm_barycenter_fixed_point(means, covs, [equal] * 2, means[0], covs[0], np.array([0.5, 0.5]), iterations=50)
print(f'started from the first mixture, weights {equal}, 50 iterations: means {m.round(3).tolist()}, now also those of the first mixture')
assert m is means[0] and np.allclose(m, means[1]), 'this has changed'
PY
