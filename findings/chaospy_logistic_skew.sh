#!/usr/bin/env bash
# chaospy 4.3.21: the density of Logistic with a skew of c is c times too small.
#
# Expected: the "generalized logistic type 1 distribution", with F(x) = (1 + exp(-x))^-c and the density c exp(-x) / (1 +
# exp(-x))^(c + 1), whose integral is 1. The density is the derivative of the distribution function.
# Seen: the density has no factor c, so that its integral is 1 / c. Likelihoods of different skews cannot be compared: the
# largest likelihood is at a skew that is too small. fwd, inv and sample are right.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet chaospy==4.3.21 numpoly==1.3.9 numpy==2.4.6 scipy==1.17.1 setuptools==80.9.0
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import chaospy
import numpy as np

print(f'chaospy {version("chaospy")}')
x = np.linspace(-40, 60, 1000001)
for c in (0.5, 1.0, 2.0, 15.0):
    distribution = chaospy.Logistic(c)
    seen, right = distribution.pdf(x), c * np.exp(-x) / (1 + np.exp(-x)) ** (c + 1)
    integrals = [np.trapezoid(values, x) for values in (seen, right)]
    print(f'skew {c}: integral of the density {integrals[0]:.4f}, by the definition {integrals[1]:.4f}')
    assert np.allclose(np.gradient(distribution.fwd(x), x)[1000:-1000], right[1000:-1000], atol=1e-6)
    assert np.isclose(integrals[1], 1, atol=1e-3) and np.isclose(integrals[0], 1 / c, atol=1e-3), 'this has changed'
    assert np.allclose(seen[10000:-400000], right[10000:-400000] / c), 'this has changed'

samples = chaospy.Logistic(3.0).inv((np.arange(2000) + 0.5) / 2000)
skews = np.arange(0.5, 8, 0.05)
seen = skews[np.argmax([np.log(chaospy.Logistic(c).pdf(samples)).sum() for c in skews])]
right = skews[np.argmax([(np.log(c) - samples - (c + 1) * np.log1p(np.exp(-samples))).sum() for c in skews])]
print(f'samples of skew 3: the largest likelihood is at {seen:.2f}, by the definition at {right:.2f}')
assert abs(right - 3) < 0.1 and seen < 1, 'this has changed'
PY
