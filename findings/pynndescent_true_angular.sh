#!/usr/bin/env bash
# pynndescent 0.7.0: with metric="true_angular", the nearest neighbor has the greatest distance, and the farthest the least.
#
# Expected: documented as "the actual angle between two vectors, normalized to [0, 1]", which "returns 0 for identical directions". The
# distances of neighbors grow along each row, as they do with metric="cosine".
# Seen: the distance is one minus the angle. The neighbors are found and sorted by another function, and are right, but their distances
# fall along the row: 1 for the query itself. A graph built from them gives the greatest lengths to the shortest edges.
# That the function is no distance is known: https://github.com/lmcinnes/pynndescent/issues/232
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pynndescent==0.7.0 numpy==1.26.4 scipy==1.13.1 scikit-learn==1.9.1 numba==0.68.1
"$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from pynndescent import NNDescent

print(f'pynndescent {version("pynndescent")}')
x = np.random.default_rng(0).normal(size=(60, 5)).astype(np.float32)
unit = x / np.linalg.norm(x, axis=1, keepdims=True)
angle = np.arccos(np.clip(unit @ unit.T, -1, 1)) / np.pi
right = np.sort(angle, 1)[:, 1:6]

index = NNDescent(x, metric='true_angular', n_neighbors=10, random_state=0)
neighbors, seen = (array[:, 1:6] for array in index.neighbor_graph)
print(f'node 0: neighbors {neighbors[0].tolist()}, distances {seen[0].round(3).tolist()} instead of {right[0].round(3).tolist()}')
assert np.allclose(np.take_along_axis(angle, neighbors, 1)[0], right[0], atol=1e-5), 'the neighbors are wrong'
assert np.allclose(seen[0], 1 - right[0], atol=1e-5) and (np.diff(seen, axis=1) <= 0).all(), 'this has changed'
itself = index.query(x[:1], k=1)[1][0, 0]
print(f'distance of the query to itself: {itself}')
assert abs(itself - 1) < 1e-5, 'this has changed'
cosine = NNDescent(x, metric='cosine', n_neighbors=10, random_state=0).neighbor_graph[1]
assert (np.diff(cosine, axis=1) >= 0).all(), 'this has changed'
PY
