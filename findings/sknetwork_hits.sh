#!/usr/bin/env bash
# scikit-network 0.33.5: HITS of the same graph is right in one call, and 0 for all nodes in the next.
#
# Expected: "Hub and authority scores of each node", the first singular vectors of the adjacency matrix, which have no negative entries. The
# same graph has the same scores. The largest scores are those of the complete graph of four nodes, 0.5 each, as in networkx.
# Seen: a singular vector has an arbitrary sign. The sign is chosen by whether more entries are positive than negative, and the others are
# set to 0. Nodes of other components have entries of +-1e-17, and are the majority. They decide the sign by chance, and in a part of the
# calls all true scores are set to 0: what is left is the noise.
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
from sknetwork.ranking import HITS

print(f'scikit-network {version("scikit-network")}')
alone = nx.complete_graph(4)
beside = nx.disjoint_union_all([alone] + [nx.path_graph(2)] * 28)
hubs = nx.hits(beside)[0]
print(f'networkx, complete graph of 4 nodes beside 28 edges: {[round(float(hubs[node]), 3) for node in range(5)]} (sum 1)')
seen = {}
for name, graph in (('alone', alone), ('beside 28 edges', beside)):
    matrix = csr_matrix(nx.to_numpy_array(graph))
    results = [HITS().fit_predict(matrix) for _ in range(100)]
    right = sum(np.allclose(result[:4], 0.5) for result in results)
    lost = sum(result.max() < 1e-6 for result in results)
    seen[name] = right, lost
    print(f'complete graph of 4 nodes {name}: of 100 calls, {right} give 0.5 to its nodes, {lost} give at most 1e-6 to every node')
assert seen['alone'] == (100, 0), 'this has changed'
right, lost = seen['beside 28 edges']
assert right + lost == 100 and min(right, lost) > 0, 'this has changed'
PY
