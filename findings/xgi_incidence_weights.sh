#!/usr/bin/env bash
# xgi 0.10.2: incidence_matrix cuts the weights of its argument weight to whole numbers: 0.5 becomes 0, and 2.7 becomes 2.
#
# Expected: "A function to generate a weighted incidence matrix", where weight is "a function specifying the weight, given a node and
# edge". The usual weights are fractions: 1 / size of the edge, probabilities, stoichiometric coefficients.
# Seen: the matrix is made with dtype=int in both formats, sparse and dense. With 1 / size, as in a random walk, the matrix is 0. With
# probabilities too. There is no warning, and the documentation names no type.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet xgi==0.10.2 numpy==2.4.6 scipy==1.17.1 networkx==3.6.1
"$folder/venv/bin/python" -W error - <<'PY'
from importlib.metadata import version

import numpy as np
import xgi

print(f'xgi {version("xgi")}')
graph = xgi.Hypergraph([[0, 1, 2], [2, 3]])
for name, weight, cut in (
    ('1 / size of the edge', lambda node, edge, graph: 1 / graph.edges.size[edge], 0),
    ('2.7', lambda node, edge, graph: 2.7, 2),
    ('-0.9', lambda node, edge, graph: -0.9, 0),
):
    wanted = np.array([[weight(node, edge, graph) if node in graph.edges.members(edge) else 0 for edge in (0, 1)] for node in range(4)])
    dense = xgi.incidence_matrix(graph, sparse=False, weight=weight)
    sparse = xgi.incidence_matrix(graph, weight=weight).toarray()
    print(f'weight {name}: expected {wanted.round(2).tolist()}, seen {dense.tolist()}')
    assert np.array_equal(dense, sparse) and dense.dtype == sparse.dtype == np.dtype(int), 'this has changed'
    assert np.array_equal(dense, cut * (wanted != 0)), 'this has changed'
PY
