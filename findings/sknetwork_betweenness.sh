#!/usr/bin/env bash
# scikit-network 0.33.5: Betweenness(normalized=True) does not normalise, and a directed graph gets half of its betweenness.
#
# Expected: the option normalized divides by the number of pairs of other nodes. Brandes' algorithm, which the documentation cites,
# halves the sums only for undirected graphs, where each pair is counted twice.
# Seen: the option is stored and never used. The sums are always halved.
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
from sknetwork.ranking import Betweenness

print(f'scikit-network {version("scikit-network")}')
seen = []
for name, graph in (('star', nx.star_graph(4)), ('directed cycle', nx.cycle_graph(4, create_using=nx.DiGraph))):
    adjacency = csr_matrix(nx.to_scipy_sparse_array(graph))
    for normalized in (False, True):
        scores = Betweenness(normalized=normalized).fit_predict(adjacency)
        peer = np.array(list(nx.betweenness_centrality(graph, normalized=normalized).values()))
        seen.append((scores[0], peer[0]))
        print(f'{name}, normalized={normalized}: node 0 has {scores[0]:.3f}, in networkx {peer[0]:.3f}')
assert np.allclose(seen, [(6, 6), (6, 1), (1.5, 3), (1.5, 0.5)]), 'this has changed'
PY
