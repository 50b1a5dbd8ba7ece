#!/usr/bin/env bash
# igraph 1.0.0: get_adjacency(eids=True) gives the number of edges minus 1, and no edge ids.
#
# Expected: eids "specifies whether the edge IDs should be returned in the adjacency matrix. Since zero is a valid edge ID, the cells in the
# matrix that correspond to unconnected vertex pairs will contain -1 instead of 0 if eids is True" (docstring of Graph.get_adjacency,
# python.igraph.org/en/stable/api/igraph.Graph.html).
# Seen: the matrix has a 0 for each edge, whatever its id, a 1 for each loop of an undirected graph and for parallel edges, and -1
# elsewhere. _get_adjacency in igraph/adjacency.py passes eids to a function of the C core that has another parameter at this place, gets
# the numbers of edges from it, and subtracts 1. Used as ids of edges, all entries lead to the edge 0.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet igraph==1.0.0 numpy==2.4.6
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
import igraph
import numpy as np

print(f'igraph {igraph.__version__}')
edges = [(0, 1), (1, 2), (2, 3), (0, 3)]
for directed in (False, True):
    graph = igraph.Graph(edges, directed=directed)
    right = np.full((4, 4), -1)
    for edge in graph.es:
        right[edge.source, edge.target] = edge.index
        if not directed:
            right[edge.target, edge.source] = edge.index
    seen = np.array(graph.get_adjacency(eids=True).data)
    counts = np.array(graph.get_adjacency().data)
    print(f'directed {directed}: {seen.tolist()}, right {right.tolist()}')
    assert np.array_equal(seen, counts - 1) and not np.array_equal(seen, right), 'this has changed'
    assert np.array_equal(seen >= 0, right >= 0) and seen.max() == 0 and right.max() == 3, 'this has changed'

weights = np.array([1.0, 2, 4, 8])
graph = igraph.Graph(edges)
seen = np.array(graph.get_adjacency(eids=True).data)
strength = np.where(seen >= 0, weights[seen], 0).sum(1)
print(f'strengths by these ids {strength}, by igraph {graph.strength(weights=weights.tolist())}')
assert np.allclose(strength, 2) and graph.strength(weights=weights.tolist()) == [9, 3, 6, 12], 'this has changed'
assert [graph.get_eid(*edge) for edge in edges] == [0, 1, 2, 3]

loop = np.array(igraph.Graph([(0, 1), (1, 1)]).get_adjacency(eids=True).data)
parallel = np.array(igraph.Graph([(0, 1), (0, 1), (0, 1)]).get_adjacency(eids=True).data)
print(f'edge 0 and the loop 1: {loop.tolist()}. Parallel edges 0, 1, 2: {parallel.tolist()}')
assert loop.tolist() == [[-1, 0], [0, 1]] and parallel.tolist() == [[-1, 2], [2, -1]], 'this has changed'
PY
