#!/usr/bin/env bash
# momepy 0.11.0: betweenness_centrality gives a detour between two crossings the betweenness of the direct street.
#
# Expected: the betweenness of an edge is the sum over all pairs of nodes of the fraction of shortest paths that pass through it. A longer
# edge between the same nodes has 0. Two edges of the same length share the paths.
# Seen: of parallel edges, the shortest is kept for the computation, and its value is written to all of them. A street that is ten times
# as long, which no shortest path takes, has the largest value of the graph. Two streets of equal length have the whole value each, not
# half of it. Parallel streets are common, and the function takes graphs that may have them (MultiGraph) only.
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


def simple_paths(edges, at, end, used=()):
    """All paths as lists of edges, by trying each."""
    if at == end:
        yield list(used)
        return
    seen = {edges[e][0] for e in used} | {edges[e][1] for e in used}
    for e, (u, v, _) in enumerate(edges):
        if e not in used and at in (u, v):
            to = v if at == u else u
            if to not in seen:
                yield from simple_paths(edges, to, end, (*used, e))


def by_definition(edges):
    total = np.zeros(len(edges))
    for start, end in combinations(range(n), 2):
        paths = list(simple_paths(edges, start, end))
        lengths = [sum(edges[e][2] for e in path) for path in paths]
        best = [path for path, length in zip(paths, lengths) if np.isclose(length, min(lengths))]
        for path in best:
            total[path] += 1 / len(best)
    return total / (n * (n - 1) / 2)


for length in (10.0, 1.0):
    edges = [(0, 1, 1.0), (1, 2, 1.0), (2, 3, 1.0), (1, 2, length)]
    graph = nx.MultiGraph()
    for u, v, d in edges:
        graph.add_edge((float(u), 0.0), (float(v), 0.0), mm_len=d)
    done = momepy.betweenness_centrality(graph, mode='edges', verbose=False)
    order = [(0, 1, 0), (1, 2, 0), (2, 3, 0), (1, 2, 1)]
    seen = np.array([done.edges[(float(u), 0.0), (float(v), 0.0), k]['betweenness'] for u, v, k in order])
    right = by_definition(edges)
    print(f'a path of three streets of length 1, and one of length {length:.0f} beside the second: {seen.round(3)}, '
          f'by the definition {right.round(3)}')  # fmt: skip
    assert np.allclose(seen[[0, 2]], right[[0, 2]]), 'this has changed'
    assert seen[3] == seen[1] == seen.max() and right[3] < seen[3] - 0.3, 'this has changed'
PY
