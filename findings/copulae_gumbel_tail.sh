#!/usr/bin/env bash
# copulae 0.8.0: the upper tail dependence of the Gumbel copula is 2 * 2^(1/theta), not 2 - 2^(1/theta), so above 2.
#
# Expected: lambda_ is documented as "Tail dependence index (lambda)". The upper one is the limit of the probability that one
# value exceeds the quantile q, given that the other one does, for q to 1. It is a probability. For the Gumbel copula, it is 2
# - 2^(1/theta), from 0 for independence at theta = 1 to 1.
# Seen: the code multiplies where it should subtract. The result is between 2 and 4, and falls with stronger dependence.
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
from copulae import GumbelCopula

print(f'copulae {version("copulae")}')
for theta in (1.0, 1.5, 2.0, 5.0):
    copula = GumbelCopula(theta, 2)
    seen = copula.lambda_() if callable(copula.lambda_) else copula.lambda_
    q = 1 - 1e-6
    joint = np.exp(-((2 * (-np.log(q)) ** theta) ** (1 / theta)))  # the distribution function at (q, q)
    limit, right = (1 - 2 * q + joint) / (1 - q), 2 - 2 ** (1 / theta)
    print(f'theta {theta}: tail dependence {seen.upper:.4f}, by the definition {right:.4f}, at a high quantile {limit:.4f}')
    assert abs(limit - right) < 1e-4 and 0 <= right <= 1
    assert np.isclose(seen.upper, 2 * 2 ** (1 / theta)) and seen.upper > 2, 'this has changed'

sample = np.asarray(GumbelCopula(2.0, 2).random(200000, seed=1))
both = np.mean((sample > 0.99).all(1)) / 0.01
print(f'theta 2.0: of 200000 random pairs, P(second > 0.99 given first > 0.99) is {both:.3f}')
assert abs(both - (2 - np.sqrt(2))) < 0.05
PY
