#!/usr/bin/env bash
# cdlib 0.4.1: avg_odf and max_odf count edges that leave a community, instead of their fraction.
#
# Expected: "Average fraction of edges of a node of a community that point outside", and "Maximum fraction": the documented equations
# divide by the degree d(u), so that both lie between 0 and 1. avg_embeddedness is documented as the fraction that points inside.
# Seen: the number of edges that point outside is not divided. Hubs dominate: 4 of 10 edges of a hub are worse than 1 of 1 of another
# node. avg_odf and avg_embeddedness do not sum to 1.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet cdlib==0.4.1 networkx==3.6.1 numpy==1.26.4 scipy==1.13.1
"$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import networkx as nx
from cdlib import NodeClustering, evaluation

print(f'cdlib {version("cdlib")}')
graph = nx.karate_club_graph()
parts = [list(range(0, 17)), list(range(17, 34))]
communities = NodeClustering(parts, graph)
fractions = [[sum(v not in part for v in graph[u]) / graph.degree[u] for u in part] for part in parts]
average, greatest = [sum(values) / len(values) for values in fractions], [max(values) for values in fractions]
seen = evaluation.avg_odf(graph, communities, summary=False), evaluation.max_odf(graph, communities, summary=False)
inside = evaluation.avg_embeddedness(graph, communities, summary=False)
print(f'avg_odf {[round(value, 3) for value in seen[0]]} instead of {[round(value, 3) for value in average]}')
print(f'max_odf {seen[1]} instead of {[round(value, 3) for value in greatest]}')
print(f'1 - avg_embeddedness: {[round(float(1 - value), 3) for value in inside]}')
assert all(abs(1 - a - b) < 1e-9 for a, b in zip(inside, average)), 'the definition is wrong'
counts = [[sum(v not in part for v in graph[u]) for u in part] for part in parts]
assert seen[1] == [max(values) for values in counts] and min(seen[1]) > 1, 'this has changed'
assert all(abs(a - sum(values) / len(values)) < 1e-9 for a, values in zip(seen[0], counts)), 'this has changed'
PY
