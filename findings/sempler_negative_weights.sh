#!/usr/bin/env bash
# sempler 0.2.14: a cycle of edges with negative weights is taken for a DAG, and is sampled, and orders with weights of both signs are wrong.
#
# Expected: LGANM "Raises ValueError If the given connectivity does not correspond to a DAG": "An exception is thrown when the
# connectivity matrix does not correspond to a DAG", with a cycle as the example. Weights have any sign. utils.topological_ordering takes
# "the adjacency matrix of the graph, where A[i, j] != 0 => i -> j", and returns each node once, after its parents (docstrings).
# Seen: sempler/utils.py finds nodes without parents by a sum of weights of zero, and edges that are left in cycles by a sum above zero.
# So a cycle passes if the sum of its weights is negative, and LGANM gives samples of it. A node whose weights cancel, as 1 and -1, comes
# before its parents, and once more after them.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet sempler==0.2.14 numpy==2.4.6 networkx==3.6.1 matplotlib==3.11.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import networkx as nx
import numpy as np
import sempler
from sempler.utils import is_dag, topological_ordering

print(f'sempler {version("sempler")}')
cycle = np.array([[0, 0.8, 0], [0, 0, 0.8], [0.8, 0, 0]])
for sign in (1, -1):
    found = is_dag(sign * cycle)
    try:
        seen = sempler.LGANM(sign * cycle, (0, 0), (1, 1)).sample(population=True).covariance.round(2).tolist()
    except ValueError as error:
        seen = error
    graph = nx.from_numpy_array(sign * cycle, create_using=nx.DiGraph)
    print(f'a cycle of three edges of weight {sign * 0.8}: is_dag {found}, networkx {nx.is_directed_acyclic_graph(graph)}. LGANM: {seen}')
    assert found == isinstance(seen, list) == (sign == -1) and not nx.is_directed_acyclic_graph(graph), 'this has changed'

for weight in (2.0, -1.0):
    weights = np.zeros((4, 4))
    weights[0, 2], weights[1, 2], weights[2, 3] = 1, weight, 1
    order = [int(node) for node in topological_ordering(weights)]
    print(f'0 -> 2 with weight 1, 1 -> 2 with {weight}, 2 -> 3 with 1: order {order}')
    right = sorted(order) == [0, 1, 2, 3] and all(order.index(i) < order.index(j) for i, j in ((0, 2), (1, 2), (2, 3)))
    assert right == (weight == 2.0), 'this has changed'
assert order.count(2) == 2 and order.index(2) < order.index(0), 'this has changed'
PY
