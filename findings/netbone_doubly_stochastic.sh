#!/usr/bin/env bash
# netbone 0.2.3: the doubly stochastic backbone loses edges of the same graph, if its nodes are numbered otherwise.
#
# Expected: the method is that of Slater, and its code is credited to Michele Coscia. The symmetric matrix is scaled until all
# rows and columns sum to 1, and each edge has its scaled weight. That code asks for undirected edges "in both directions with
# the same weights". The names of nodes, and the ends of an edge that comes first, do not count in an undirected graph.
# Seen: doubly_stochastic takes each edge in one direction alone, that of the edge list, so that the scaled matrix is not
# symmetric. Then it keeps the rows whose source is less than the target, and drops all other edges. A complete graph with 8
# nodes keeps 28 edges with one numbering, and 17 with another. Edges that are kept have other scores than by the definition.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet igraph==0.10.2 networkx==2.8.8 numpy==1.26.4 packaging==22.0 pandas==2.2.2 patsy==0.5.3 \
  scipy==1.13.0 statsmodels==0.14.0 python-louvain==0.16 matplotlib==3.6.0 seaborn==0.13.2
# The method ECM needs the other requirements, and is not used here.
"$folder/venv/bin/pip" install --quiet --no-deps netbone==0.2.3
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import netbone
import networkx as nx
import numpy as np

print(f'netbone {version("netbone")}')
rng = np.random.default_rng(0)
weights = np.triu(rng.integers(1, 30, (8, 8)), 1)
weights = weights + weights.T
right = weights.astype(float)
for _ in range(2000):  # the symmetric scaling, with zeros on the diagonal
    right /= right.sum(1, keepdims=True)
    right /= right.sum(0, keepdims=True)
assert np.allclose(right, right.T, atol=1e-9) and np.allclose(right.sum(1), 1), 'the definition is wrong'

kept, scores = {}, {}
for name, order in (('ascending', list(range(8))), ('shuffled', [3, 0, 6, 1, 7, 2, 5, 4])):
    graph = nx.relabel_nodes(nx.from_numpy_array(weights), dict(enumerate(order)))
    back = {new: old for old, new in enumerate(order)}
    result = netbone.doubly_stochastic(graph).graph
    scores[name] = {tuple(sorted((back[int(u)], back[int(v)]))): score for u, v, score in result.edges(data='score')}
    kept[name] = len(scores[name])
    error = max(abs(score - right[edge]) for edge, score in scores[name].items())
    print(f'{name} names: {kept[name]} of {graph.number_of_edges()} edges, greatest difference to the definition {error:.3f}')
    assert error > 0.2, 'this has changed'
assert kept == {'ascending': 28, 'shuffled': 17}, 'this has changed'
frame = [('b', 'a', 3), ('c', 'b', 2), ('c', 'a', 1), ('a', 'd', 2), ('d', 'b', 1)]
result = netbone.doubly_stochastic(nx.Graph([(u, v, {'weight': w}) for u, v, w in frame])).graph
print(f'5 edges between 4 nodes: {sorted(result.edges)} are left')
assert result.number_of_edges() < 5, 'this has changed'
PY
