#!/usr/bin/env bash
# momepy 0.11.0: betweenness_centrality ignores normalized without a radius, and endpoints with one.
#
# Expected: normalized is False by default, and "if True the betweenness values are normalized by 2/((n-1)(n-2))". A path with v at its
# end does not count for v, by the formula in the documentation. A radius which covers the whole graph changes nothing.
# Seen: without a radius, normalized does not reach the function of networkx, which then divides: values of nodes and of edges are
# normalized by default, normalized=False does not help. endpoints=True is the default for whole graphs, where a dead end has more than 0,
# and has no effect with a radius. So the same street has 0.83 in its whole graph and 2 in a radius that covers it. None of the options
# makes both equal, except normalized=True with endpoints=False. On the two of them: https://github.com/pysal/momepy/pull/99
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet momepy==0.11.0 networkx==3.6.1 libpysal==4.14.1 geopandas==1.2.0 pandas==3.1.1 numpy==2.4.6 \
  shapely==2.2.0
cd "$folder"
"$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version
from itertools import combinations

import momepy
import networkx as nx
import numpy as np

print(f'momepy {version("momepy")}')
n = 4
graph = nx.MultiGraph()
for i in range(n - 1):
    graph.add_edge((float(i), 0.0), (i + 1.0, 0.0), mm_len=1.0)
pairs = list(combinations(range(n), 2))  # In a path, all that is between two nodes is on the only path.
nodes = np.array([sum(i < v < j for i, j in pairs) for v in range(n)], dtype=float)
edges = np.array([sum(i <= e < j for i, j in pairs) for e in range(n - 1)], dtype=float)
factor = 2 / ((n - 1) * (n - 2))


def values(**options):
    done = momepy.betweenness_centrality(graph, verbose=False, **options)
    data = done.edges(data='betweenness') if options.get('mode') == 'edges' else done.nodes(data='betweenness')
    return np.array([row[-1] for row in data])


for normalized in (False, True):
    right = nodes * (factor if normalized else 1)
    whole = values(normalized=normalized, endpoints=False)
    default = values(normalized=normalized)
    near = values(normalized=normalized, endpoints=False, radius=n)
    print(f'nodes, normalized={normalized}: whole graph {default.round(3)}, with endpoints=False {whole.round(3)}, '
          f'with a radius of {n} {near.round(3)}, by the definition {right.round(3)}')  # fmt: skip
    assert np.allclose(near, right) and np.allclose(whole, nodes * factor) and default.min() == 0.5, 'this has changed'
    assert np.allclose(near, values(normalized=normalized, endpoints=True, radius=n)), 'this has changed'
    seen = values(normalized=normalized, mode='edges')
    print(f'edges, normalized={normalized}: {seen.round(3)}, pairs of nodes with their path through the edge {edges}')
    assert np.allclose(seen, edges / len(pairs)), 'this has changed'
PY
