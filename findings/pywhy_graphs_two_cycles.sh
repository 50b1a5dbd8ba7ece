#!/usr/bin/env bash
# pywhy-graphs 0.1.0: sigma_separated separates a cause from its effect in another cycle, as acyclification loses edges between two cycles.
#
# Expected: acyclification is that of Mooij and Claassen 2020: i -> j, if j's strongly connected component has a node k with i -> k, and
# does not have i. "any node with an edge pointing into the SC (...) is made fully connected with the nodes of the SC" (docstring).
# sigma_separated is m-separation in that graph. A cause is never separated from its effect by the empty set.
# Seen: algorithms/cyclic.py removes the nodes of each component, and adds them again, with the edges of the graph given. If the effect is
# in a component, the edges to all of its nodes, added before, are lost with the removal of the component of the cause. Only the edge
# given comes back. The same holds for bidirected edges between two components.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pywhy-graphs==0.1.0 networkx==3.4.2 numpy==1.26.4 scipy==1.13.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import networkx as nx
from pywhy_graphs.algorithms import acyclification
from pywhy_graphs.algorithms.cyclic import sigma_separated
from pywhy_graphs.networkx import MixedEdgeGraph

print(f'pywhy-graphs {version("pywhy-graphs")}')
for name, edges in (('one cycle', [(1, 2), (2, 3), (3, 2)]), ('two cycles', [(0, 1), (1, 0), (1, 2), (2, 3), (3, 2)])):
    directed = nx.DiGraph(edges)
    component = {node: nodes for nodes in nx.strongly_connected_components(directed) for node in nodes}
    right = {(i, j) for i in directed for j in directed if i not in component[j] and any(directed.has_edge(i, k) for k in component[j])}
    bidirected = nx.Graph()
    bidirected.add_nodes_from(directed)
    graph = MixedEdgeGraph(graphs=[directed, bidirected], edge_types=['directed', 'bidirected'])
    seen = set(acyclification(graph).edges()['directed'])
    separated = sigma_separated(graph, {1}, {3}, set())
    print(f'{name}, {edges}: directed edges {sorted(seen)}, by the definition {sorted(right)}. '
          f'1 and 3 separated: {separated}, path from 1 to 3: {nx.has_path(directed, 1, 3)}')  # fmt: skip
    assert (seen == right) == (name == 'one cycle') == (not separated) and seen <= right, 'this has changed'
PY
