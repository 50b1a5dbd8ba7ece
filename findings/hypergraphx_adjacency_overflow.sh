#!/usr/bin/env bash
# hypergraphx 1.8.0: two nodes with 256 hyperedges in common are not adjacent.
#
# Expected: "the entry (i, j) of the adjacency matrix counts the number of hyperedges where both i and j are contained".
# Seen: the incidence matrix has entries of 8 bits, and so has its product with itself. Each count is taken modulo 256: 300 becomes 44,
# and 256 becomes 0. Data of meetings or papers have such pairs. adjacency_factor and subhypergraph_centrality compute with these
# counts. There is no warning.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet hypergraphx==1.8.0 numpy==1.26.4 scipy==1.13.1 networkx==3.6.1
"$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from hypergraphx import Hypergraph

print(f'hypergraphx {version("hypergraphx")}')
seen = {}
for count in (255, 256, 300):
    hypergraph = Hypergraph([(0, 1, i) for i in range(2, count + 2)])
    matrix = hypergraph.adjacency_matrix()
    incidence = hypergraph.binary_incidence_matrix().toarray().astype(int)
    right = (incidence @ incidence.T)[0, 1]
    seen[count] = int(matrix[0, 1])
    print(f'{hypergraph.num_edges()} hyperedges hold the nodes 0 and 1: counted {seen[count]} instead of {right} ({matrix.dtype})')
    assert right == count, 'the definition is wrong'
assert seen == {255: 255, 256: 0, 300: 44}, 'this has changed'
factor = hypergraph.adjacency_factor(t=1)[0]
print(f'sum of the counts of node 0: {factor} instead of {300 + 300}')
assert factor == 44 + 300, 'this has changed'
PY
