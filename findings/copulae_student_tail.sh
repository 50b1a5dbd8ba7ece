#!/usr/bin/env bash
# copulae 0.8.0: the tail dependence of the Student copula lacks the division by 1 + rho.
#
# Expected: lambda_ is documented as "Tail dependence index (lambda)". For the Student copula with df degrees of freedom and
# correlation rho, it is 2 t(-sqrt((df + 1) (1 - rho) / (1 + rho))), with the distribution function t for df + 1 degrees of
# freedom.
# Seen: the code has 2 t(-sqrt((df + 1) (1 - rho))). This is too small for a positive correlation, and too large for a negative
# one. At rho = -0.9 and df = 4, it is 0.03 instead of 0.0002. It is right at rho = 0 only.
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
from copulae import StudentCopula
from scipy import integrate
from scipy.stats import t

print(f'copulae {version("copulae")}')
df = 4
for rho in (-0.9, -0.5, 0.0, 0.6, 0.9):
    copula = StudentCopula(dim=2, df=df)
    copula[0, 1] = rho
    seen = copula.lambda_.upper[0]
    right = 2 * t.cdf(-np.sqrt((df + 1) * (1 - rho) / (1 + rho)), df + 1)
    # Given x, the other value is rho x + sqrt((df + x^2) (1 - rho^2) / (df + 1)) times a t variable of df + 1.
    q = t.isf(1e-7, df)

    def above(x):
        return t.pdf(x, df) * t.sf((q - rho * x) / np.sqrt((df + x * x) * (1 - rho * rho) / (df + 1)), df + 1)

    limit = integrate.quad(lambda s: above(q / s) * q / s**2, 0, 1)[0] / 1e-7
    print(f'rho {rho}: tail dependence {seen:.5f}, by the definition {right:.5f}, at a high quantile {limit:.5f}')
    assert abs(limit - right) < 0.002 + 0.02 * right
    assert np.isclose(seen, 2 * t.cdf(-np.sqrt((df + 1) * (1 - rho)), df + 1)), 'this has changed'
    assert np.isclose(seen, right) == (rho == 0) and np.sign(seen - right) in (0, -np.sign(rho)), 'this has changed'
PY
