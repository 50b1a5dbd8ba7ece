#!/usr/bin/env bash
# s-dbw 0.4.0: S_Dbw and SD of Halkidi et al. take standard deviations, where the papers have variances.
#
# Expected: method 'Halkidi' of S_Dbw is the "original paper [1]", Halkidi and Vazirgiannis (2001), and Scat is the
# "intra-cluster variance". There, sigma(S) is the vector of the variances of a data set in each dimension. Scat is the mean of
# the norms of sigma of the clusters, divided by the norm of sigma of all points. stdev is the root of the sum of these norms,
# divided by the number of clusters. SD of [4] has the same Scat.
# Seen: sigma is numpy.std instead of numpy.var. So Scat is far too large for compact clusters: 0.1 instead of 0.01. The radius
# stdev has the unit of a root of a distance. So S_Dbw changes if all points are multiplied by 10, and counts other points as
# near a center.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet s-dbw==0.4.0 numpy==2.4.6 scipy==1.17.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from s_dbw import SD, S_Dbw

print(f's-dbw {version("s-dbw")}')


def by_definition(points, labels, sigma):
    names = np.unique(labels)
    k, centers = len(names), [points[labels == name].mean(0) for name in names]
    norms = [np.linalg.norm(sigma(points[labels == name], axis=0)) for name in names]
    scat, radius = sum(norms) / k / np.linalg.norm(sigma(points, axis=0)), np.sqrt(sum(norms)) / k

    def density(center, members):
        return (np.linalg.norm(points[members] - center, axis=1) <= radius).sum()

    own = [density(centers[i], labels == names[i]) for i in range(k)]
    between = sum(density((centers[i] + centers[j]) / 2, (labels == names[i]) | (labels == names[j])) / max(own[i], own[j])
                  for i in range(k) for j in range(k) if i != j) / k / (k - 1)  # fmt: skip
    distances = np.linalg.norm(np.array(centers)[:, None] - np.array(centers), axis=2)
    far = distances.max() / distances[distances > 0].min() * (1 / distances.sum(1)).sum()
    return scat + between, scat + far


rng = np.random.default_rng(0)
labels = np.repeat([0, 1, 2], 60)
points = np.array([[0, 0], [1.5, 0], [0, 2.0]])[labels] + 0.25 * rng.normal(size=(180, 2))
for scale in (1.0, 10.0):
    data = scale * points
    right, root = by_definition(data, labels, np.var), by_definition(data, labels, np.std)
    options = dict(centr='mean', nearest_centr=False)
    seen = S_Dbw(data, labels, method='Halkidi', **options), SD(data, labels, k=1.0, **options)
    print(f'points times {scale:.0f}: S_Dbw {seen[0]:.4f}, by the paper {right[0]:.4f}. '
          f'SD {seen[1]:.4f}, by the paper {right[1]:.4f}')  # fmt: skip
    assert np.allclose(seen, root) and not np.allclose(seen, right, rtol=0.05), 'this has changed'
    if scale == 1:
        first = seen, right
assert np.isclose(first[1][0], right[0])  # S_Dbw of the paper does not depend on the unit
assert abs(first[0][0] - seen[0]) > 0.02, 'this has changed'
PY
