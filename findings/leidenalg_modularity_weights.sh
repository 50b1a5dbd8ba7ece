#!/usr/bin/env bash
# leidenalg 0.12.0: the modularity of a weighted partition is that of the graph without weights: the best partition seems to be a worse one.
#
# Expected: find_partition(graph, ModularityVertexPartition, weights=...) gives a partition that is an igraph VertexClustering, with the
# property modularity, "Returns the modularity score" (docstring of igraph). igraph passes the weights to its clusterings: "If the original
# graph was weighted, you should pass a dictionary containing a weight key" (docstring of VertexClustering,
# python.igraph.org/en/stable/api/igraph.VertexClustering.html). Partitions by Graph.community_leiden have the weighted one.
# Seen: MutableVertexPartition.__init__ in leidenalg/VertexPartition.py passes no modularity_params. modularity, q and
# recalculate_modularity are those without weights, while quality() has the weights. In a graph with one strong edge, the partition that was
# optimized has a lower modularity than the triangles at the ends of this edge, which have a negative one with weights.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet leidenalg==0.12.0 igraph==1.0.0 numpy==2.4.6
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import igraph
import leidenalg
import numpy as np

print(f'leidenalg {version("leidenalg")}')
edges = [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 5), (5, 3)]
weights = np.array([1, 1, 1, 10, 1, 1, 1.0])
graph = igraph.Graph(edges)
graph.es['weight'] = weights


def modularity(weights, membership):
    w = np.zeros((6, 6))
    w[tuple(np.transpose(edges))] = weights
    w += w.T
    same = np.equal.outer(membership, membership)
    return ((w / w.sum() - np.outer(w.sum(0), w.sum(1)) / w.sum() ** 2) * same).sum()


optimized = leidenalg.find_partition(graph, leidenalg.ModularityVertexPartition, weights='weight', seed=0)
triangles = leidenalg.ModularityVertexPartition(graph, initial_membership=[0, 0, 0, 1, 1, 1], weights='weight')
for name, partition in (('optimized', optimized), ('triangles', triangles)):
    weighted, unweighted = (modularity(w, partition.membership) for w in (weights, np.ones(7)))
    print(f'{name} {partition.membership}: modularity {partition.modularity:.3f}, quality() {partition.quality():.3f}. '
          f'Right with weights {weighted:.3f}, without {unweighted:.3f}')  # fmt: skip
    assert np.isclose(partition.quality(), weighted) and np.isclose(partition.modularity, unweighted), 'this has changed'
    assert np.isclose(partition.q, unweighted) and np.isclose(partition.recalculate_modularity(), unweighted), 'this has changed'
    assert abs(weighted - unweighted) > 0.05, 'this has changed'
assert optimized.quality() > 0 > triangles.quality() and optimized.modularity < triangles.modularity, 'this has changed'

other = graph.community_leiden('modularity', weights='weight', n_iterations=-1)
print(f'by igraph {other.membership}: modularity {other.modularity:.3f}, right {modularity(weights, other.membership):.3f}')
assert np.isclose(other.modularity, modularity(weights, other.membership)), 'this has changed'
PY
