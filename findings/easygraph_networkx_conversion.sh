#!/usr/bin/env bash
# EasyGraph 1.6.3: to_networkx and from_networkx drop all weights and all attributes of nodes and edges.
#
# Expected: "Convert an EasyGraph to a NetworkX graph", and the reverse. Both libraries store attributes of nodes and edges in the same
# form, and call weights "weight".
# Seen: only the pairs of nodes are copied, and the attributes of the graph as a whole. A weighted graph becomes an unweighted one, without
# a warning: shortest paths and centralities of the copy are other ones.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet Python-EasyGraph==1.6.3 networkx==3.6.1 numpy==1.26.4 scipy==1.13.1 pandas==2.3.3 torch==2.13.0
"$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import easygraph as eg
import networkx as nx

print(f'EasyGraph {version("Python-EasyGraph")}')
edges = [(0, 1, 1.0), (1, 2, 1.0), (0, 2, 5.0)]
mine, theirs = eg.Graph(), nx.Graph()
for u, v, weight in edges:
    mine.add_edge(u, v, weight=weight)
    theirs.add_edge(u, v, weight=weight)
mine.add_node(0, kind='first')
theirs.add_node(0, kind='first')

there, back = eg.to_networkx(mine), eg.from_networkx(theirs)
right = nx.shortest_path_length(theirs, 0, 2, weight='weight')
seen = nx.shortest_path_length(there, 0, 2, weight='weight')
print(f'to networkx: edges {list(there.edges(data=True))}, nodes {list(there.nodes(data=True))}')
print(f'distance of 0 and 2: {seen} instead of {right}')
assert seen == 1 and right == 2 and not any(data for _, _, data in there.edges(data=True)), 'this has changed'
seen = eg.single_source_dijkstra(back, 0, weight='weight')[2]
print(f'from networkx: edges {list(back.edges)}, nodes {dict(back.nodes)}, distance of 0 and 2: {seen} instead of {right}')
assert seen == 1 and not any(data for _, _, data in back.edges) and not any(back.nodes.values()), 'this has changed'
PY
