#!/usr/bin/env bash
# pyntcloud 0.3.1: voxel features TDF are no truncated distances, and x_max are no maxima of negative coordinates.
#
# Expected: get_feature_vector('TDF') is the "Truncated Distance Function. Value between 0 and 1 indicating the distance between
# the voxel's center and the closest point. 1 on the surface, 0 on voxels further than 2 * voxel side". x_max, y_max and z_max
# are the "maximum coordinate value of points inside each voxel".
# Seen: TDF is the plain distance, which is 0 on the surface, grows with it, and exceeds 1. The maxima start at 0, so that a
# voxel with negative coordinates has 0. Of centered clouds, half of all occupied voxels are wrong. The modes x_mean and density
# are right.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pyntcloud==0.3.1 numpy==1.26.4 scipy==1.13.1 pandas==2.3.3 numba==0.61.2
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from pyntcloud.structures import VoxelGrid

print(f'pyntcloud {version("pyntcloud")}')
rng = np.random.default_rng(0)
points = rng.normal(size=(300, 3))
points *= rng.uniform(2, 4, (300, 1)) / np.linalg.norm(points, axis=1, keepdims=True)
grid = VoxelGrid(points=points, n_x=8, n_y=8, n_z=8)
grid.compute()
side = grid.shape[0]
centers = grid.voxel_centers.astype(float)
nearest = np.sqrt(((centers[:, None] - points) ** 2).sum(2)).min(1)
seen = grid.get_feature_vector('TDF').ravel()
far = nearest > 2 * side
print(f'TDF: from {seen.min():.3f} to {seen.max():.3f}, the side of a voxel is {side:.3f}')
print(f'    nearest voxel {seen[nearest.argmin()]:.3f}, close to 1 is right; {far.sum()} voxels further than two sides '
      f'{seen[far].min():.3f} and more, 0 is right')  # fmt: skip
assert np.allclose(seen, nearest, atol=1e-5) and seen.max() > 1 and far.any() and seen[far].min() > 0, 'this has changed'
assert seen[nearest.argmin()] < 0.3, 'this has changed'

for axis, name in enumerate('xyz'):
    occupied = np.unique(grid.voxel_n)
    right = np.array([points[grid.voxel_n == voxel, axis].max() for voxel in occupied])
    mean = np.array([points[grid.voxel_n == voxel, axis].mean() for voxel in occupied])
    seen = grid.get_feature_vector(f'{name}_max').ravel()[occupied]
    wrong = ~np.isclose(seen, right)
    print(f'{name}_max: {wrong.sum()} of {len(occupied)} occupied voxels are wrong, {np.sum(right < 0)} have negative maxima')
    assert np.allclose(grid.get_feature_vector(f'{name}_mean').ravel()[occupied], mean), 'the definition is wrong'
    assert np.array_equal(wrong, right < 0) and (seen[wrong] == 0).all() and wrong.mean() > 0.3, 'this has changed'
PY
