#!/usr/bin/env bash
# netbone 0.2.3: the noise corrected backbone expects twice the right weight of each edge, and keeps too few edges.
#
# Expected: Coscia and Neffke (2017) expect N_i. N_.j / N_.. for the edge of i and j, where N_.. is the sum of the whole matrix.
# The matrix of an undirected graph has each edge twice: their code asks for edges "in both directions with the same weights".
# So the expected weight is s_i s_j / (2 W), with strengths s and the total weight W. An edge as expected has a score near 0.
# Seen: noise_corrected takes W for N_.., but the strengths are those of both directions. So the expected weight is s_i s_j / W.
# The expected weights of all pairs, loops included, add up to 2 W. In a complete graph with equal weights, all scores are about
# -1/3, and all p-values are about 1. Of Les Miserables, fewer edges are left at any level.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet igraph==0.10.2 networkx==2.8.8 numpy==1.26.4 packaging==22.0 pandas==2.2.2 patsy==0.5.3 \
  scipy==1.13.0 statsmodels==0.14.0 python-louvain==0.16 matplotlib==3.6.0 seaborn==0.13.2
# The method ECM needs the other requirements, and is not used here.
"$folder/venv/bin/pip" install --quiet --no-deps netbone==0.2.3
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import netbone
import networkx as nx
import numpy as np
from netbone.filters import threshold_filter
from scipy.stats import binom

print(f'netbone {version("netbone")}')


def by_definition(graph):  # the score and the p-value of each edge
    matrix = nx.to_numpy_array(graph)
    strength, total = matrix.sum(1), matrix.sum()
    expected = np.outer(strength, strength) / total
    assert np.isclose(expected.sum(), total), 'the definition is wrong'
    nodes = list(graph)
    edges = [(nodes.index(u), nodes.index(v)) for u, v in graph.edges]
    lift = np.array([matrix[e] / expected[e] for e in edges])
    return (lift - 1) / (lift + 1), np.array([1 - binom.cdf(matrix[e], total, expected[e] / total) for e in edges])


def seen_by(graph, approximation):
    result = netbone.noise_corrected(graph, approximation=approximation).graph
    return np.array([result[u][v]['p_value' if approximation else 'score'] for u, v in graph.edges])


graphs = {'complete graph with weights 20': nx.complete_graph(30), 'Les Miserables': nx.les_miserables_graph()}
for name, graph in graphs.items():
    if name.startswith('complete'):
        nx.set_edge_attributes(graph, 20, 'weight')
    scores, p = by_definition(graph)
    seen, seen_p = seen_by(graph, False), seen_by(graph, True)
    print(f'{name}: mean score {seen.mean():.3f}, by the definition {scores.mean():.3f}; '
          f'mean p-value {seen_p.mean():.3f}, by the definition {p.mean():.3f}')  # fmt: skip
    half = (1 + scores) / (1 - scores) / 2  # half of the right lift
    assert np.allclose(seen, (half - 1) / (half + 1)) and not np.isclose(seen, scores).any(), 'this has changed'
    assert seen_p.mean() > p.mean() + 0.1, 'this has changed'
    left = threshold_filter(netbone.noise_corrected(graph), 0.05, narrate=False).number_of_edges()
    print(f'    edges with p < 0.05: {left}, by the definition {(p < 0.05).sum()}')
    assert left == (seen_p < 0.05).sum() and (name.startswith('complete') or left < 0.7 * (p < 0.05).sum()), 'this has changed'
complete = nx.complete_graph(30)
nx.set_edge_attributes(complete, 20, 'weight')
assert np.all(seen_by(complete, True) > 0.99) and np.all(np.abs(by_definition(complete)[0]) < 0.02), 'this has changed'
PY
