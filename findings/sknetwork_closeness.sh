#!/usr/bin/env bash
# scikit-network 0.33.5: Closeness(method="approximate") gives the scores of random nodes, in a random order.
#
# Expected: "Closeness centrality of each node", for method="approximate" within the tolerance tol of each score. The cited algorithm
# takes the mean of the distances to a sample of nodes, for each node. If the sample has all nodes, the result is the exact one.
# Seen: the exact closeness of each node of the sample is returned, in the order of the sample. In a small graph, where the sample has all
# nodes, the scores are exact but shuffled among the nodes. In a large one, there are fewer scores than nodes. Nothing warns.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet scikit-network==0.33.5 networkx==3.6.1 numpy==2.4.6 scipy==1.17.1
"$folder/venv/bin/python" -W error - <<'PY'
from importlib.metadata import version

import networkx as nx
import numpy as np
from scipy.sparse import csr_matrix
from sknetwork.ranking import Closeness

print(f'scikit-network {version("scikit-network")}')


def scores(graph, **options):
    return Closeness(**options).fit_predict(csr_matrix(nx.to_numpy_array(graph)))


np.random.seed(0)
path, long = nx.path_graph(6), nx.path_graph(500)
right = scores(path)
assert np.allclose(right, list(nx.closeness_centrality(path).values())), 'this has changed'
print(f'path of 6 nodes, exact: {right.round(3)}')
calls = [scores(path, method='approximate') for _ in range(20)]
for result in calls[:3]:
    print(f'path of 6 nodes, approximate: {result.round(3)}')
number = len(scores(long, method='approximate', tol=0.2))
print(f'path of 500 nodes, approximate with tol=0.2: {number} scores')
assert all(np.allclose(np.sort(result), np.sort(right)) for result in calls), 'this has changed'
assert max(np.abs(result - right).max() for result in calls) > 0.2 and number < 500, 'this has changed'
PY
