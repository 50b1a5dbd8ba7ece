#!/usr/bin/env bash
# networkx 3.6.1: laplacian_spectrum of a directed graph depends on the order of its nodes, and has eigenvalues of another matrix.
#
# Expected: "Returns eigenvalues of the Laplacian of G". laplacian_matrix accepts directed graphs, with out-degrees, and an order of nodes
# changes no eigenvalue. The Laplacian of a directed cycle of three nodes has the eigenvalues 0 and 1.5 +- 0.87i.
# Seen: the eigenvalues are computed by a routine for symmetric matrices, which reads one triangle of the matrix. Each order of nodes
# gives other eigenvalues, some negative, and 0, which every Laplacian has, may be missing. normalized_laplacian_spectrum is
# computed the same way. adjacency_spectrum and modularity_spectrum use a routine for all matrices, and are right.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet networkx==3.6.1 numpy==2.4.6 scipy==1.17.1
"$folder/venv/bin/python" - <<'PY'
from itertools import permutations

import networkx as nx
import numpy as np

print(f'networkx {nx.__version__}')


def ordered(edges, order):
    graph = nx.DiGraph()
    graph.add_nodes_from(order)
    graph.add_edges_from(edges)
    return graph


seen = {}
for name, edges in (('cycle', [(0, 1), (1, 2), (2, 0)]), ('path', [(0, 1), (1, 2)])):
    graphs = [ordered(edges, order) for order in permutations(range(3))]
    right = np.linalg.eigvals(nx.laplacian_matrix(graphs[0]).toarray().astype(float))
    print(f'directed {name}: eigenvalues of laplacian_matrix {np.sort_complex(right).round(3).tolist()}')
    for spectrum in (nx.laplacian_spectrum, nx.normalized_laplacian_spectrum):
        seen[name, spectrum.__name__] = sorted({tuple((spectrum(graph).round(3) + 0.0).tolist()) for graph in graphs})
        print(f'  {spectrum.__name__} in six orders: {seen[name, spectrum.__name__]}')
assert len(seen['cycle', 'laplacian_spectrum']) > 1 and len(seen['path', 'laplacian_spectrum']) > 1, 'this has changed'
assert len(seen['path', 'normalized_laplacian_spectrum']) > 1, 'this has changed'
assert min(min(values) for values in seen['cycle', 'laplacian_spectrum']) < -0.1, 'this has changed'
PY
