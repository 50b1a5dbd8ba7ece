#!/usr/bin/env bash
# graphtools 2.1.0: shortest_path(distance='constant') has steps of length 1/2, and points with equal data are infinitely far from each other.
#
# Expected: "'constant' gives constant edge lengths. 'data' gives distances in ambient data space." "D[i,j] gives the shortest distance
# from point i to point j along the graph. If no path exists, the distance is np.inf" (docstring of shortest_path, for "kNNGraphs with
# decay=None").
# Seen: graphtools/base.py takes the kernel for the lengths of 'constant'. By default, kernel_symm='+', it is (K + K.T) / 2, which has 1/2
# for a neighbour that is not mutual. Two steps over such edges are as long as one over a mutual edge. Then all distances of zero off the
# diagonal are set to infinity, as the sign of a missing path. But for 'data', equal points are joined by an edge of length zero.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet graphtools==2.1.0 numpy==1.26.4 scipy==1.13.1 scikit-learn==1.7.2 PyGSP==0.6.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import graphtools
import numpy as np
from scipy.sparse.csgraph import connected_components, shortest_path

print(f'graphtools {version("graphtools")}')
points = np.array([[0.0], [1.0], [2.1], [3.3], [4.6], [6.0]])
graph = graphtools.Graph(points, knn=1, decay=None, n_pca=None, verbose=0)
seen, right = graph.shortest_path(distance='constant'), shortest_path(graph.K, unweighted=True)
print(f'six points in a row, kernel of the second {graph.K.toarray()[1].tolist()}. '
      f'From the first, constant: {seen[0].tolist()}, steps {right[0].tolist()}')  # fmt: skip
assert right[0].tolist() == [0, 1, 2, 3, 4, 5] and seen[0].tolist() == [0, 1, 1.5, 2, 2.5, 3], 'this has changed'

points = np.array([[0.0, 0], [0, 0], [1, 0], [2, 0], [3.2, 0]])
graph = graphtools.Graph(points, knn=2, decay=None, n_pca=None, verbose=0)
for kind in ('data', 'constant'):
    seen = graph.shortest_path(distance=kind, method='D')
    print(f'the first two of five points are equal, {kind}: from the first point {seen[0].tolist()}')
    assert np.isinf(seen[0, 1]) == (kind == 'data') and np.isfinite(seen[0, 2:]).all(), 'this has changed'
print(f'edge between both in the kernel: {graph.K[0, 1]}, connected components: {connected_components(graph.K)[0]}')
assert graph.K[0, 1] == 1 and connected_components(graph.K)[0] == 1, 'this has changed'
PY
