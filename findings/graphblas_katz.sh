#!/usr/bin/env bash
# graphblas-algorithms 2023.10.0 (networkx 3.2.1, python-graphblas 2025.2.0): Katz centrality loses all nodes without incoming edges.
#
# Expected: nx.katz_centrality(G, backend="graphblas") is that of networkx, x = alpha A^T x + beta. A node without
# incoming edges has x = beta.
# Seen: the product A^T x is a sparse vector without these nodes, and adding the number beta in place changes the entries it has, only. So
# sources have no value, and give nothing to the nodes they point to, which lose theirs in the next step. Of a graph without cycles the
# result is empty. Else, it is the centrality of another graph. Isolated nodes of an undirected graph are missing too.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet graphblas-algorithms==2023.10.0 networkx==3.2.1 python-graphblas==2025.2.0 \
  suitesparse-graphblas==9.4.5.0 numpy==1.26.4 scipy==1.15.3
cd "$folder"
"$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import networkx as nx
import numpy as np

print(f'graphblas-algorithms {version("graphblas-algorithms")}')
chain = nx.DiGraph([(0, 1), (1, 2), (2, 3)])
fed = nx.DiGraph([(0, 1), (1, 2), (2, 1), (3, 1), (4, 1)])  # A cycle of 1 and 2, and three sources.
lonely = nx.Graph([(0, 1), (1, 2)])
lonely.add_node(3)
cycle = nx.cycle_graph(4, create_using=nx.DiGraph)
for name, graph in (('chain', chain), ('cycle with three sources', fed), ('path and an isolated node', lonely), ('cycle', cycle)):
    options = {'alpha': 0.2, 'beta': 1.0, 'normalized': False, 'tol': 1e-10}
    nodes = list(graph)
    seen = {v: round(float(x), 4) for v, x in nx.katz_centrality(graph, **options, backend='graphblas').items()}
    solved = np.linalg.solve(np.eye(len(nodes)) - 0.2 * nx.to_numpy_array(graph).T, np.ones(len(nodes)))
    right = {v: round(float(x), 4) for v, x in zip(nodes, solved)}
    print(f'{name}: {seen}\n  solved {right}')
    assert all(np.isclose(x, right[v], atol=1e-3) for v, x in nx.katz_centrality(graph, **options).items()), 'this has changed'
    if name == 'chain':
        assert seen == {}, 'this has changed'
    elif name == 'cycle with three sources':
        assert set(seen) == {1, 2} and seen[1] == seen[2] == 1.25 and right[1] > 1.8, 'this has changed'
    elif name == 'path and an isolated node':
        assert set(seen) == {0, 1, 2}, 'this has changed'
    else:
        assert seen == right, 'this has changed'
PY
