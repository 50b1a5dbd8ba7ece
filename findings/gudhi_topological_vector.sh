#!/usr/bin/env bash
# gudhi 3.13.0: TopologicalVector depends on the order in which the points of a persistence diagram are listed.
#
# Expected: "the sorted vector of a slight modification of the pairwise distances between the persistence diagram points". The cited paper
# (Carriere, Oudot and Ovsjanikov 2015) has the least of the distance of two points and of the distances of both to the diagonal. A
# diagram is a set of points: the paper proves that the vector is stable.
# Seen: the minimum over both points is written as the minimum of the persistences and their transpose, which is the same array, since it
# has one dimension. So only the point that is listed later counts. The same diagram in other orders has other vectors, with values
# beyond the persistence of one of the points: a point of noise near the diagonal may weigh as much as a prominent one.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet gudhi==3.13.0 numpy==2.4.6 scipy==1.17.1 scikit-learn==1.9.1
cd "$folder"
"$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version
from itertools import permutations

import numpy as np
from gudhi.representations import TopologicalVector

print(f'gudhi {version("gudhi")}')
diagram = np.array([[0.0, 4.0], [1.0, 2.0], [0.5, 6.0]])  # Two prominent points, and one near the diagonal.
half = (diagram[:, 1] - diagram[:, 0]) / 2
right = []
for i in range(3):
    for j in range(i):
        right.append(float(min(np.abs(diagram[i] - diagram[j]).max(), half[i], half[j])))
right.sort(reverse=True)
seen = set()
for order in permutations(range(3)):
    vector = tuple(TopologicalVector(threshold=3).fit_transform([diagram[list(order)]])[0].tolist())
    seen.add(vector)
    print(f'points in the order {order}: {vector}, by the definition {tuple(right)}')
assert right == [2.0, 0.5, 0.5] and len(seen) == 4 and (2.75, 2.0, 2.0) in seen, 'this has changed'
PY
