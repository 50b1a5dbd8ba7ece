#!/usr/bin/env bash
# graspologic 3.4.4: multigraph_lcc_union returns an array of graphs as it is, with all nodes, and the indices of the component beside it.
#
# Expected: multigraph_lcc_union takes a list or an array of graphs, and returns the parts of them in the largest connected component of
# their union. Both forms have the same result.
# Seen: a list is cut to the component, and an array is not: the nodes outside stay, and so do isolated ones. With return_inds=True, the
# indices are those of the component, and are fewer than the nodes of the arrays, so that the labels of nodes no longer fit. The sister
# function multigraph_lcc_intersection cuts both. Edges that cancel in the mean, 1 in a graph and -1 in another one, are no edge of the
# union either.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet graspologic==3.4.4 graspologic-native==1.3.1 networkx==3.6.1 numpy==1.26.4 scipy==1.17.1 \
  pandas==3.0.6 scikit-learn==1.9.1 matplotlib==3.11.2 gensim==4.4.0 hyppo==0.5.2 POT==0.9.7.post1 umap-learn==0.5.12 \
  beartype==0.18.5 statsmodels==0.14.6
cd "$folder"
MPLBACKEND=Agg OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from graspologic.utils import multigraph_lcc_intersection, multigraph_lcc_union

print(f'graspologic {version("graspologic")}')
n = 6


def graph(*edges):
    a = np.zeros((n, n))
    for i, j, weight in edges:
        a[i, j] = a[j, i] = weight
    return a


def component(graphs):
    """The nodes of the largest component of the union."""
    reached = (np.any(np.array(graphs) != 0, axis=0) | np.eye(n, dtype=bool)).astype(float)
    reached = np.linalg.matrix_power(reached, n) > 0
    return np.flatnonzero(reached[reached.sum(1).argmax()])


graphs = [graph((0, 1, 1), (3, 4, 1)), graph((1, 2, 1))]
right = component(graphs)
listed, kept = multigraph_lcc_union(graphs, return_inds=True)
stacked, indices = multigraph_lcc_union(np.array(graphs), return_inds=True)
both = multigraph_lcc_intersection(np.array(graphs))
print(f'nodes of the largest component of the union {right.tolist()}, indices of a list {kept.tolist()}, of an array {indices.tolist()}')
print(f'shape of the graphs of a list {listed[0].shape}, of an array {stacked.shape[1:]}, '
      f'of an array in the intersection {both.shape[1:]}, expected of the union {(len(right),) * 2}')  # fmt: skip
assert right.tolist() == kept.tolist() == indices.tolist() == [0, 1, 2], 'this has changed'
assert listed[0].shape == (3, 3) and stacked.shape == (2, n, n) and (stacked == np.array(graphs)).all(), 'this has changed'
assert both.shape[1] < n, 'this has changed'

signed = [graph((0, 1, 1), (1, 2, 1)), graph((1, 2, -1))]
kept = multigraph_lcc_union(signed, return_inds=True)[1]
print(f'an edge is 1 in one graph and -1 in the other: nodes {kept.tolist()}, expected {component(signed).tolist()}')
assert kept.tolist() == [0, 1] and component(signed).tolist() == [0, 1, 2], 'this has changed'
PY
