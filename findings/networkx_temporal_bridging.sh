#!/usr/bin/env bash
# networkx-temporal 1.4.4: the bridging coefficients and centralities of nodes are divided by their greatest, unlike the formulas.
#
# Expected: bridging_centrality "is defined as the product of betweenness centrality and bridging coefficient". "If betweenness is not
# provided, the bridging coefficient of nodes is returned instead", which is deg(i)^-1 / the sum of deg(j)^-1 over neighbours. betweenness
# may be a "List[dict]", for a temporal graph (docstring).
# Seen: all values are divided by the greatest one, which the documentation does not say. So those of two graphs, or two snapshots, can't
# be compared: each has a node with 1. With a list of dictionaries for a temporal graph there is a TypeError, since the dictionary of a
# snapshot is multiplied, not its value for the node.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet networkx-temporal==1.4.4 networkx==3.6.1 numpy==2.4.6 scipy==1.17.1 pandas==3.1.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import networkx as nx
import networkx_temporal as tx
import numpy as np

print(f'networkx-temporal {version("networkx-temporal")}')
for name, graph in (('path of five nodes', nx.path_graph(5)), ('lollipop', nx.lollipop_graph(4, 3))):
    right = {i: 1 / graph.degree(i) / sum(1 / graph.degree(j) for j in graph[i]) for i in graph}
    betweenness = nx.betweenness_centrality(graph)
    product = {i: right[i] * betweenness[i] for i in graph}
    for kind, seen, values in (('coefficients', tx.bridging_centrality(graph), right),
                               ('centralities', tx.bridging_centrality(graph, betweenness), product)):  # fmt: skip
        numbers, documented = np.array([seen[i] for i in graph]), np.array([values[i] for i in graph])
        print(f'{name}, bridging {kind}: {numbers.round(3).tolist()}, by the formula {documented.round(3).tolist()}')
        assert np.allclose(numbers, documented / documented.max()) and not np.allclose(numbers, documented), 'this has changed'

temporal = tx.TemporalGraph(t=2)
for t in range(2):
    nx.add_path(temporal[t], range(5))
try:
    tx.bridging_centrality(temporal, [nx.betweenness_centrality(nx.path_graph(5))] * 2)
    raise AssertionError('this has changed')
except TypeError as error:
    print(f'bridging_centrality with a list of dictionaries: TypeError: {error}')
PY
