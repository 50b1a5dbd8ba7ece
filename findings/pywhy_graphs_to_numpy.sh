#!/usr/bin/env bash
# pywhy-graphs 0.1.0: graph_to_numpy drops the undirected edges of a CPDAG, and the bidirected edges of a PAG.
#
# Expected: graph_to_numpy converts a "causal graph to a numpy adjacency array". It "has a non-zero entry if there is an edge from i to
# j", with "undirected edge (--): 10" and "bidirected edge (<->): 20" (docstring). numpy_to_graph of the array is the same graph.
# Seen: export/numpy.py sets the undirected and bidirected edges aside, and adds the bidirected ones for an ADMG only, and the undirected
# ones never. There is no warning. The CPDAG of a chain, all of whose edges are undirected, becomes an array of zeros: a graph without
# edges.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pywhy-graphs==0.1.0 networkx==3.4.2 numpy==1.26.4 scipy==1.13.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from pywhy_graphs import ADMG, CPDAG, PAG
from pywhy_graphs.export import graph_to_numpy, numpy_to_graph

print(f'pywhy-graphs {version("pywhy-graphs")}')
values = {'directed': 1, 'undirected': 10, 'bidirected': 20}
for kind, edges in ((CPDAG, [('a', 'b', 'undirected'), ('b', 'c', 'undirected')]),
                    (PAG, [('a', 'b', 'bidirected'), ('b', 'c', 'directed')]),
                    (ADMG, [('a', 'b', 'undirected'), ('b', 'c', 'directed')]),
                    (ADMG, [('a', 'b', 'bidirected'), ('b', 'c', 'directed')])):  # fmt: skip
    graph, documented = kind(), np.zeros((3, 3))
    graph.add_nodes_from('abc')
    for u, v, edge_type in edges:
        graph.add_edge(u, v, edge_type=edge_type)
        documented['abc'.index(u), 'abc'.index(v)] += values[edge_type]
        if edge_type != 'directed':
            documented['abc'.index(v), 'abc'.index(u)] += values[edge_type]
    seen = graph_to_numpy(graph)
    back = numpy_to_graph(seen, list(graph.nodes), kind.__name__.lower())
    print(f'{kind.__name__} {edges}: array {seen.astype(int).tolist()}, documented {documented.astype(int).tolist()}. '
          f'Back: { {name: list(view) for name, view in back.edges().items() if len(view)} }')  # fmt: skip
    assert list(graph.nodes) == ['a', 'b', 'c'], 'this has changed'
    right = kind is ADMG and edges[0][2] == 'bidirected'
    assert np.array_equal(seen, documented) == right, 'this has changed'
    assert np.array_equal(seen, np.where(right | (documented == 1), documented, 0)), 'this has changed'
PY
