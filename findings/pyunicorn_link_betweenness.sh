#!/usr/bin/env bash
# pyunicorn 1.0.0: link_betweenness gives the values of other links if an igraph graph lists its edges in any order, or has directions.
#
# Expected: "For each link, return its betweenness", "Entry [i,j] is the betweenness of the link between i and j, or 0 if i is not linked to
# j", and "Does not respect directionality of links" (docstring, www.pik-potsdam.de/~donges/pyunicorn/api/core/network.html). FromIGraph is
# for any igraph graph.
# Seen: link_betweenness in core/network.py takes the values of igraph in the order of edges, and writes them in the order of sorted
# neighbors. Both are the same for a network from a matrix. FromIGraph keeps the graph, with its order: values go to other links. A directed
# network has no value for a link from a larger to a smaller index, and takes its value for the next link.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet numpy==2.4.6 scipy==1.17.1 igraph==1.0.0 h5netcdf==1.8.2 h5py==3.16.0 tqdm==4.70.1
"$folder/venv/bin/pip" install --quiet --no-deps pyunicorn==1.0.0
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import igraph
import numpy as np
from pyunicorn.core.network import Network

print(f'pyunicorn {version("pyunicorn")}')


def by_definition(a):
    """The share of shortest paths of each pair that take a link, over unordered pairs. Directions are ignored."""
    a = np.maximum(a, a.T)
    n = len(a)
    d, count = np.full((n, n), np.inf), np.zeros((n, n))
    power = np.eye(n)
    for length in range(n):
        found = (power > 0) & np.isinf(d)
        d[found], count[found] = length, power[found]
        power = power @ a
    result = np.zeros((n, n))
    for i, j in zip(*a.nonzero()):
        for s in range(n):
            for t in range(n):
                if s != t and d[s, i] + 1 + d[j, t] == d[s, t]:
                    result[i, j] += count[s, i] * count[j, t] / count[s, t] / 2
    return result + result.T


edges = [(5, 4), (4, 3), (3, 0), (0, 1), (1, 2), (2, 3)]
adjacency = np.zeros((6, 6), dtype=int)
adjacency[tuple(np.transpose(edges))] = 1
undirected = np.maximum(adjacency, adjacency.T)
right = by_definition(adjacency)
networks = {
    'from a matrix': Network(adjacency=undirected, silence_level=3),
    'from igraph': Network.FromIGraph(igraph.Graph(edges), silence_level=3),
    'from igraph, sorted edges': Network.FromIGraph(igraph.Graph(sorted(tuple(sorted(edge)) for edge in edges)), silence_level=3),
    'directed, from a matrix': Network(adjacency=adjacency, directed=True, silence_level=3),
}
for name, network in networks.items():
    seen = network.link_betweenness()
    i, j = np.nonzero(np.triu(undirected))
    print(f'{name}: links {[tuple(map(int, link)) for link in zip(i, j)]}: {seen[i, j].round(2).tolist()}, right {right[i, j].round(2).tolist()}')
    assert np.allclose(seen, right) == (name in ('from a matrix', 'from igraph, sorted edges')), 'this has changed'
    if name.startswith('directed'):
        assert (seen[i, j] == 0).any(), 'this has changed'
    assert np.array_equal(network.undirected_adjacency().toarray(), undirected)
PY
