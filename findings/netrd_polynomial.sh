#!/usr/bin/env bash
# netrd 0.3.0: PolynomialDissimilarity compares other polynomials than those of the adjacency matrices, and depends on node numbers.
#
# Expected: the cited paper (Donnat and Holmes 2018) compares P(A) = A + A^2 / (n - 1)^alpha + ... + A^k / (n - 1)^(alpha (k - 1)) of both
# graphs. If the nodes of both graphs are renumbered in the same way, the distance stays.
# Seen: P(A) is computed as Q W Q^T from a routine for general matrices. Its eigenvectors of a repeated eigenvalue are not orthogonal, so
# that Q^T is not the inverse of Q. Regular graphs, such as complete graphs, cycles and the Petersen graph, have repeated eigenvalues:
# their distances are off by some percent, in either direction. The star is right, by chance of its eigenvectors.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet netrd==0.3.0 networkx==3.6.1 numpy==1.26.4 scipy==1.13.1
"$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import networkx as nx
import numpy as np
from netrd.distance import PolynomialDissimilarity

print(f'netrd {version("netrd")}')


def by_hand(*graphs):
    first, other = (
        sum(np.linalg.matrix_power(matrix, k) / (len(matrix) - 1) ** (k - 1) for k in range(1, 6))
        for matrix in (nx.to_numpy_array(graph) for graph in graphs)
    )
    return np.linalg.norm(first - other) / len(first) ** 2


path = nx.path_graph(10)
seen = {}
for name, graph in (('star', nx.star_graph(9)), ('Petersen graph', nx.petersen_graph()), ('complete graph', nx.complete_graph(10))):
    seen[name] = PolynomialDissimilarity().dist(graph, path) / by_hand(graph, path) - 1
    print(f'{name} and path: {PolynomialDissimilarity().dist(graph, path):.6f} instead of {by_hand(graph, path):.6f}')
rng = np.random.default_rng(0)
values = []
for _ in range(4):
    number = {node: int(new) for node, new in zip(range(10), rng.permutation(10))}
    graphs = []
    for graph in (nx.petersen_graph(), path):
        graphs.append(nx.Graph())
        graphs[-1].add_nodes_from(range(10))
        graphs[-1].add_edges_from((number[u], number[v]) for u, v in graph.edges)
    values.append(PolynomialDissimilarity().dist(*graphs))
    assert abs(by_hand(*graphs) - by_hand(nx.petersen_graph(), path)) < 1e-12
print(f'Petersen graph and path, renumbered: {[round(float(value), 6) for value in values]}')
assert max(values) - min(values) > 1e-4, 'this has changed'
PY
