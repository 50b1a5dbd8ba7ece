#!/usr/bin/env bash
# ts2vg 1.2.5: after a second build, n_edges is that of the first series, and weights are cut to this number.
#
# Expected: build(ts) does "compute and build the visibility graph for the given time series". n_edges is the number of edges of
# the graph, and weights has the weights "of the edges of the graph (listed in the same order as in edges)".
# Seen: n_edges is stored when it is first read, and build does not remove it. edges, degrees and the adjacency matrix without
# weights are of the second series. n_edges and summary are of the first, and weights is read up to this number. Of a second
# series that is longer, the last weights are missing without a warning. as_igraph and adjacency_matrix with weights, and
# weights of one that is shorter, end in an error.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet ts2vg==1.2.5 numpy==2.4.6
cd "$folder"
"$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from ts2vg import NaturalVG

print(f'ts2vg {version("ts2vg")}')


def by_definition(y):
    """Pairs of values that see each other: all between lie below the straight line."""
    return [(i, j) for i in range(len(y)) for j in range(i + 1, len(y))
            if all(y[k] < y[i] + (y[j] - y[i]) * (k - i) / (j - i) for k in range(i + 1, j))]  # fmt: skip


rng = np.random.default_rng(0)
graph, numbers = NaturalVG(weighted='distance'), []
for n in (10, 30, 20):
    y = rng.normal(size=n)
    graph.build(y)
    right = by_definition(y)
    new = NaturalVG(weighted='distance').build(y)
    numbers.append(len(right))
    assert {tuple(edge[:2]) for edge in graph.edges} == set(right), 'this has changed'
    assert new.n_edges == len(new.weights) == len(right), 'this has changed'
    total = sum(np.hypot(j - i, y[j] - y[i]) for i, j in right)
    print(f'{n} values, {len(right)} edges: n_edges {graph.n_edges}, {len(graph.edges)} edges, {len(graph.weights)} weights '
          f'of sum {graph.weights.sum():.1f}, by the definition {total:.1f}')  # fmt: skip
    assert graph.n_edges == len(graph.weights) == numbers[0], 'this has changed'
try:
    graph.adjacency_matrix(use_weights=True)
    raise AssertionError('this has changed')
except ValueError as error:
    print(f'adjacency_matrix with weights: ValueError: {error}')
assert numbers[1] > numbers[2] > numbers[0], 'this has changed'
PY
