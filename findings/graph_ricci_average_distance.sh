#!/usr/bin/env bash
# GraphRicciCurvature 0.6.1: method='ATD' with shortest_path='pairwise' takes the distances of the graph before.
#
# Expected: shortest_path says how distances are found: 'pairwise' avoids the matrix of all distances. The result is that of 'all_pairs', as
# with the other methods.
# Seen: the average transportation distance reads the matrix of all distances in either case. 'pairwise' does not make one, so that it is
# that of the last graph with 'all_pairs' in the same process. The curvatures of a cycle depend on the graph before. There is no warning.
# Without such a graph, it is an error.
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


def curvatures(graph, method, shortest_path):
    result = OllivierRicci(graph, alpha=0.5, method=method, proc=1, shortest_path=shortest_path).compute_ricci_curvature()
    return np.array([result.edges[edge]['ricciCurvature'] for edge in graph.edges])


def average_distance(graph):
    """By the definition, for alpha = 0.5: half of the mass stays at the nodes, the other half goes to all pairs of neighbors."""
    distance = dict(nx.all_pairs_shortest_path_length(graph))
    pairs = [[distance[a][b] for a in graph[u] for b in graph[v]] for u, v in graph.edges]
    return np.array([1 - 0.5 - 0.5 * np.mean(values) for values in pairs])


try:
    curvatures(nx.cycle_graph(6), 'ATD', 'pairwise')
except KeyError:
    print('pairwise, no graph before: an error')
else:
    raise AssertionError('this has changed')

cycle = nx.cycle_graph(6)
right = average_distance(cycle)
for name, before in (('the same', cycle), ('a path', nx.path_graph(6)), ('a complete graph', nx.complete_graph(6))):
    curvatures(before, 'OTD', 'all_pairs')
    seen, other = curvatures(cycle, 'ATD', 'pairwise'), curvatures(cycle, 'OTD', 'pairwise')
    print(f'cycle, pairwise, after {name}: ATD {seen.round(3)}, by the definition {right.round(3)}, OTD {other.round(3)}')
    assert np.allclose(seen, right) == (before is cycle), 'this has changed'
    assert np.allclose(other, curvatures(cycle, 'OTD', 'all_pairs')), 'this has changed'
seen = curvatures(cycle, 'ATD', 'all_pairs')
print(f'cycle, all_pairs: ATD {seen.round(3)}')
assert np.allclose(seen, right), 'this has changed'
PY
