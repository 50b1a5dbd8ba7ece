#!/usr/bin/env bash
# esda 2.9.0 (2.10.0 has the same line): with transformation="b", the bivariate Moran's I of a variable with itself is not Moran's I.
#
# Expected: the bivariate I is the sum of w_ij x_i y_j of standardised variables, divided by the sum S0 of all weights, so that I of a
# variable with itself is Moran's I. transformation is documented with "B" (binary), "D", "V" and the original weights "O".
# Seen: Moran divides by S0, Moran_BV by the number of nodes. This is the same for the default, weights that sum to 1 in each row. With
# binary weights, the value is too large by the mean number of neighbors, and with original weights it changes with their unit.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet esda==2.9.0 libpysal==4.14.1 numpy==2.4.6 scipy==1.17.1
"$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from esda import Moran, Moran_BV
from libpysal.weights import W

print(f'esda {version("esda")}')
rng = np.random.default_rng(0)
size = 12
neighbors = {i: [(i - 1) % size, (i + 1) % size, (i - 2) % size, (i + 2) % size] for i in range(size)}
x = np.sin(2 * np.pi * np.arange(size) / size) + 0.1 * rng.normal(size=size)
z = x - x.mean()
seen = {}
for unit, transformation in ((1.0, 'r'), (1.0, 'b'), (5.0, 'o')):
    weights = W(neighbors, {i: [unit] * 4 for i in range(size)})
    matrix = np.zeros((size, size))
    for i in range(size):
        matrix[i, neighbors[i]] = unit
    right = size * (z @ matrix @ z) / (matrix.sum() * (z @ z))
    single = Moran(x, weights, transformation=transformation, permutations=0).I
    seen[transformation] = Moran_BV(x, x, weights, transformation=transformation, permutations=0).I / right
    print(f'{transformation}, weights of {unit}: Moran {single:.4f}, Moran_BV {seen[transformation] * right:.4f}, by hand {right:.4f}')
    assert abs(single - right) < 1e-9, 'the definition is wrong'
assert abs(seen['r'] - 1) < 1e-9 and abs(seen['b'] - 4) < 1e-9 and abs(seen['o'] - 20) < 1e-9, 'this has changed'
PY
