#!/usr/bin/env bash
# markov-clustering 0.0.6.dev0: the modularity of an undirected graph is -0.94, where it is 0.36, as the expected edges count four times.
#
# Expected: modularity(matrix, clusters) takes "The adjacency matrix" and returns the "modularity value" (docstring): the sum over pairs
# in one cluster of A_ij - k_i k_j / m, divided by the sum m of the matrix, as in networkx.
# Seen: for a symmetric matrix, markov_clustering/modularity.py has the sum of row and column for the degree, which is twice the degree,
# for both nodes. The sum of the matrix is not doubled. So both halves of the karate club are worse than a cluster for each node. Pairs of
# a node and itself are left out, in directed graphs, too, whose values are too large therefore.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet numpy==2.4.6 scipy==1.17.1 scikit-learn==1.9.1 networkx==3.6.1
"$folder/venv/bin/pip" install --quiet --no-deps markov-clustering==0.0.6.dev0
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import markov_clustering
import networkx as nx
import numpy as np
from scipy.sparse import csr_matrix

print(f'markov-clustering {version("markov-clustering")}')
club = nx.karate_club_graph()
halves = [tuple(i for i in club if club.nodes[i]['club'] == name) for name in ('Mr. Hi', 'Officer')]
cycles, threes = nx.DiGraph([(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3), (2, 3)]), [(0, 1, 2), (3, 4, 5)]


def by_hand(matrix, clusters, factor):
    out, into, m = matrix.sum(1), matrix.sum(0), matrix.sum()
    return sum(matrix[i, j] - factor * out[i] * into[j] / m for c in clusters for i in c for j in c if i != j) / m


for name, graph, clusters, factor in (('karate club, both halves', club, halves, 4),
                                      ('karate club, single nodes', club, [(i,) for i in club], 4),
                                      ('two directed cycles', cycles, threes, 1)):  # fmt: skip
    matrix = nx.to_numpy_array(graph, weight=None)
    seen, right = float(markov_clustering.modularity(csr_matrix(matrix), clusters)), nx.community.modularity(graph, clusters, weight=None)
    print(f'{name}: {seen:.4f}, networkx {right:.4f}. By hand, with {factor} times k_i k_j / m: {by_hand(matrix, clusters, factor):.4f}')
    assert np.isclose(seen, by_hand(matrix, clusters, factor)) and abs(seen - right) > 0.04, 'this has changed'
PY
