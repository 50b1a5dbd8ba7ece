#!/usr/bin/env bash
# graphblas-algorithms 2023.10.0 (networkx 3.2.1): conductance and other cuts ignore weight=, and a weighted volume counts incoming edges.
#
# Expected: the functions of nx.cuts with backend="graphblas" return what networkx does. weight= is "the edge attribute to be used". The
# volume of a set is the sum of the out-degrees of its nodes, "the sum of the weights" if given.
# Seen: conductance, normalized_cut_size, edge_expansion and mixing_expansion read the weights, and then count edges. volume multiplies the
# matrix with the set from the wrong side: with weight=, it is the sum of in-degrees, and without, of out-degrees. A light bridge between two
# heavy parts, the best cut, looks like any other edge. No option is refused.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet graphblas-algorithms==2023.10.0 networkx==3.2.1 python-graphblas==2025.2.0 \
  suitesparse-graphblas==9.4.5.0 numpy==1.26.4 scipy==1.15.3
cd "$folder"
"$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import networkx as nx
import numpy as np

print(f'graphblas-algorithms {version("graphblas-algorithms")}')
graph = nx.Graph()
graph.add_weighted_edges_from([(0, 1, 50), (1, 2, 50), (2, 0, 50), (3, 4, 50), (4, 5, 50), (5, 3, 50), (2, 3, 0.5)])
inside, outside = [0, 1, 2], [3, 4, 5]
for name in ('cut_size', 'conductance', 'normalized_cut_size', 'edge_expansion', 'mixing_expansion'):
    function = getattr(nx, name)
    values = {}
    for weight in ('weight', None):
        a = nx.to_numpy_array(graph, nodelist=range(6), weight=weight)
        cut, first, second = a[np.ix_(inside, outside)].sum(), a[inside].sum(), a[outside].sum()
        right = {'cut_size': cut, 'conductance': cut / min(first, second), 'normalized_cut_size': cut / first + cut / second,
                 'edge_expansion': cut / 3, 'mixing_expansion': cut / a.sum()}[name]  # fmt: skip
        # The definition of networkx 3.2.1 for mixing_expansion has twice the number of edges, without weights.
        values[weight] = (float(function(graph, inside, weight=weight, backend='graphblas')), float(right),
                          float(function(graph, inside, weight=weight)))  # fmt: skip
        print(f'{name}, weight={weight}: graphblas {values[weight][0]:.5f}, by the definition {right:.5f}, '
              f'networkx {values[weight][2]:.5f}')  # fmt: skip
    seen = values['weight'][0]
    if name == 'cut_size':
        assert seen == values['weight'][1] == 0.5, 'this has changed'
    else:
        assert seen == values[None][0] > 1.9 * values['weight'][2], 'this has changed'

star = nx.DiGraph()
star.add_weighted_edges_from([(0, 1, 7), (0, 2, 7), (3, 0, 1)])
seen = [nx.volume(star, [0], weight=weight, backend='graphblas') for weight in ('weight', None)]
right = [nx.volume(star, [0], weight=weight) for weight in ('weight', None)]
print(f'volume of the center of a star: graphblas {seen[0]} with weights and {seen[1]} without, networkx {right[0]} and {right[1]}')
assert seen == [1, 2] and right == [14, 2], 'this has changed'
PY
