#!/usr/bin/env bash
# persim 0.4.1: the sliced Wasserstein distance of two persistence diagrams changes if both are shifted by the same constant.
#
# Expected: the cited paper (Carriere, Cuturi, Oudot 2017) adds to each diagram the points of the other, projected to the diagonal. A common
# shift of births and deaths moves all of them along the diagonal, so the distance stays, as it does in gudhi 3.13.0. Filtrations
# by functions have negative values as often as positive ones.
# Seen: the projection is computed with the absolute value of (birth + death) / 2. For points with birth + death < 0 it is mirrored to
# the other end of the diagonal. The distance of two diagrams near -10 is more than ten times the right one.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet persim==0.4.1 gudhi==3.13.0 numpy==1.26.4 scipy==1.13.1 scikit-learn==1.9.1
"$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from gudhi.representations.metrics import SlicedWassersteinDistance
from persim import sliced_wasserstein

print(f'persim {version("persim")}, gudhi {version("gudhi")}')
first, other = np.array([[0.0, 1.0], [0.2, 0.6], [0.5, 0.9]]), np.array([[0.1, 1.2]])


def by_hand(first, other, directions=50):
    total = 0
    for i in range(directions):
        angle = np.pi * (0.5 + i / directions)
        line = np.array([np.cos(angle), np.sin(angle)])
        diagonal = [diagram.mean(1, keepdims=True).repeat(2, 1) for diagram in (first, other)]
        left, right = np.concatenate([first, diagonal[1]]), np.concatenate([other, diagonal[0]])
        total += np.abs(np.sort(left @ line) - np.sort(right @ line)).sum() / directions
    return total


seen = {}
for shift in (0, 10, -10):
    seen[shift] = sliced_wasserstein(first + shift, other + shift)
    right, gudhi = by_hand(first + shift, other + shift), SlicedWassersteinDistance(50)(first + shift, other + shift)
    print(f'shifted by {shift}: {seen[shift]:.4f} instead of {right:.4f} (gudhi: {gudhi:.4f})')
    assert abs(gudhi - right) < 0.02 * right, 'the definition is wrong'
assert abs(seen[0] - seen[10]) < 1e-4 and seen[-10] > 10 * seen[0], 'this has changed'
PY
