#!/usr/bin/env bash
# networkx 3.6.1: quotient_graph of a MultiGraph loses parallel edges and all weights.
#
# Expected: "If the quotient graph would be a multigraph, [edge_data] is not applied, since the edge data from each edge in the graph G
# appears in the edges of the quotient graph". So all edges between two blocks come back, each with its own weight. The total weight
# between the blocks is the one of the simple graph with summed weights.
# Seen: each pair of adjacent nodes gives one edge, however many parallel edges it has. Their data become its attributes "0" and "1",
# so no edge has a weight, and later functions count it as 1. Weights of 2 + 5 and 7 become 2 instead of 14. There is no warning.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet networkx==3.6.1 numpy==2.4.6
"$folder/venv/bin/python" - <<'PY'
from importlib.metadata import version

import networkx as nx

print(f'networkx {version("networkx")}')
edges = [(0, 2, 2.0), (0, 2, 5.0), (1, 3, 7.0), (0, 1, 1.0)]
blocks = [{0, 1}, {2, 3}]
right = sum(weight for u, v, weight in edges if (u in blocks[0]) != (v in blocks[0]))

multigraph, simple = nx.MultiGraph(), nx.Graph([(0, 2, {'weight': 7.0}), (1, 3, {'weight': 7.0}), (0, 1, {'weight': 1.0})])
multigraph.add_weighted_edges_from(edges)
for graph in (simple, multigraph):
    quotient = nx.quotient_graph(graph, blocks, relabel=True)
    seen = quotient.size(weight='weight')
    print(f'{type(graph).__name__}: weight {seen} between the blocks instead of {right}, edges {list(quotient.edges(data=True))}')
    assert seen == (14 if graph is simple else 2), 'this has changed'
assert quotient.number_of_edges() == 2 and not nx.get_edge_attributes(quotient, 'weight'), 'this has changed'
PY
