#!/usr/bin/env bash
# teaspoon 1.6.0: a Betti curve does not count a class at the threshold of its birth, so that points are no components at 0.
#
# Expected: BettiCurve computes "the Betti Curve for a persistence diagram for thresholds 0 to maxEps". A class is there from
# its birth on, and until before its death: the complex of threshold 0 has all points, so that it has as many components.
# Distances in graphs are whole numbers, and so are births, deaths and thresholds. CROCKER and CROCKER_Stack put such curves
# side by side.
# Seen: a class counts if its birth is below the threshold, and its death above. All components are born at 0, so that the first
# number of each curve of dimension 0 is 0. Loops of a graph are missing at the distance of their birth: a class from 1 to 2 is
# in no whole number at all.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet ripser==0.6.15 numpy==2.4.6 scipy==1.17.1 scikit-learn==1.8.0
"$folder/venv/bin/pip" install --quiet --no-deps teaspoon==1.6.0
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version
from itertools import combinations

import numpy as np
from ripser import ripser
from scipy.sparse.csgraph import connected_components
from teaspoon.TDA.Persistence import CROCKER, BettiCurve

print(f'teaspoon {version("teaspoon")}')


def by_definition(distances, threshold):
    """The Betti numbers 0 and 1 of all points, edges and triangles up to the threshold, by the ranks of the boundaries."""
    n = len(distances)
    edges = [pair for pair in combinations(range(n), 2) if distances[pair] <= threshold]
    triangles = [t for t in combinations(range(n), 3) if all(pair in edges for pair in combinations(t, 2))]
    down, up = np.zeros((n, len(edges))), np.zeros((len(edges), len(triangles)))
    for k, pair in enumerate(edges):
        down[list(pair), k] = -1, 1
    for k, (a, b, c) in enumerate(triangles):
        for pair, sign in (((a, b), 1), ((a, c), -1), ((b, c), 1)):
            up[edges.index(pair), k] = sign
    ranks = [np.linalg.matrix_rank(m) if m.size else 0 for m in (down, up)]
    components = connected_components(distances <= threshold)[0]
    assert n - ranks[0] == components
    return components, len(edges) - sum(ranks)


for n in (4, 6, 12):
    steps = abs(np.subtract.outer(np.arange(n), np.arange(n)))
    distances = np.minimum(steps, n - steps)  # The shortest paths in a cycle.
    diagrams = ripser(distances, distance_matrix=True)['dgms']
    stops = n // 2
    right = np.array([by_definition(distances, threshold) for threshold in range(stops)]).T
    for dimension in (0, 1):
        diagram = diagrams[dimension]
        thresholds, seen = BettiCurve(diagram, maxEps=stops - 1, numStops=stops)
        print(f'cycle of {n} nodes, dimension {dimension}, thresholds {thresholds.astype(int)}: {seen.astype(int)}, by the '
              f'definition {right[dimension]}')  # fmt: skip
        inside = [((diagram[:, 0] <= t) & (t < diagram[:, 1])).sum() for t in thresholds]
        below = [((diagram[:, 0] < t) & (t < diagram[:, 1])).sum() for t in thresholds]
        assert inside == right[dimension].tolist() and below == seen.tolist() != inside, 'this has changed'
        plot = CROCKER([diagram], maxEps=stops - 1, numStops=stops, plotting=False)
        assert plot[:, 0].tolist() == seen.tolist() and (dimension or seen[0] == 0), 'this has changed'
PY
