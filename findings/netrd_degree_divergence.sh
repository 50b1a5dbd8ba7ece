#!/usr/bin/env bash
# netrd 0.3.0: DegreeDivergence of a complete graph is nan, and of a star and a cycle greater than 1.
#
# Expected: "Jenson-Shannon divergence between degree distributions", in bits: it lies between 0 and 1, and is 1 for distributions
# without a common degree. The documentation accepts every undirected graph.
# Seen: the histogram of degrees ends before the largest possible degree, n - 1, so that a node which is connected to all others is not
# counted. A complete graph has an empty histogram. And the histograms are not normalised before they are averaged, so that
# the graph with more counted nodes weighs more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet netrd==0.3.0 networkx==3.6.1 numpy==1.26.4 scipy==1.13.1
"$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import networkx as nx
import numpy as np
from netrd.distance import DegreeDivergence

print(f'netrd {version("netrd")}')


def by_hand(*graphs):
    p, q = (np.bincount([degree for _, degree in graph.degree], minlength=9) / len(graph) for graph in graphs)
    terms = [x[x > 0] @ np.log2(x[x > 0] / ((p + q) / 2)[x > 0]) for x in (p, q)]
    return 0.5 * sum(terms)


seen = {}
for names in (('complete', 'cycle'), ('star', 'cycle'), ('star', 'path'), ('cycle', 'long path')):
    graphs = [
        {
            'complete': nx.complete_graph(4),
            'cycle': nx.cycle_graph(4),
            'star': nx.star_graph(3),
            'path': nx.path_graph(4),
            'long path': nx.path_graph(9),
        }[name]
        for name in names
    ]
    seen[names] = DegreeDivergence().dist(*graphs)
    print(f'{names[0]} and {names[1]}: {seen[names]:.4f} instead of {by_hand(*graphs):.4f}')
assert np.isnan(seen['complete', 'cycle']) and seen['star', 'cycle'] > 1.01, 'this has changed'
assert abs(seen['star', 'path'] - by_hand(nx.star_graph(3), nx.path_graph(4))) > 0.03, 'this has changed'
assert abs(seen['cycle', 'long path'] - by_hand(nx.cycle_graph(4), nx.path_graph(9))) > 1e-3, 'this has changed'
PY
