#!/usr/bin/env bash
# ineqpy 0.4.1: the Hoover index of equal incomes is (n - 1) / 2 instead of 0.
#
# Expected: the documented "H = 1/2 sum_i( |xi - mu| ) / sum_i(xi)", which is "the portion of the total community income that
# would have to be redistributed". It is 0 for equal incomes, below 1, and does not change if each income is there twice.
# Seen: incomes are multiplied by their normalized weights first, and are then compared with the mean of the incomes. So each
# of n equal incomes x is taken as x / n, far below the mean x. The index grows with the number of incomes, and mostly does not
# depend on them.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet ineqpy==0.4.1 numpy==2.4.6 pandas==3.1.1 numba==0.68.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from ineqpy.inequality import hoover

print(f'ineqpy {version("ineqpy")}')
rng = np.random.default_rng(0)
for name, income in (('four equal', np.full(4, 2.0)), ('1, 2, 3, 4', np.arange(1.0, 5)), ('100 equal', np.full(100, 5.0)),
                     ('100 log-normal', rng.lognormal(size=100))):  # fmt: skip
    right, seen = np.abs(income - income.mean()).sum() / 2 / income.sum(), float(hoover(income))
    print(f'{name} incomes: Hoover index {seen:.3f}, by the documented equation {right:.3f}')
    assert 0 <= right < 1
    assert 0.4 * (income.size - 1) < seen < 0.6 * (income.size - 1), 'this has changed'
    if np.ptp(income) == 0:
        assert right == 0 and np.isclose(seen, (income.size - 1) / 2), 'this has changed'
PY
