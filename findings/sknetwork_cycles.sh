#!/usr/bin/env bash
# scikit-network 0.33.5: get_cycles finds five of the seven cycles of the complete graph of four nodes.
#
# Expected: "Get all possible cycles of a graph". The complete graph of four nodes has four triangles and three cycles of length four, that
# of five nodes has 37 cycles, as networkx 3.6.1 lists them.
# Seen: in undirected graphs, two cycles through the same set of nodes are taken for one, in whatever order they visit them. So
# one of the three cycles of length four is listed, and 16 of 37. Directed graphs are right.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet scikit-network==0.33.5 networkx==3.6.1 numpy==2.4.6 scipy==1.17.1
"$folder/venv/bin/python" -W error - <<'PY'
from importlib.metadata import version

import networkx as nx
from scipy.sparse import csr_matrix
from sknetwork.topology import get_cycles

print(f'scikit-network {version("scikit-network")}')
seen = {}
for name, graph in (
    ('triangle', nx.complete_graph(3)),
    ('complete 4', nx.complete_graph(4)),
    ('complete 5', nx.complete_graph(5)),
    ('directed', nx.DiGraph([(0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (2, 1), (1, 3)])),
):
    cycles = get_cycles(csr_matrix(nx.to_numpy_array(graph, nodelist=sorted(graph)).astype(int)))
    seen[name] = len(cycles), sum(1 for _ in nx.simple_cycles(graph))
    print(f'{name}: {seen[name][0]} cycles, networkx {seen[name][1]}')
    if name == 'complete 4':
        print(f'of length four: {[[int(node) for node in cycle] for cycle in cycles if len(cycle) == 4]}')
assert seen['triangle'] == (1, 1) and seen['complete 4'] == (5, 7) and seen['complete 5'] == (16, 37), 'this has changed'
PY
