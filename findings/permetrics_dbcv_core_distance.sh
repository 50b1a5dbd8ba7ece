#!/usr/bin/env bash
# permetrics 2.1.0: the density-based index DBCV has the core distance with a positive exponent, so that far points dominate.
#
# Expected: DBCV of Moulavi et al. (2014), which the source names, has the core distance (sum of (1 / distance)^d / (n -
# 1))^(-1/d) over the other points of a cluster in d dimensions. It is an inverse density, dominated by the nearest neighbors.
# Seen: the core distance is (sum of distance^d / (n - 1))^(1/d), the opposite. It is dominated by the farthest points, and is
# about the extent of the cluster. An elongated cluster, which the index is made for, then has the sparseness of its length.
# For two long parallel strips, the index is negative, where the definition gives a high positive value. It even prefers to cut
# both strips across in the middle.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet permetrics==2.1.0 numpy==2.4.6 scipy==1.17.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from permetrics import ClusteringMetric

print(f'permetrics {version("permetrics")}')


def tree(weights):
    """Edges of a minimum spanning tree by Prim's algorithm."""
    inside, edges = [0], []
    while len(inside) < len(weights):
        outside = np.setdiff1d(np.arange(len(weights)), inside)
        part = weights[np.ix_(inside, outside)]
        i, j = np.unravel_index(part.argmin(), part.shape)
        edges.append((inside[i], outside[j]))
        inside.append(outside[j])
    return np.array(edges)


def dbcv(points, labels, sign):
    """The definition with sign -1, and the same with core distances as coded with sign 1."""
    n, d = points.shape
    distance = np.linalg.norm(points[:, None] - points, axis=2)
    core = np.zeros(n)
    for i in range(n):
        others = (labels == labels[i]) & (np.arange(n) != i)
        core[i] = np.mean(distance[i, others] ** (sign * d)) ** (sign / d)
    reach = np.maximum(distance, np.maximum.outer(core, core))
    sparseness, inner = [], []
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        edges = members[tree(reach[np.ix_(members, members)])]
        nodes, degrees = np.unique(edges, return_counts=True)
        inner.append(nodes[degrees > 1])
        kept = edges[np.isin(edges, inner[-1]).all(1)]
        sparseness.append(reach[kept[:, 0], kept[:, 1]].max())
    total = 0
    for k, label in enumerate(np.unique(labels)):
        separation = min(reach[np.ix_(inner[k], inner[m])].min() for m in range(len(inner)) if m != k)
        total += np.mean(labels == label) * (separation - sparseness[k]) / max(separation, sparseness[k])
    return total


rng = np.random.default_rng(0)
strip = np.column_stack([np.linspace(0, 30, 90), rng.normal(0, 0.1, 90)])
X = np.concatenate([strip, strip + [0.15, 6]])
strips, halves = np.repeat([0, 1], 90), np.tile(np.repeat([0, 1], 45), 2)
values = {}
for name, labels in (('one cluster per strip', strips), ('both strips cut across', halves)):
    metric = ClusteringMetric(y_pred=labels, X=X)
    seen = metric.density_based_clustering_validation_index()
    right, coded = dbcv(X, labels, -1), dbcv(X, labels, 1)
    values[name] = seen, right
    print(f'{name}: {seen:.3f}, by the definition {right:.3f}, with the opposite exponent {coded:.3f}')
    assert abs(seen - coded) < 0.05, 'this has changed'  # equal edges of the tree leave some freedom
(seen, right), (seen_cut, right_cut) = values.values()
assert right > 0.5 > 0 > right_cut
assert seen < 0 and seen_cut > seen, 'this has changed'
PY
