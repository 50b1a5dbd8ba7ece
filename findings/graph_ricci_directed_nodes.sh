#!/usr/bin/env bash
# GraphRicciCurvature 0.6.1: the curvature of a node of a directed graph is not an average of the curvatures of edges.
#
# Expected: "the average of all it's adjacency edge", says the documentation of OllivierRicci, which takes directed graphs. If all edges have
# the same curvature, all nodes have it as well.
# Seen: the sum goes over the outgoing edges, but is divided by the number of outgoing and incoming edges. On a directed cycle, each edge
# has the same curvature, and each node half of it. A node with incoming edges only has 0, that is to say neither positive nor negative
# curvature, whatever its edges have. For undirected graphs it is right.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet GraphRicciCurvature==0.6.1 networkx==3.6.1 numpy==2.2.6 scipy==1.13.1 POT==0.9.7.post1 \
  networkit==11.3 python-louvain==0.16
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import networkx as nx
import numpy as np
from GraphRicciCurvature.OllivierRicci import OllivierRicci

print(f'GraphRicciCurvature {version("GraphRicciCurvature")}')


def curvatures(graph):
    result = OllivierRicci(graph, alpha=0.5, method='OTD', proc=1).compute_ricci_curvature()
    return nx.get_edge_attributes(result, 'ricciCurvature'), nx.get_node_attributes(result, 'ricciCurvature')


def averages(graph, edges):
    """Over the outgoing, the incoming and all edges of each node."""
    out, into = ([[edges[e] for e in f(v)] for v in graph] for f in (graph.out_edges, graph.in_edges))
    return [[np.mean(part) if part else np.nan for part in parts] for parts in (out, into, [a + b for a, b in zip(out, into)])]


for size in (5, 8):
    edges, nodes = curvatures(nx.cycle_graph(size, create_using=nx.DiGraph))
    print(f'directed cycle of {size}: edges {np.round(list(edges.values()), 3)}, nodes {np.round(list(nodes.values()), 3)}')
    assert np.allclose(list(edges.values()), edges[0, 1]) and abs(edges[0, 1]) > 0.1, 'this has changed'
    assert np.allclose(list(nodes.values()), edges[0, 1] / 2), 'this has changed'

graph = nx.DiGraph([(0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (1, 3)])
edges, nodes = curvatures(graph)
seen = np.array(list(nodes.values()))
rows = averages(graph, edges)
for name, row in zip(('outgoing', 'incoming', 'all'), rows):
    print(f'nodes {seen.round(3)}, averages over {name} edges {np.round(row, 3)}')
    assert abs(seen - row).max() > 0.1, 'this has changed'
assert np.allclose(seen, [sum(edges[e] for e in graph.out_edges(v)) / graph.degree(v) for v in graph]), 'this has changed'

edges, nodes = curvatures(nx.DiGraph([(0, 1), (1, 2)]))
print(f'0 -> 1 -> 2: edges {np.round(list(edges.values()), 3)}, nodes {np.round(list(nodes.values()), 3)}')
assert np.allclose(list(edges.values()), -0.5) and nodes[2] == 0, 'this has changed'

undirected = nx.barbell_graph(3, 1)
edges, nodes = curvatures(undirected)
right = [np.mean([edges.get((u, v), edges.get((v, u))) for v in undirected[u]]) for u in undirected]
print(f'undirected: nodes {np.round(list(nodes.values()), 3)}, averages {np.round(right, 3)}')
assert np.allclose(list(nodes.values()), right), 'this has changed'
PY
