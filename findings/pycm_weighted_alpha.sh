#!/usr/bin/env bash
# pycm 4.6: weighted_alpha is not Krippendorff's alpha, as its expected agreement squares means of row i and column j.
#
# Expected: "Weighted Krippendorff's alpha coefficient". The expected agreement is the sum of p_i p_j v_ij, where p_i is the
# part of both ratings in class i, (P_i + TOP_i) / (2 POP). With the weight |i - j|^2 it is the alpha of interval data.
# Seen: the expected agreement is the sum of ((P_i + TOP_j) / (2 POP))^2 v_ij. It is right only if all weights of different
# classes are equal. The documented formula, with (TOP_i * P_j / (2 POP))^2, is a third one. For independent ratings, alpha is
# -0.28 where 0 is right.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pycm==4.6 art==6.5 numpy==2.4.6
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from pycm import ConfusionMatrix

print(f'pycm {version("pycm")}')
names = ['a', 'b', 'c']


def as_dict(matrix, kind):
    return {names[i]: {names[j]: kind(matrix[i, j]) for j in range(3)} for i in range(3)}


def by_definition(counts, distance):  # one minus observed over expected disagreement, from coincidences of both orders
    coincidences = counts + counts.T
    totals = coincidences.sum(0)
    expected = (np.outer(totals, totals) - np.diag(totals)) / (totals.sum() - 1)
    return 1 - (coincidences * distance).sum() / (expected * distance).sum()


difference = np.abs(np.subtract.outer(np.arange(3), np.arange(3))).astype(float)
part = np.array([0.7, 0.2, 0.1])
for name, counts in (('ratings', np.array([[24, 4, 1], [4, 8, 5], [1, 2, 2]])),
                     ('independent ratings', np.outer(part, part) * 1000)):  # fmt: skip
    counts = counts.round().astype(int)
    matrix = ConfusionMatrix(matrix=as_dict(counts, int))
    for kind, distance in (('equal', (difference > 0).astype(float)), ('|i - j|', difference), ('|i - j|^2', difference**2)):
        seen, right = matrix.weighted_alpha(as_dict(distance, int)), by_definition(counts, distance)
        kappa = matrix.weighted_kappa(as_dict(distance, int))
        print(f'{name}, weight {kind}: alpha {seen:.4f}, by the definition {right:.4f}. Weighted kappa {kappa:.4f}')
        mean = (counts.sum(1)[:, None] + counts.sum(0)) / 2 / counts.sum()
        value = 1 - distance / distance.max()
        small = 1 / (2 * counts.sum())
        agreement, chance = (1 - small) * (counts * value).sum() / counts.sum() + small, (mean**2 * value).sum()
        assert np.isclose(seen, (agreement - chance) / (1 - chance)), 'this has changed'
        assert np.isclose(seen, right) == (kind == 'equal'), 'this has changed'
        assert abs(kappa - right) < 0.01  # both are close for equal margins
PY
