#!/usr/bin/env bash
# giotto-tda 0.6.2: TransitionGraph returns numbers of transitions, so that states which follow each other often are far from each other.
#
# Expected: the transition graph is "a sparse matrix of zeros and ones", simple and unweighted: 1 if a state follows another one anywhere.
# The distance of two such states in GraphGeodesicDistance, the next step of the example in the documentation, is 1.
# Seen: a 1 is written for each transition, and the sparse matrix adds them up. A sequence that goes back and forth between two states has
# 3 there. The distance of these states is 2, by a detour along rare transitions, which seems shorter. Persistent homology of ordinal
# partition networks is that of another metric then. unweighted=True in GraphGeodesicDistance undoes it, and is not the default. An early
# version had it as well, which was said to be mended: https://github.com/giotto-ai/giotto-tda/issues/23
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet giotto-tda==0.6.2 scikit-learn==1.3.2 giotto-ph==0.2.4 pyflagser==0.4.7 igraph==1.0.0 plotly==7.1.0 \
  ipywidgets==8.1.9 joblib==1.6.0 numpy==1.26.4 scipy==1.17.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from gtda.graphs import GraphGeodesicDistance, TransitionGraph

print(f'giotto-tda {version("giotto-tda")}')


def right_graph(states):
    graph = np.zeros((max(states) + 1,) * 2, dtype=int)
    for i, j in zip(states, states[1:]):
        graph[i, j] = i != j
    return graph


def distances(graph):
    d = np.where(graph + graph.T > 0, 1.0, np.inf)
    np.fill_diagonal(d, 0)
    for k in range(len(d)):
        d = np.minimum(d, d[:, [k]] + d[[k]])
    return d


for states in ([0, 1, 2, 3, 0], [0, 1, 0, 1, 0, 1, 2, 0]):
    graphs = TransitionGraph(func=None).fit_transform(np.array(states).reshape(1, -1, 1))
    seen, right = graphs[0].toarray(), right_graph(states)
    far = GraphGeodesicDistance(directed=False).fit_transform(graphs)[0]
    plain = GraphGeodesicDistance(directed=False, unweighted=True).fit_transform(graphs)[0]
    print(f'states {states}: graph {seen.tolist()}, by the definition {right.tolist()}')
    print(f'    distances {far.tolist()}, by the definition {distances(right).tolist()}')
    assert ((seen > 0) == right).all() and np.allclose(plain, distances(right)), 'this has changed'
    if states == [0, 1, 2, 3, 0]:  # No transition is made twice.
        assert (seen == right).all() and np.allclose(far, distances(right)), 'this has changed'
    else:
        assert seen[0, 1] == 3 and far[0, 1] == 2, 'this has changed'

noise = np.random.default_rng(0).random((1, 200, 3))
seen = TransitionGraph().fit_transform(noise)[0].toarray()
print(f'200 random states of the default, orders of three numbers: largest entry {seen.max()}, expected 1')
assert seen.max() > 5, 'this has changed'
PY
