#!/usr/bin/env bash
# copulae 0.8.0: the derivatives of Kendall's tau and Spearman's rho of the Frank copula are wrong, and one is negative.
#
# Expected: dtau and drho are documented as "Derivative of Kendall's Tau" and "Derivative of Spearman's Rho". With the Debye
# functions D1 and D2, these are 4 / theta^2 (theta / (exp(theta) - 1) + 1 - 2 D1), and 12 / theta^2 (theta / (exp(theta) - 1)
# - 3 D2 + 2 D1). Both are positive. The properties tau and rho themselves are right.
# Seen: drho uses D1 in the place of D2. dtau has D1 / theta for 2 D1. At theta = 3, drho is -0.43 instead of 0.12, and dtau is
# 0.44 instead of 0.087.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet copulae==0.8.0 numpy==2.2.6 scipy==1.16.3 pandas==2.3.3 scikit-learn==1.7.2 \
    statsmodels==0.14.6 wrapt==1.17.3
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from copulae import FrankCopula
from scipy import integrate

print(f'copulae {version("copulae")}')


def debye(order, x):
    return order / x**order * integrate.quad(lambda s: s**order / np.expm1(s), 0, x)[0]


def tau(x):
    return 1 + 4 * (debye(1, x) - 1) / x


def rho(x):
    return 1 + 12 / x * (debye(2, x) - debye(1, x))


step = 1e-3
for theta in (1.0, 3.0, 8.0):
    copula = FrankCopula(theta, 2)
    assert np.isclose(copula.tau, tau(theta), atol=1e-6) and np.isclose(copula.rho, rho(theta), atol=1e-6)
    for name, seen, function in (('tau', float(copula.dtau()), tau), ('rho', float(copula.drho()), rho)):
        right = (function(theta + step) - function(theta - step)) / (2 * step)
        print(f'theta {theta}: derivative of {name} {seen:.4f}, by differences of {name} {right:.4f}')
        assert right > 0 and abs(seen - right) > 0.2 * right, 'this has changed'
    ratio, first, second = theta / np.expm1(theta), debye(1, theta), debye(2, theta)
    formulas = 4 / theta**2 * (ratio + 1 - 2 * first), 12 / theta**2 * (ratio - 3 * second + 2 * first)
    for formula, function in zip(formulas, (tau, rho)):
        assert np.isclose((function(theta + step) - function(theta - step)) / (2 * step), formula, rtol=1e-4)
    assert np.isclose(float(copula.drho()), 12 / theta**2 * (ratio - first)), 'this has changed'
    assert np.isclose(float(copula.dtau()), 4 / theta**2 * (ratio + 1 - first / theta)), 'this has changed'
assert float(FrankCopula(3.0, 2).drho()) < -0.4, 'this has changed'
PY
