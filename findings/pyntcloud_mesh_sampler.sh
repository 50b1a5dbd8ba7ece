#!/usr/bin/env bash
# pyntcloud 0.3.1: mesh_random gathers points at the first vertex of each triangle, and is not uniform.
#
# Expected: RandomMeshSampler has the docstring "sample points adjusting probabilities according to triangle area". By this,
# each part of the surface gets points according to its area. The mean of the points in a triangle is its centroid.
# Seen: a triangle is chosen by its area, but within it u is uniform in [0, 1] and v is uniform in [0, 1 - u]. The density of u
# should be 2 (1 - u). So half of the points are in the quarter of the area at the first vertex, and the mean is 1/2, 1/4 and
# 1/4 of the vertices, in place of 1/3 each. The samples depend on the order of the vertices of each face.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pyntcloud==0.3.1 numpy==1.26.4 scipy==1.13.1 pandas==2.3.3
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
import pandas as pd
from pyntcloud import PyntCloud

print(f'pyntcloud {version("pyntcloud")}')
np.random.seed(0)
vertices = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
count = 40000


def shares(points, first):  # the mean weights of the vertices, and the part of points in the quarter at the first vertex
    weights = np.stack([1 - points[:, 0] - points[:, 1], points[:, 0], points[:, 1]], 1)
    return weights.mean(0), (weights[:, first] > 0.5).mean()


rng = np.random.default_rng(0)
square = rng.uniform(size=(count, 2))
root = np.sqrt(square[:, :1])
uniform = (1 - root) * vertices[0] + root * (1 - square[:, 1:]) * vertices[1] + root * square[:, 1:] * vertices[2]
right, quarter = shares(uniform, 0)
print(f'uniform points: mean weights {right.round(3)}, part in the quarter at vertex 0: {quarter:.3f}')
assert np.allclose(right, 1 / 3, atol=0.01) and abs(quarter - 0.25) < 0.01, 'the definition is wrong'
for face in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
    mesh = pd.DataFrame([face], columns=['v1', 'v2', 'v3'])
    cloud = PyntCloud(pd.DataFrame(vertices, columns=['x', 'y', 'z']), mesh=mesh)
    points = cloud.get_sample('mesh_random', n=count)[['x', 'y', 'z']].to_numpy()
    seen, quarter = shares(points, face[0])
    print(f'face {face}: mean weights {seen.round(3)}, part in the quarter at vertex {face[0]}: {quarter:.3f}')
    assert np.allclose(seen[list(face)], [1 / 2, 1 / 4, 1 / 4], atol=0.01) and abs(quarter - 0.5) < 0.01, 'this has changed'
PY
