#!/usr/bin/env bash
# csrgraph 0.1.28: the parameter q of node2vec walks changes the wrong neighbors: those near the last node, and not those away from it.
#
# Expected: random_walks(return_weight=1/p, neighbor_weight=1/q) are node2vec walks: the documentation says that the two weights are the
# inverses of p and q of its paper (Grover and Leskovec 2016). From a node, one returns to the last node with the weight 1/p, goes to common
# neighbors with the last node with 1, and to all other neighbors with 1/q.
# Seen: common neighbors get the weight 1/q, and others 1. So q = 4, which keeps walks local, drives them outward, and q = 1/4 keeps
# them local. p has its meaning for q = 1 only. nodevectors.Node2Vec uses these walks, and says the same of its parameters.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet numpy==1.26.4 scipy==1.13.1 pandas==2.3.3 numba==0.68.1 networkx==3.6.1 \
  scikit-learn==1.9.1 tqdm==4.70.1
"$folder/venv/bin/pip" install --quiet --no-deps csrgraph==0.1.28
cd "$folder"
"$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import csrgraph
import numpy as np
import scipy.sparse

print(f'csrgraph {version("csrgraph")}')
# From the last node 0 to node 1, which has the neighbors 0, 2 (a neighbor of 0, too), and 3 (at distance 2 from 0).
last, here, common, away = 0, 1, 2, 3
adjacency = np.zeros((4, 4))
for u, v in ((last, here), (here, common), (last, common), (here, away)):
    adjacency[u, v] = adjacency[v, u] = 1
graph = csrgraph.csrgraph(scipy.sparse.csr_matrix(adjacency), threads=1)
for p, q in ((1, 1), (4, 1), (1, 4), (1, 0.25), (4, 0.25)):
    walks = graph.random_walks(walklen=8, epochs=20000, return_weight=1 / p, neighbor_weight=1 / q).astype(int)
    steps = np.stack([walks[:, :-2], walks[:, 1:-1], walks[:, 2:]], axis=-1).reshape(-1, 3)
    third = steps[(steps[:, 0] == last) & (steps[:, 1] == here), 2]
    seen = np.array([(third == node).mean() for node in (last, common, away)])
    right = np.array([1 / p, 1, 1 / q])
    wrong = np.array([1 / p, 1 / q, 1])
    right, wrong = right / right.sum(), wrong / wrong.sum()
    print(f'p = {p}, q = {q}: back {seen[0]:.3f}, to the common neighbor {seen[1]:.3f}, away {seen[2]:.3f}. '
          f'By the definition {right.round(3)}')  # fmt: skip
    assert np.allclose(seen, wrong, atol=0.02), 'this has changed'
    assert np.allclose(seen, right, atol=0.02) == (q == 1), 'this has changed'
PY
