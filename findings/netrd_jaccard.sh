#!/usr/bin/env bash
# netrd 0.3.0: the Jaccard distance of an undirected graph to itself is 1 if its edges were added in another order.
#
# Expected: the documented equation, 1 - |A and B| / |A or B| of the two sets of edges. Two graphs with the same nodes and edges have
# the distance 0. Hamming's distance of the same module, and the function graphs_equal of networkx, say that they are equal.
# Seen: the edges are compared as pairs (u, v), and an undirected edge is listed in the order in which its nodes were added. So the same
# path, written from its other end, has the greatest possible distance, 1. Directed graphs are right.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet netrd==0.3.0 networkx==3.6.1 numpy==1.26.4 scipy==1.13.1
"$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import networkx as nx
from netrd.distance import Hamming, JaccardDistance

print(f'netrd {version("netrd")}')
first = nx.Graph([(0, 1), (1, 2), (2, 3)])
other = nx.Graph([(3, 2), (2, 1), (1, 0)])
assert nx.utils.graphs_equal(first, other)
sets = [{frozenset(edge) for edge in graph.edges} for graph in (first, other)]
right = 1 - len(sets[0] & sets[1]) / len(sets[0] | sets[1])
seen = JaccardDistance().dist(first, other)
print(f'the same path from both ends: Jaccard distance {seen} instead of {right}, Hamming distance {Hamming().dist(first, other)}')
assert right == 0 and seen == 1 and Hamming().dist(first, other) == 0, 'this has changed'

partial = nx.Graph([(0, 1), (3, 2), (1, 2)])
print(f'with one edge written the other way: {JaccardDistance().dist(first, partial)}')
assert nx.utils.graphs_equal(first, partial) and JaccardDistance().dist(first, partial) == 0.5, 'this has changed'
PY
