#!/usr/bin/env bash
# ineqpy 0.4.1: the Atkinson index with e = 1 depends on the unit of money, and is not 0 for equal incomes.
#
# Expected: with e = 1, the Atkinson index of the cited page is 1 minus the geometric mean divided by the mean. "The
# theoretical range of Atkinson values is 0 to 1, with 0 being a state of equal distribution". It does not change if all
# incomes are multiplied by a number.
# Seen: the logarithm of the mean is subtracted once for each income, instead of once. So with n incomes, the index is 1 minus
# the geometric mean divided by the n-th power of the mean. It is near 1 for larger incomes, and negative for means below 1.
# Other values of e are right.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet ineqpy==0.4.1 numpy==2.4.6 pandas==3.1.1 numba==0.68.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from ineqpy.inequality import atkinson

print(f'ineqpy {version("ineqpy")}')
rng = np.random.default_rng(0)
ten = rng.lognormal(size=10)
for name, income in (('four equal', np.full(4, 2.0)), ('1, 2, 3, 4', np.arange(1.0, 5)), ('ten log-normal', ten),
                     ('the same in another unit', ten / 10)):  # fmt: skip
    weights = np.ones(income.size)
    right, seen = 1 - np.exp(np.log(income).mean()) / income.mean(), float(atkinson(income, weights, e=1))
    near, power = float(atkinson(income, weights, e=1 - 1e-6)), 1 - np.exp(np.log(income).mean()) / income.mean() ** income.size
    print(f'{name} incomes: index for e = 1 {seen:.4g}, for e = 0.999999 {near:.4f}, by the definition {right:.4f}')
    assert np.isclose(near, right, atol=1e-4)
    assert abs(seen - right) > 0.1 and np.isclose(seen, power), 'this has changed'
PY
