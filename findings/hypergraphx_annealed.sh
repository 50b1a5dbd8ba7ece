#!/usr/bin/env bash
# hypergraphx 1.8.0: the annealed adjacency matrix has twice the average counts, only above the diagonal, and no row for the last node.
#
# Expected: "the entry (i, j) of the adjacency matrix counts the average number of hyperedges [...] where both i and j are contained over
# time": the mean of the adjacency matrices of all times.
# Seen: each count is added for (i, j) and for (j, i), under the same key. The result is one triangle of twice the mean, and no square
# matrix: it ends with the last row that has an entry. If the times are not consecutive numbers, as with time stamps, the function
# raises a KeyError.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet hypergraphx==1.8.0 numpy==1.26.4 scipy==1.13.1 networkx==3.6.1
"$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from hypergraphx import TemporalHypergraph
from hypergraphx.linalg import annealed_adjacency_matrix

print(f'hypergraphx {version("hypergraphx")}')
edges = [((0, 1), 0), ((0, 1, 2), 1)]


def build(step):
    hypergraph = TemporalHypergraph()
    for edge, time in edges:
        hypergraph.add_edge(edge, step * time)
    return hypergraph


right = np.zeros((3, 3))
for edge, _ in edges:
    for i in edge:
        for j in edge:
            right[i, j] += (i != j) / 2
seen = annealed_adjacency_matrix(build(1)).toarray()
print(f'seen {seen.tolist()} instead of {right.tolist()}')
assert np.array_equal(seen, 2 * np.triu(right)[:2]), 'this has changed'
try:
    message = str(annealed_adjacency_matrix(build(10)))
except KeyError as error:
    message = f'KeyError: {error}'
print(f'at the times 0 and 10: {message}')
assert message == 'KeyError: 1', 'this has changed'
PY
