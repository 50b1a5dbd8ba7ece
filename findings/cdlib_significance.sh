#!/usr/bin/env bash
# cdlib 0.4.1: significance compares with another density than that of the graph, and is nan if a community is a clique.
#
# Expected: significance, as Traag defines it, sums C(n_c, 2) D(p_c || p) over the communities, with p_c = m_c / C(n_c, 2) the density
# inside, and p the density of the graph, m / C(n, 2). D is the Kullback-Leibler divergence, where 0 log 0 is 0. leidenalg 0.12.0 does so.
# Seen: p is m / C(m, 2), which has the number of edges for the number of nodes. And the term of a clique is 0 log 0, which NumPy makes
# nan. So the best partition there is, into cliques, has no value, and one community that holds the whole graph is significant.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet cdlib==0.4.1 leidenalg==0.12.0 igraph==1.0.0 networkx==3.6.1 numpy==1.26.4 scipy==1.13.1
"$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import igraph
import leidenalg
import networkx as nx
import numpy as np
from cdlib import NodeClustering, evaluation
from scipy.special import rel_entr

print(f'cdlib {version("cdlib")}, leidenalg {version("leidenalg")}')


def by_hand(graph, parts):
    density, total = nx.density(graph), 0
    for part in parts:
        inside = nx.density(graph.subgraph(part))
        total += len(part) * (len(part) - 1) / 2 * (rel_entr(inside, density) + rel_entr(1 - inside, 1 - density))
    return total


seen = {}
club = nx.karate_club_graph()
for name, graph, parts in (
    ('club, two halves', club, [list(range(0, 17)), list(range(17, 34))]),
    ('club, one community', club, [list(club)]),
    ('four cliques in a ring', nx.ring_of_cliques(4, 5), [list(range(5 * i, 5 * i + 5)) for i in range(4)]),
):
    seen[name] = evaluation.significance(graph, NodeClustering(parts, graph)).score
    membership = [next(i for i, part in enumerate(parts) if node in part) for node in graph]
    other = leidenalg.SignificanceVertexPartition(igraph.Graph(edges=list(graph.edges)), membership).quality()
    right = by_hand(graph, parts)
    print(f'{name}: {seen[name]:.3f} instead of {right:.3f} (leidenalg: {other:.3f})')
    assert abs(right - other) < 1e-6, 'the definition is wrong'
assert seen['club, one community'] > 50 and seen['club, two halves'] > 50, 'this has changed'
assert np.isnan(seen['four cliques in a ring']), 'this has changed'
PY
