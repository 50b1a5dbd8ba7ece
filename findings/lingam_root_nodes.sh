#!/usr/bin/env bash
# lingam 1.13.0: calculate_distance_from_root_nodes takes a node whose effects from its parents sum up to 0 for a root node.
#
# Expected: a root node has no parents, and the distance of a node is the number of edges of the shortest path from a root node. Only which
# entries of the adjacency matrix are 0 matters. get_exo_variables of the same module finds the nodes without parents so.
# Seen: a root node is a row with the sum 0. Effects of 0.5 and -0.5 sum up to 0: a node with both is a root node, at distance 0, and the
# nodes after it are too close. Effects rounded to one digit often have such rows. The distances change if one variable is measured with the
# opposite sign, although the graph does not.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet lingam==1.13.0 numpy==2.2.6 scipy==1.13.1 networkx==3.6.1 scikit-learn==1.9.1 \
  pandas==3.1.1 statsmodels==0.15.0 matplotlib==3.11.2 autograd==1.9.1 graphviz==0.21 psy==0.0.1 pygam==0.12.0 semopy==2.3.11
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import networkx as nx
import numpy as np
from lingam.utils import calculate_distance_from_root_nodes, get_exo_variables

print(f'lingam {version("lingam")}')


def distances(matrix):
    return {int(node): int(distance) for distance, nodes in calculate_distance_from_root_nodes(matrix).items() for node in nodes}


def by_definition(matrix):
    graph = nx.from_numpy_array((matrix != 0).T, create_using=nx.DiGraph)
    return nx.multi_source_dijkstra_path_length(graph, {v for v in graph if graph.in_degree(v) == 0})


matrix = np.zeros((5, 5))  # The entry i, j is the effect of j on i.
matrix[2, 0], matrix[2, 1], matrix[3, 2], matrix[4, 3] = 0.5, -0.5, 1, 1
seen, right = distances(matrix), by_definition(matrix)
print(f'0 -> 2 with 0.5, 1 -> 2 with -0.5, 2 -> 3 -> 4: {dict(sorted(seen.items()))}, by the definition {dict(sorted(right.items()))}, '
      f'nodes without parents {get_exo_variables(matrix)}')  # fmt: skip
assert seen == {0: 0, 1: 0, 2: 0, 3: 1, 4: 2} and right == {0: 0, 1: 0, 2: 1, 3: 2, 4: 3}, 'this has changed'
assert get_exo_variables(matrix) == [0, 1], 'this has changed'

turned = matrix.copy()
turned[:, 1] *= -1  # Variable 1 with the opposite sign.
print(f'with variable 1 times -1: {dict(sorted(distances(turned).items()))}')
assert distances(turned) == by_definition(turned) == right, 'this has changed'

rng = np.random.default_rng(0)
wrong = 0
for _ in range(300):
    random = np.tril(rng.integers(-5, 6, (8, 8)) / 10 * (rng.random((8, 8)) < 0.4), -1)
    wrong += distances(random) != by_definition(random)
print(f'300 random DAGs of 8 nodes with effects of one digit: {wrong} have a wrong distance')
assert wrong > 30, 'this has changed'
PY
