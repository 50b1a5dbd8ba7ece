#!/usr/bin/env bash
# scikit-network 0.33.5: on a directed graph, Diffusion and Dirichlet let the temperatures flow in opposite directions.
#
# Expected: Diffusion documents T <- (1 - alpha) T + alpha P T, "where P is the transition matrix of the random walk in the graph": a node
# takes the mean of its successors. Dirichlet is documented as the same diffusion with fixed temperatures, and does so.
# Seen: Diffusion normalises the transposed matrix, so that P is the walk against the edges. On 0 -> 1 -> 2 with node 2 hot, Dirichlet warms
# nodes 0 and 1, and Diffusion warms nobody. Undirected and bipartite graphs are right, there is no warning, and no option.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet scikit-network==0.33.5 networkx==3.6.1 numpy==2.4.6 scipy==1.17.1
"$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from scipy.sparse import csr_matrix
from sknetwork.regression import Diffusion, Dirichlet

print(f'scikit-network {version("scikit-network")}')
# The last node has a loop, so that every node has a successor:
path = np.array([[0.0, 1, 0], [0, 0, 1], [0, 0, 1]])
start = {2: 1.0}
walk = path / path.sum(1, keepdims=True)
step = 0.5 * np.eye(3) + 0.5 * walk
right = np.linalg.matrix_power(step, 20) @ [0, 0, 1]
diffusion = Diffusion(n_iter=20).fit_predict(csr_matrix(path), start, init=0)
reverse = Diffusion(n_iter=20).fit_predict(csr_matrix(path.T), start, init=0)
dirichlet = Dirichlet(n_iter=20).fit_predict(csr_matrix(path), start, init=0)
print(f'0 -> 1 -> 2, node 2 hot: the documented equation {right.round(3)}, Dirichlet {dirichlet.round(3)}')
print(f'Diffusion {diffusion.round(3)}, Diffusion of the reversed graph {reverse.round(3)}')
assert np.allclose(right, 1, atol=1e-3) and np.allclose(dirichlet, 1, atol=1e-3), 'this has changed'
assert np.allclose(diffusion[:2], 0) and np.allclose(reverse, right), 'this has changed'
PY
