#!/usr/bin/env bash
# pycm 4.6: the standard error and the confidence interval of AUC are those of Hanley and McNeil with the classes swapped.
#
# Expected: the "confidence interval for AUC is calculated using Hanley and McNeil formula". In their paper of 1982, the square
# of the error is (A (1 - A) + (n_A - 1) (Q1 - A^2) + (n_N - 1) (Q2 - A^2)) / (n_A n_N), with n_A abnormal (positive) and n_N
# normal cases, Q1 = A / (2 - A) and Q2 = 2 A^2 / (1 + A). Q1 is the probability that two abnormal cases are both ranked above
# a normal one. So n_A - 1 belongs to it.
# Seen: N - 1 is at Q1 - A^2 and P - 1 at Q2 - A^2. With 10 positives among 210, the interval is a third too narrow. For
# exponential scores, for which the formula is exact, the standard deviation of AUC in a simulation is the one of the paper.
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


def error(area, abnormal, normal):
    first, second = area / (2 - area) - area**2, 2 * area**2 / (1 + area) - area**2
    return np.sqrt((area * (1 - area) + (abnormal - 1) * first + (normal - 1) * second) / (abnormal * normal))


rng = np.random.default_rng(0)
for positives, negatives in ((10, 200), (200, 10), (50, 50)):
    counts = {1: {1: positives * 4 // 5, 0: positives // 5}, 0: {1: negatives // 5, 0: negatives * 4 // 5}}
    matrix = ConfusionMatrix(matrix=counts)
    assert np.isclose(matrix.AUC[1], 0.8) and (matrix.P[1], matrix.N[1]) == (positives, negatives)
    seen, interval = matrix.CI('AUC')[1]
    right, swapped = error(0.8, positives, negatives), error(0.8, negatives, positives)
    # Exponential scores with means 4 and 1 have the area 4 / (4 + 1) = 0.8.
    areas = [(rng.exponential(4, positives)[:, None] > rng.exponential(1, negatives)).mean() for _ in range(8000)]
    print(f'{positives} positives, {negatives} negatives: error {seen:.4f}, interval {interval[0]:.3f} to {interval[1]:.3f}. '
          f'By the paper {right:.4f}, simulated {np.std(areas):.4f}, mean {np.mean(areas):.3f}')  # fmt: skip
    assert np.isclose(seen, swapped), 'this has changed'
    assert np.isclose(seen, right) == (positives == negatives), 'this has changed'
    assert abs(np.std(areas) / right - 1) < 0.04 and abs(np.mean(areas) - 0.8) < 0.005
PY
