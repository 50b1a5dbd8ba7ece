#!/usr/bin/env bash
# scikit-network 0.33.5: the default PageRank of a directed graph with a sink is wrong, and the solver "push" ignores weights.
#
# Expected: get_pagerank documents x = alpha P x + (1 - alpha) y, "a probability vector", and the six solvers as ways to find it.
# Seen: on the path 0 -> 1 -> 2, the solvers "RH" and "diteration" give the solution, as networkx does. The default "piteration",
# "lanczos" and "bicgstab" give node 2 a score of 0.74 instead of 0.47: the restart vector is scaled by whether the node that
# receives is a sink, instead of by the score of the sinks. "push" solves another equation: even on an undirected graph, where all
# others agree, a restart at node 0 alone changes its score from 0.17 to 0.21, while 0.29 is right.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet scikit-network==0.33.5 networkx==3.6.1 numpy==2.4.6 scipy==1.17.1
"$folder/venv/bin/python" - <<'PY'
from importlib.metadata import version

import networkx as nx
import numpy as np
from scipy.sparse import csr_matrix
from sknetwork.data import house
from sknetwork.ranking import PageRank


def scores(solver, adjacency, weights=None):
    return PageRank(solver=solver, n_iter=1000, tol=1e-9).fit_predict(adjacency, weights)


def solution(adjacency, restart, alpha=0.85):
    degree = adjacency.sum(1)
    walk = np.divide(adjacency, degree[:, None], out=np.zeros(adjacency.shape), where=degree[:, None] > 0).T
    x = np.linalg.solve(np.eye(len(walk)) - alpha * walk, (1 - alpha) * np.asarray(restart))
    return x / x.sum()


print(f'scikit-network {version("scikit-network")}')
path, toy = np.array([[0.0, 1, 0], [0, 0, 1], [0, 0, 0]]), house().toarray().astype(float)
right, personal = solution(path, np.ones(3) / 3), solution(toy, [1, 0, 0, 0, 0])
print(f'0 -> 1 -> 2: solution {right.round(3)}, networkx {[round(v, 3) for v in nx.pagerank(nx.DiGraph(path)).values()]}')
print(f'house, restart at node 0: solution {personal.round(3)}')
agree = {}
for solver in ('RH', 'diteration', 'piteration', 'lanczos', 'bicgstab', 'push'):
    first, second = scores(solver, csr_matrix(path)), scores(solver, house(), {0: 1})
    agree[solver] = (np.allclose(first, right, atol=1e-3), np.allclose(second, personal, atol=1e-3))
    print(f'{solver}: 0 -> 1 -> 2 {first.round(3)}, house {second.round(3)}')
assert [a for a, _ in agree.values()] == [True, True, False, False, False, False], 'this has changed'
assert [b for _, b in agree.values()] == [True, True, True, True, True, False], 'this has changed'
PY
