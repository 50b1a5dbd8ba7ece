#!/usr/bin/env bash
# EasyGraph 1.6.3: the effective size of a node whose neighbors do not know each other is 1, instead of the number of its neighbors.
#
# Expected: Burt's effective size is n - 2 t / n (Borgatti), with n neighbors and t ties between them. Without ties, nobody is redundant,
# and the effective size is n, the greatest possible. The function itself gives n with weights of 1, and networkx 3.6.1 without.
# Seen: without weights, the case of no ties is 1, the smallest possible. So the center of a star, the model of a broker, ranks below
# a node of a complete graph with a missing edge. efficiency, which divides by n, has the same fault.
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
star = nx.star_graph(5)
almost = nx.complete_graph(6)
almost.remove_edge(1, 2)
seen = {}
for name, graph in (('star', star), ('almost complete graph', almost)):
    mine = eg.Graph()
    for u, v in graph.edges:
        mine.add_edge(u, v, weight=1.0)
    neighbors = graph.subgraph(graph[0])
    right = len(neighbors) - 2 * neighbors.number_of_edges() / len(neighbors)
    seen[name] = eg.effective_size(mine)[0]
    weighted = eg.effective_size(mine, weight='weight')[0]
    print(f'{name}, node 0: {seen[name]:.3f} instead of {right:.3f}, with weights of 1 {weighted:.3f}')
    print(f'    efficiency {eg.efficiency(mine)[0]:.3f} instead of {right / len(neighbors):.3f}')
    assert abs(right - nx.effective_size(graph)[0]) < 1e-9 and abs(right - weighted) < 1e-9, 'this has changed'
assert seen['star'] == 1 and abs(seen['almost complete graph'] - 1.4) < 1e-9, 'this has changed'
PY
