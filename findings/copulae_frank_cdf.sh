#!/usr/bin/env bash
# copulae 0.8.0: the Frank copula is far too large where one value is below 0.01, as its inverse generator is not filled in.
#
# Expected: the distribution function of the Frank copula is C(u, v) = -log(1 + (exp(-theta u) - 1) (exp(-theta v) - 1) /
# (exp(-theta) - 1)) / theta. As of each copula, C(u, v) <= min(u, v). The inverse generator ipsi goes to infinity for u to 0.
# Seen: ipsi writes the values for u <= 0.01 into another array, "res", than the one that it returns. For those, it returns
# theta u, which goes to 0. So C(0.005, 0.5) is 0.48 for theta = 3. The density is right, so that the two contradict each
# other.
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

print(f'copulae {version("copulae")}')
for theta in (3.0, 8.0):
    copula = FrankCopula(theta, 2)
    for u, v in ((0.005, 0.5), (0.009, 0.9), (0.0001, 0.3), (0.011, 0.5), (0.2, 0.6)):
        seen = float(copula.cdf(np.array([[u, v]])))
        right = -np.log1p(np.expm1(-theta * u) * np.expm1(-theta * v) / np.expm1(-theta)) / theta
        generator, inverse = float(copula.ipsi(np.array([u]))), -np.log(np.expm1(-theta * u) / np.expm1(-theta))
        print(f'theta {theta}: C({u}, {v}) = {seen:.4f}, by the definition {right:.4f}. Inverse generator at {u}: '
              f'{generator:.4f}, by the definition {inverse:.4f}')  # fmt: skip
        assert right <= min(u, v) and np.isclose(generator, theta * u if u <= 0.01 else inverse), 'this has changed'
        assert np.isclose(seen, right) == (u > 0.01), 'this has changed'
        assert u > 0.01 or seen > 30 * u, 'this has changed'
PY
