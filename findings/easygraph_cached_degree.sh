#!/usr/bin/env bash
# EasyGraph 1.6.3: the weighted degrees and the modularity of a graph depend on what was asked before.
#
# Expected: degree(weight) "Returns the weighted degree of each node", with weight the "weight key", and size(weight) "the number of
# edges or total of all edge weights". So each call answers for its own weight.
# Seen: the first answer is stored, and is returned for every later weight. After size(), the number of edges, size(weight="weight") is
# still the number of edges. The degrees inside are stored too, so that modularity() combines weights with unweighted degrees, and
# exceeds 1 for some graphs. Changing the graph clears the store.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet Python-EasyGraph==1.6.3 networkx==3.6.1 numpy==1.26.4 scipy==1.13.1 pandas==2.3.3 torch==2.13.0
"$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import easygraph as eg

print(f'EasyGraph {version("Python-EasyGraph")}')
edges = [(0, 1, 8.0), (1, 2, 8.0), (0, 2, 8.0), (2, 3, 1.0), (3, 4, 8.0), (4, 5, 8.0), (3, 5, 8.0)]
parts = [{0, 1, 2}, {3, 4, 5}]


def graph():
    result = eg.Graph()
    for u, v, weight in edges:
        result.add_edge(u, v, weight=weight)
    return result


total = sum(weight for _, _, weight in edges)
strength = {node: sum(weight for u, v, weight in edges if node in (u, v)) for node in range(6)}
inside = sum(weight for u, v, weight in edges if any({u, v} <= part for part in parts))
right = inside / total - sum((sum(strength[node] for node in part) / (2 * total)) ** 2 for part in parts)

fresh, used = graph(), graph()
used.size()
seen = fresh.size(weight='weight'), used.size(weight='weight')
print(f'total weight {total}: {seen[0]} at first, {seen[1]} after size()')
assert seen == (total, len(edges)), 'this has changed'
used = graph()
used.degree(weight=None)
seen = graph().degree(weight='weight')[2], used.degree(weight='weight')[2]
print(f'weighted degree of node 2, {strength[2]}: {seen[0]} at first, {seen[1]} after degree(weight=None)')
assert seen == (strength[2], 3), 'this has changed'
fresh, used = graph(), graph()
used.size()
seen = eg.modularity(fresh, parts), eg.modularity(used, parts)
print(f'modularity {right:.4f}: {seen[0]:.4f} at first, {seen[1]:.4f} after size()')
assert abs(seen[0] - right) < 1e-9 and seen[1] > 1, 'this has changed'
PY
