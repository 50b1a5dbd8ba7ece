#!/usr/bin/env bash
# NetComp 0.2.3: vertex_edge_overlap counts unions instead of intersections, so that equal graphs are the least similar ones.
#
# Expected: a similarity, "basically a souped-up edit distance, but in similarity form". The vertex/edge overlap of
# Papadimitriou et al. (2010) is 2 (|V and V'| + |E and E'|) / (|V| + |V'| + |E| + |E'|). It is 1 for equal graphs, whose
# vertex_edge_distance is 0.
# Seen: the sizes of the unions are taken, and the docstring calls "&" the union. A graph and itself have the overlap 0.5 and
# the distance 1, the largest one of all. Graphs without a common edge have a distance near 0. So sorting graphs by it sorts
# them backwards. NetComp asks for NetworkX 1, which does not run on current Python. The functions here run with NetworkX 2.8.8.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet numpy==1.26.4 scipy==1.11.4 networkx==2.8.8 setuptools==80.9.0
"$folder/venv/bin/pip" install --quiet --no-deps netcomp==0.2.3
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import netcomp
import networkx as nx
import numpy as np

print(f'NetComp {version("netcomp")}')
first, second, third = (nx.to_numpy_array(nx.gnp_random_graph(8, 0.6, seed=seed)) for seed in (1, 2, 4))
cases = {'the same graph': first, 'one edge less': first.copy(), 'another graph': second}
cases['no common edge'] = 1 - np.eye(8) - first
i, j = np.argwhere(first)[0]
cases['one edge less'][i, j] = cases['one edge less'][j, i] = 0
distances, expected = [], []
for name, other in cases.items():
    edges, others = (set(map(tuple, np.argwhere(np.triu(matrix)))) for matrix in (first, other))
    size = 16 + len(edges) + len(others)
    right = 2 * (8 + len(edges & others)) / size
    seen = netcomp.vertex_edge_overlap(first, other)
    distances.append(netcomp.vertex_edge_distance(first, other))
    expected.append((1 - right) / right)
    print(f'{name}: overlap {seen:.3f}, by the definition {right:.3f}, distance {distances[-1]:.3f}, right {expected[-1]:.3f}')
    assert np.isclose(seen, (8 + len(edges | others)) / size), 'this has changed'
assert expected[0] == 0 and expected == sorted(expected)
assert distances[0] == 1 and distances == sorted(distances, reverse=True), 'this has changed'
PY
