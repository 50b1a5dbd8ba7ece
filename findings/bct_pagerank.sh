#!/usr/bin/env bash
# bctpy 0.6.1: pagerank_centrality is the PageRank of the reversed graph.
#
# Expected: "proportional to the number of steps (or amount of time) spent at that vertex" by a random walker. degrees_dir, and the whole
# package, read an entry (i, j) as a link from i to j: "Inputs are assumed to be on the columns". So the walker goes from i to j.
# Seen: the columns are normalised, so that the walker goes from j to i. Pages nobody links to get as much as those with links, and pages
# with many links of their own gain. networkx 3.6.1 gives the same values for the reversed graph. Undirected graphs are right.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet bctpy==0.6.1 numpy==1.26.4 scipy==1.13.1 networkx==3.6.1
"$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import bct
import networkx as nx
import numpy as np

print(f'bctpy {version("bctpy")}')
# Nodes 1, 2 and 3 link to node 0, which links to node 1:
matrix = np.array([[0, 1, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0]], dtype=float)
inward, outward, _ = bct.degrees_dir(matrix)
print(f'in-degrees {inward.tolist()}, out-degrees {outward.tolist()}')
walk = 0.85 * matrix / matrix.sum(1, keepdims=True) + 0.15 / 4
right = np.full(4, 0.25)
for _ in range(500):
    right = right @ walk
seen = bct.pagerank_centrality(matrix.copy(), 0.85)
print(f'PageRank {seen.round(4).tolist()} instead of {right.round(4).tolist()}')
reverse = nx.pagerank(nx.from_numpy_array(matrix, create_using=nx.DiGraph).reverse(), tol=1e-10)
print(f'networkx, reversed graph: {[round(reverse[node], 4) for node in range(4)]}')
assert right.argmax() == 0 and inward[0] == 3, 'the definition is wrong'
assert np.allclose(bct.pagerank_centrality(matrix.T.copy(), 0.85), right), 'this has changed'
assert np.allclose(seen, [reverse[node] for node in range(4)], atol=1e-6) and not np.allclose(seen, right, atol=0.1), 'this has changed'
PY
