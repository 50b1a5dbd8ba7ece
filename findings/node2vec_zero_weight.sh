#!/usr/bin/env bash
# node2vec 0.5.0: walks take edges of weight 0, as if their weight were 1, from the second step on.
#
# Expected: a step of node2vec has a probability in proportion to the weight of the edge, times 1, 1 / p or 1 / q (Grover and Leskovec
# 2016, section 3.2). With p = q = 1, it is the weight alone. An edge of weight 0 is never taken.
# Seen: a weight of 0 is taken for a missing one, which is 1. Between weights of 0.1, it is then the edge that walks prefer: nodes behind
# it have most of the visits. Smaller weights are right down to 0: there is a jump from 1e-9 to 0. The first step of a walk reads weights
# elsewhere, and is right.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet node2vec==0.5.0 gensim==4.4.0 networkx==3.6.1 numpy==1.26.4 scipy==1.17.1 joblib==1.6.0
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from collections import Counter
from importlib.metadata import version

import networkx as nx
import numpy as np
from node2vec import Node2Vec

print(f'node2vec {version("node2vec")}')
nodes = ['a', 'middle', 'b', 'far', 'other']
for weight in (0.1, 1e-9, 0.0):
    graph = nx.Graph()
    graph.add_weighted_edges_from([('a', 'middle', 0.1), ('middle', 'b', 0.1), ('middle', 'far', weight), ('far', 'other', 0.1)])
    model = Node2Vec(graph, walk_length=20, num_walks=50, workers=1, quiet=True, seed=0)
    w = nx.to_numpy_array(graph, nodelist=nodes)
    right = w[1] / w[1].sum()
    at = model.d_graph['middle']
    seen = dict(zip(at['neighbors'], at['probabilities']['a']))
    first = dict(zip(at['neighbors'], at['first_travel_key']))
    seen, first = (np.array([row.get(v, 0.0) for v in nodes]) for row in (seen, first))
    steps = [(walk[i], walk[i + 1]) for walk in model.walks for i in range(1, len(walk) - 1)]
    taken = Counter(end for start, end in steps if start == 'middle')
    part = taken['far'] / sum(taken.values())
    print(f'weight {weight}: probability of the edge after a step {seen[3]:.3f}, at the first step {first[3]:.3f}, '
          f'by the definition {right[3]:.3f}. Part of the steps in walks {part:.3f}')  # fmt: skip
    assert np.allclose(first, right), 'this has changed'
    if weight:
        assert np.allclose(seen, right) and abs(part - right[3]) < 0.1, 'this has changed'
    else:
        assert seen[3] > 0.8 and part > 0.7 and right[3] == 0, 'this has changed'
PY
