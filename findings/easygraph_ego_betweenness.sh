#!/usr/bin/env bash
# EasyGraph 1.6.3: ego_betweenness of the center of a star is 0, as that of every node of every graph without self-loops.
#
# Expected: the cited paper (Everett and Borgatti 2005) sums 1 / (A^2)_ij over the pairs of nodes of the ego network that are not connected,
# with A^2 the number of paths of length two. The center of a star with n leaves has n (n - 1) / 2: all shortest paths between
# leaves pass it. This is its betweenness in the ego network.
# Seen: A * A of the code is the product of entries, and not of matrices. It is zero where A is, so that the sum has no term.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet Python-EasyGraph==1.6.3 networkx==3.6.1 numpy==1.26.4 scipy==1.13.1 pandas==2.3.3 torch==2.13.0
"$folder/venv/bin/python" -W ignore - <<'PY'
from contextlib import redirect_stdout
from importlib.metadata import version
from io import StringIO

import easygraph as eg
import networkx as nx
import numpy as np

print(f'EasyGraph {version("Python-EasyGraph")}')


def by_hand(graph, node):
    matrix = nx.to_numpy_array(nx.ego_graph(graph, node), weight=None)
    paths = np.triu((matrix @ matrix) * (1 - matrix), 1)
    return (1 / paths[paths > 0]).sum()


for name, graph in (('star', nx.star_graph(5)), ('club', nx.karate_club_graph())):
    mine = eg.Graph()
    mine.add_edges(list(graph.edges))
    right = by_hand(graph, 0)
    between = nx.betweenness_centrality(nx.ego_graph(graph, 0), normalized=False)[0]
    with redirect_stdout(StringIO()):  # it prints the ego network
        seen = [eg.ego_betweenness(mine, node) for node in graph]
    print(f'{name}: {seen[0]} for node 0 instead of {right:.3f} (networkx: betweenness {between:.3f}), and {set(seen)} for all nodes')
    assert abs(right - between) < 1e-9 and right > 1, 'the definition is wrong'
    assert set(seen) == {0}, 'this has changed'
PY
