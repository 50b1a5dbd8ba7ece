#!/usr/bin/env bash
# graspologic 3.4.4: cutting weak edges of a directed graph with prune_isolates removes nodes that have strong edges, and these edges.
#
# Expected: cut_edges_by_weight removes the edges below a threshold, and with prune_isolates=True "any vertex that no longer has an edge".
# All edges above the threshold stay.
# Seen: of a directed graph, only the edges that leave a node are counted. A node whose last weak edge is cut, and which is only the end
# of others, is removed with all of these, whatever their weight is. A paper that ten others cite strongly and one weakly is removed. What
# happens depends on the ends of weak edges: the same node stays if no weak edge is at it. Undirected graphs are right.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet graspologic==3.4.4 graspologic-native==1.3.1 networkx==3.6.1 numpy==1.26.4 scipy==1.17.1 \
  pandas==3.0.6 scikit-learn==1.9.1 matplotlib==3.11.2 gensim==4.4.0 hyppo==0.5.2 POT==0.9.7.post1 umap-learn==0.5.12 \
  beartype==0.18.5 statsmodels==0.14.6
cd "$folder"
MPLBACKEND=Agg OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import networkx as nx
import numpy as np
from graspologic.preprocessing import cut_edges_by_weight

print(f'graspologic {version("graspologic")}')
strong = [(i, 'cited', 5.0) for i in range(10)]
graphs = {
    'ten strong edges to a node, and a weak one': [*strong, ('new', 'cited', 0.1)],
    'ten strong edges to a node, and a weak one elsewhere': [*strong, ('new', 'other', 0.1)],
    'a strong path that ends with a weak edge': [('a', 'b', 3.0), ('b', 'c', 4.0), ('c', 'd', 0.1)],
}
for name, edges in graphs.items():
    for kind in (nx.DiGraph, nx.Graph):
        graph = kind()
        graph.add_weighted_edges_from(edges)
        nodes = list(graph)
        weights = nx.to_numpy_array(graph, nodelist=nodes)
        kept = np.where(weights > 1, weights, 0)
        alone = (kept.sum(0) == 0) & (kept.sum(1) == 0)
        right = {nodes[i] for i in np.flatnonzero(~alone)}
        seen = cut_edges_by_weight(graph, 1, 'smaller_than_exclusive', prune_isolates=True)
        count = int(np.count_nonzero(kept)) // (1 if graph.is_directed() else 2)
        print(f'{kind.__name__}, {name}: {seen.number_of_edges()} edges and {len(seen)} nodes are left, expected {count} and {len(right)}')
        assert set(seen) <= right, 'this has changed'
        wrong = graph.is_directed() and 'elsewhere' not in name
        assert (seen.number_of_edges() < count) == wrong == (set(seen) != right), 'this has changed'
        plain = cut_edges_by_weight(graph, 1, 'smaller_than_exclusive')
        assert plain.number_of_edges() == count, 'this has changed'
PY
