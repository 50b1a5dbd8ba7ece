#!/usr/bin/env bash
# networkx 3.6.1: the average neighbor degree of a MultiGraph is smaller than the degree of every neighbor.
#
# Expected: the documented equation, the sum of the degrees of the neighbors divided by their number |N(i)|. The function accepts
# multigraphs (others, such as clustering, raise "not implemented for multigraph type").
# Seen: the sum runs over distinct neighbors, but is divided by the degree, which counts parallel edges. Node 0, joined to node 1 by
# three parallel edges, has one neighbor, of degree 4, and the average 1.33. With weight=, the weights of parallel edges are lost.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet networkx==3.6.1
"$folder/venv/bin/python" - <<'PY'
import networkx as nx

print(f'networkx {nx.__version__}')
graph = nx.MultiGraph([(0, 1), (0, 1), (0, 1), (1, 2)])
degree, seen = dict(graph.degree()), nx.average_neighbor_degree(graph)
for node in graph:
    neighbors = [degree[other] for other in graph[node]]
    print(f'node {node}: degrees of neighbors {neighbors}, average {sum(neighbors) / len(neighbors):.2f}, returned {seen[node]:.2f}')
nx.set_edge_attributes(graph, 5.0, 'weight')
print(f'all weights 5: {nx.average_neighbor_degree(graph, weight="weight")}')
print(f'connectivity: {nx.average_degree_connectivity(graph)}')
assert seen == {0: 4 / 3, 1: 1.0, 2: 4.0}, 'this has changed'
assert nx.average_neighbor_degree(graph, weight='weight')[0] < 0.3, 'this has changed'
PY
