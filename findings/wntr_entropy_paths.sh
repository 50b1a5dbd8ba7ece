#!/usr/bin/env bash
# wntr 1.5.0: entropy counts paths through the upstream node of a link for paths through the link.
#
# Expected: the entropy of Awumah et al. (1990), which is cited. In it, a_ij is the "number of equivalent independent paths
# through the link from node i to node j", and the comment on NDij is "number of paths through the link from node i to node j".
# Seen: NDij counts each path in which node i is somewhere. If water flows from A to J and from A over B to J, the path over B
# counts for the link from A to J, too. So a_ij, the entropy of the node, and that of the system are too large.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet wntr==1.5.0 numpy==2.4.6 scipy==1.17.1 pandas==2.3.3 networkx==3.6.1 \
  matplotlib==3.11.2 six==1.17.0 setuptools==80.9.0
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
import math
from collections import Counter
from importlib.metadata import version

import networkx as nx
import wntr

print(f'wntr {version("wntr")}')


def by_definition(graph, node, source):
    paths = [list(zip(path, path[1:])) for path in nx.all_simple_paths(graph, source, node)]
    flow = {i: graph[i][node][0]['weight'] for i in graph.predecessors(node)}
    result = 0
    for i, q in flow.items():
        through = [path for path in paths if (i, node) in path]
        degrees = Counter(link for path in through for link in path)
        a = len(through) * (1 - sum(d - 1 for d in degrees.values()) / sum(degrees.values()))
        share = q / sum(flow.values())
        result += share * (math.log(a) - math.log(share))
    return result


cases = {
    'two separate paths': [('R', 'A', 6), ('R', 'B', 4), ('A', 'J', 5), ('B', 'J', 3)],
    'with a link between': [('R', 'A', 9), ('A', 'B', 4), ('A', 'J', 4), ('B', 'J', 3)],
}
for name, links in cases.items():
    graph = nx.MultiDiGraph()
    for node in 'RABJ':
        graph.add_node(node, type='Reservoir' if node == 'R' else 'Junction')
    for start, end, flow in links:
        graph.add_edge(start, end, weight=flow)
    seen, right = wntr.metrics.entropy(graph)[0]['J'], by_definition(graph, 'J', 'R')
    print(f'{name}: entropy of J {seen:.4f}, by the definition {right:.4f}')
    assert (abs(seen - right) < 1e-9) == (name == 'two separate paths'), 'this has changed'
# By hand: one path through each link into J, so that a is 1 for both, and the entropy is that of the shares 4/7 and 3/7.
assert abs(right + 4 / 7 * math.log(4 / 7) + 3 / 7 * math.log(3 / 7)) < 1e-12
assert seen > right + 0.1, 'this has changed'
PY
