#!/usr/bin/env bash
# graphblas-algorithms 2023.10.0 (networkx 3.2.1): self-loops change directed clustering coefficients, for all nodes at once only.
#
# Expected: clustering coefficients of directed graphs ignore self-loops (Fagiolo 2007: the diagonal of the adjacency matrix is 0), as
# networkx does, and as this package does for undirected graphs and for a single node.
# Seen: for all nodes, the transposed matrix keeps its self-loops, and walks along them count as triangles. Of a directed cycle of three
# nodes, a self-loop raises the value of another node from 0.5 to 1. A leaf next to a self-loop has infinity, where there is no
# triangle at all. nodes=[v] and average_clustering have it as well. The value of the same node alone is right.
# On self-loops in these functions: https://github.com/python-graphblas/graphblas-algorithms/pull/4
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
cycle = nx.DiGraph([(0, 1), (1, 2), (2, 0)])
looped = nx.DiGraph(cycle)
looped.add_edge(0, 0)
path = nx.DiGraph([(0, 1), (1, 2), (1, 1)])  # No triangles.
for name, graph in (('cycle', cycle), ('cycle with a self-loop', looped), ('path with a self-loop', path)):
    nodes = [0, 1, 2]
    a = nx.to_numpy_array(graph, nodelist=nodes)
    np.fill_diagonal(a, 0)
    both, degree = a + a.T, (a + a.T).sum(1)
    possible = 2 * (degree * (degree - 1) - 2 * np.diag(a @ a))
    right = np.diag(both @ both @ both) / np.where(possible > 0, possible, 1)
    together = dict(nx.clustering(graph, backend='graphblas'))
    seen = [round(float(together.get(v, 0)), 4) for v in nodes]
    alone = [float(nx.clustering(graph, v, backend='graphblas')) for v in nodes]
    listed = [float(dict(nx.clustering(graph, [v], backend='graphblas')).get(v, 0)) for v in nodes]
    assert np.allclose(listed, seen, atol=1e-3), 'this has changed'
    mean = float(nx.average_clustering(graph, backend='graphblas'))
    print(f'{name}: all nodes {seen}, each node alone {alone}, by the definition {right.tolist()}. '
          f'Average {mean:.4f}, right {right.mean():.4f}')  # fmt: skip
    assert np.allclose(alone, right) and np.allclose(list(nx.clustering(graph).values()), right), 'this has changed'
    assert np.isclose(mean, np.mean(seen), atol=1e-3), 'this has changed'
    if name == 'cycle':
        assert np.allclose(seen, right), 'this has changed'
    else:
        assert max(seen) > right.max() + 0.2, 'this has changed'
PY
