#!/usr/bin/env bash
# hypergraphx 1.8.0: adjacency_matrix_by_order counts a hyperedge of weight 3 for 9, and the Laplacian of an order loses its null space.
#
# Expected: "the entry (i, j) of the adjacency matrix counts the number of hyperedges of a given order where both i and j are contained".
# adjacency_matrix, of all orders, does so. Each row of a Laplacian sums to zero, for weights too.
# Seen: both are computed from the incidence matrix with weights, times itself, so that each weight is squared. The degrees of the
# Laplacian count without weights. So its rows do not sum to zero, and it has negative entries on the diagonal. Weights of 1 are right.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet hypergraphx==1.8.0 numpy==1.26.4 scipy==1.13.1 networkx==3.6.1
"$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from hypergraphx import Hypergraph
from hypergraphx.linalg import adjacency_matrix_by_order, laplacian_matrix_by_order

print(f'hypergraphx {version("hypergraphx")}')
edges = [(0, 1, 2), (1, 2, 3)]
for weights in ([1.0, 1.0], [3.0, 0.5]):
    hypergraph = Hypergraph(edges, weighted=True, weights=weights)
    right = sum({i, j} <= set(edge) for edge in edges for i, j in [(1, 2)])
    one, every = adjacency_matrix_by_order(hypergraph, 2)[1, 2], hypergraph.adjacency_matrix()[1, 2]
    laplacian = laplacian_matrix_by_order(hypergraph, 2).toarray()
    values = np.linalg.eigvalsh(laplacian)
    print(f'weights {weights}: adjacency of nodes 1 and 2 {one}, of all orders {every}, counted {right}')
    print(f'    sums of the rows of the Laplacian {laplacian.sum(1)}, smallest eigenvalue {values[0]:.2f}')
    assert every == right == 2, 'this has changed'
    assert one == sum(weight**2 for weight in weights), 'this has changed'
    assert (np.abs(laplacian.sum(1)).max() < 1e-9) == (weights == [1.0, 1.0]), 'this has changed'
assert values[0] < -20 and laplacian.diagonal().min() == -6, 'this has changed'
PY
