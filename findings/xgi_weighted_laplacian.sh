#!/usr/bin/env bash
# xgi 0.10.2: normalized_hypergraph_laplacian(weighted=True) has negative eigenvalues, and changes with the unit of the weights.
#
# Expected: the cited paper (Zhou, Huang, Schoelkopf 2006) has I - D_v^(-1/2) H W D_e^(-1) H^T D_v^(-1/2), where the degree in D_v is the
# sum of the weights of the hyperedges of a node. It is positive semidefinite, has the eigenvalue 0, and weights of 2 are weights of 1.
# Seen: D_v counts the hyperedges, without weights, whatever weighted says. With all weights 2, the smallest eigenvalue is -1, with
# all weights 0.5 it is 0.5. Spectral clustering on it sees no zero eigenvalue at all. Without weights it is right, since
# https://github.com/xgi-org/xgi/pull/648, which added the option.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet xgi==0.10.2 numpy==2.4.6 scipy==1.17.1 networkx==3.6.1
"$folder/venv/bin/python" - <<'PY'
from importlib.metadata import version

import numpy as np
import xgi

print(f'xgi {version("xgi")}')
edges = [[0, 1, 2], [2, 3], [3, 4, 0]]


def smallest(weights):
    graph = xgi.Hypergraph()
    graph.add_nodes_from(range(5))
    for edge, weight in zip(edges, weights):
        graph.add_edge(edge, weight=weight)
    seen = np.linalg.eigvalsh(xgi.normalized_hypergraph_laplacian(graph, weighted=True, sparse=False))[0]
    incidence = np.array([[float(node in edge) for edge in edges] for node in range(5)])
    root = np.diag((incidence @ weights) ** -0.5)
    matrix = np.eye(5) - root @ incidence @ np.diag(weights / incidence.sum(0)) @ incidence.T @ root
    return seen, np.linalg.eigvalsh(matrix)[0]


values = {}
for weights in ((1, 1, 1), (2, 2, 2), (0.5, 0.5, 0.5), (1, 2, 5)):
    seen, right = smallest(np.array(weights, dtype=float))
    values[weights] = seen
    print(f'weights {weights}: smallest eigenvalue {seen:.3f}, by the paper {abs(right):.3f}')
    assert abs(right) < 1e-9, 'the definition is wrong'
assert abs(values[1, 1, 1]) < 1e-9 and abs(values[2, 2, 2] + 1) < 1e-9, 'this has changed'
assert abs(values[0.5, 0.5, 0.5] - 0.5) < 1e-9 and values[1, 2, 5] < -1, 'this has changed'
PY
