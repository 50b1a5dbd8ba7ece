#!/usr/bin/env bash
# networkx-temporal 1.4.4: modularity_multislice has half of the weight of couplings, and modularity of a static graph has a NameError.
#
# Expected: the documented formula, and that of the cited Mucha et al. 2010, is a sum over all nodes i, j and slices s, r, also of the
# couplings, divided by 2 mu. A coupling of the slices s and r is there as (s, r) and (r, s). If all is one community, the couplings are
# their whole share of the value: with large weights of the couplings, it is 1. modularity takes a "temporal or static NetworkX graph".
# Seen: modularity_multislice doubles the edges of the slices for the sum over all i, j, and takes each coupling once. So the couplings
# have half of their weight, and the value has the limit 1/2. For a static graph, modularity calls Q, which is not defined. With
# spectral=True, modularity_spectral does not take its argument resolution.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet networkx-temporal==1.4.4 networkx==3.6.1 numpy==2.4.6 scipy==1.17.1 pandas==3.1.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version
from itertools import product

import networkx as nx
import networkx_temporal as tx
import numpy as np

print(f'networkx-temporal {version("networkx-temporal")}')
graph = tx.TemporalGraph(t=2)
for t in range(2):
    nx.add_path(graph[t], range(5))


def formula(graph, labels, weight):
    total, mu = 0, sum(g.size() for g in graph) + weight * 5
    for s, r, i, j in product(range(2), range(2), range(5), range(5)):
        if labels[s][i] == labels[r][j]:
            if s == r:
                total += graph[s].has_edge(i, j) - graph[s].degree(i) * graph[s].degree(j) / (2 * graph[s].size())
            elif i == j:
                total += weight
    return total / (2 * mu)


for name, labels in (('two communities, one node moves', [[0, 0, 0, 1, 1], [0, 0, 1, 1, 1]]), ('one community', [[0] * 5, [0] * 5])):
    for weight in (0, 1, 2, 1e6):
        seen, right = tx.modularity_multislice(graph, labels, interslice_weight=weight), formula(graph, labels, weight)
        print(f'{name}, weight {weight}: {seen:.4f}, by the formula {right:.4f}')
        assert np.isclose(seen, right) == (weight == 0), 'this has changed'
assert np.isclose(seen, 0.5, atol=1e-4) and np.isclose(right, 1, atol=1e-4), 'this has changed'

path, labels = nx.path_graph(5), [0, 0, 0, 1, 1]
for kind, one, communities, spectral in (('static', path, labels, False), ('temporal', graph, [labels] * 2, True)):
    try:
        tx.modularity(one, communities, spectral=spectral)
        raise AssertionError('this has changed')
    except (NameError, TypeError) as error:
        print(f'modularity of a {kind} graph, spectral={spectral}: {type(error).__name__}: {error}')
PY
