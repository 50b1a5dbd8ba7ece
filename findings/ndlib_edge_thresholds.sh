#!/usr/bin/env bash
# ndlib 6.0.1: IndependentCascadesModel drops all edge thresholds, if not exactly all edges have one, and takes 1 / degree instead.
#
# Expected: the threshold of an edge is the probability that a node infects the other, 0.1 by default, as the tables of the documentation
# say. An edge with a threshold has that one. In an undirected graph, the model reads a threshold for (u, v) or for (v, u).
# Seen: thresholds are kept only if their number is that of the edges. With one edge less, or with both directions of each, all are dropped
# with no warning, and the probability is 1 / degree of the infected node, which is on no page. 1 for all edges but one then infects 1 / 4 of
# the neighbors of a node of degree 4, 0 for all edges but one also does. With no thresholds at all, it is 0.1.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet ndlib==6.0.1 networkx==3.6.1 numpy==2.4.6 scipy==1.17.1 igraph==1.0.0 dynetx==0.3.2 \
  netdispatch==0.1.0 bokeh==3.9.2 future==1.0.0 tqdm==4.70.1 six==1.17.0
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import networkx as nx
import ndlib.models.epidemics as epidemics
import numpy as np
from ndlib.models.ModelConfig import Configuration

print(f'ndlib {version("ndlib")}')
star = nx.star_graph(4)  # Node 0 in the middle, and the only infected.
edges = list(star.edges)


def infected(thresholds, runs=2000):
    """Part of the runs in which the first step infects each of the nodes 1 to 4."""
    counts = np.zeros(4)
    for _ in range(runs):
        config = Configuration()
        config.add_model_initial_configuration('Infected', [0])
        for edge, threshold in thresholds.items():
            config.add_edge_configuration('threshold', edge, threshold)
        model = epidemics.IndependentCascadesModel(star)
        model.set_initial_status(config)
        model.iteration_bunch(2)
        counts += [model.status[v] == 1 for v in range(1, 5)]
    return counts / runs


np.random.seed(0)
both = edges + [(v, u) for u, v in edges]
cases = {  # name: thresholds, as the documentation says, seen
    'no thresholds': ({}, [0.1] * 4, [0.1] * 4),
    '0.8 for all edges': (dict.fromkeys(edges, 0.8), [0.8] * 4, [0.8] * 4),
    '1 for all edges but the last': (dict.fromkeys(edges[:-1], 1.0), [1, 1, 1, 0.1], [0.25] * 4),
    '0 for all edges but the last': (dict.fromkeys(edges[:-1], 0.0), [0, 0, 0, 0.1], [0.25] * 4),
    '0.8 for both directions of all edges': (dict.fromkeys(both, 0.8), [0.8] * 4, [0.25] * 4),
}
for name, (thresholds, right, expected) in cases.items():
    seen = infected(thresholds)
    print(f'{name}: parts infected {seen.round(2)}, by the documentation {right}')
    assert np.allclose(seen, expected, atol=0.05), 'this has changed'
PY
