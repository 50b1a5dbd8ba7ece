#!/usr/bin/env bash
# ineqpy 0.4.1: the Kakwani index does not depend on who pays the tax, so that a regressive tax appears as progressive.
#
# Expected: the documented "K = C(t) - G(x) = (2/t) cov [t(x), F(x)] - (2/x) cov [x, F(x)]". C(t) is the concentration index of
# the tax, with people in the order of their income before the tax. The index is positive for progressive taxes, and negative
# for regressive ones.
# Seen: the tax is sorted by the tax itself. So C(t) is the Gini index of the tax, and is never negative. If the poorest pay
# most, the index is the same as if the richest did. A permutation of the taxes among the people changes nothing.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet ineqpy==0.4.1 numpy==2.4.6 pandas==3.1.1 numba==0.68.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from ineqpy.inequality import kakwani

print(f'ineqpy {version("ineqpy")}')


def by_definition(tax, income):
    """The covariances with the rank of income, which are unbiased, as in the package."""
    order = np.argsort(income)
    rank = np.arange(1, income.size + 1) / income.size
    tax, income = tax[order], income[order]
    return 2 * np.cov(tax, rank)[0, 1] / tax.mean() - 2 * np.cov(income, rank)[0, 1] / income.mean()


income = np.arange(10.0, 60, 5)
rng = np.random.default_rng(0)
for name, tax in (
    ('progressive', income**2 / 100),
    ('poll tax, nearly equal', 5 - income / 1000),
    ('regressive', 1000 / income),
    ('at random', rng.permutation(income**2 / 100)),
):
    right, seen = by_definition(tax, income), float(kakwani(tax, income, np.ones(income.size)))
    print(f'{name}: Kakwani index {seen:.3f}, by the documented equation {right:.3f}')
    if name == 'progressive':
        assert np.isclose(seen, right) and right > 0, 'this has changed'
    else:
        assert seen > right + 0.001, 'this has changed'
    if name == 'regressive':
        assert right < -0.3 and seen > 0, 'this has changed'
    if name == 'at random':
        assert np.isclose(seen, by_definition(np.sort(tax), income)), 'this has changed'
PY
