#!/usr/bin/env bash
# hypernetx 2.4.3: the modularity of a hypergraph cuts sums of weights to whole numbers: it is nan for weights of 0.1 to 0.3.
#
# Expected: the modularity divides by the sum of the weights, so that weights in another unit give the same value: 1, 2, 3, 2 or 0.1, 0.2,
# 0.3, 0.2. Weights of hyperedges are documented as numbers, with a default of 1.0.
# Seen: volumes of parts and weights per edge size are summed in arrays of integers, which drop the fraction at each addition. With
# weights below 1 all volumes are 0. With 1.5 instead of 1, the modularity is 0.078 instead of 0.031. Only whole weights, or
# equal ones, are right. last_step, which looks for the best partition, sums in the same way.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet hypernetx==2.4.3 networkx==3.6.1 numpy==2.4.6 scipy==1.17.1 igraph==1.0.0
"$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import hypernetx as hnx
import numpy as np
from hypernetx.algorithms import modularity
from scipy.stats import binom

print(f'hypernetx {version("hypernetx")}')
edges = {'a': {0, 1, 2}, 'b': {2, 3}, 'c': {3, 4, 5}, 'd': {4, 5}}
weights = {'a': 1.0, 'b': 2.0, 'c': 3.0, 'd': 2.0}
parts = [{0, 1, 2}, {3, 4, 5}]


def definition(scale):
    weight = {edge: scale * value for edge, value in weights.items()}
    volume = np.array([sum(weight[edge] * len(nodes & part) for edge, nodes in edges.items()) for part in parts])
    gain, tax = 0.0, 0.0
    for edge, nodes in edges.items():
        size, most = len(nodes), max(len(nodes & part) for part in parts)
        gain += weight[edge] * (most / size if most > size / 2 else 0)
        for count in range(size // 2 + 1, size + 1):
            tax += weight[edge] * count / size * binom.pmf(count, size, volume / volume.sum()).sum()
    return (gain - tax) / sum(weight.values())


seen = {}
for scale in (1, 10, 1.5, 0.5, 0.1):
    graph = hnx.Hypergraph(edges, edge_properties={edge: {'weight': scale * value} for edge, value in weights.items()})
    seen[scale] = modularity(graph, parts)
    print(f'weights times {scale}: definition {definition(scale):.4f}, hypernetx {seen[scale]:.4f}')
    assert abs(definition(scale) - 0.03125) < 1e-9, 'the definition is wrong'
assert abs(seen[1] - 0.03125) < 1e-9 and abs(seen[10] - 0.03125) < 1e-9, 'this has changed'
assert abs(seen[1.5] - 0.03125) > 0.04 and abs(seen[0.5] - 0.03125) > 0.1 and np.isnan(seen[0.1]), 'this has changed'
PY
