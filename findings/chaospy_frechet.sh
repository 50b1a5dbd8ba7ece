#!/usr/bin/env bash
# chaospy 4.3.21: Frechet samples from a Weibull distribution, and its moments are those of a Frechet distribution.
#
# Expected: documented as the "Frechet or Extreme value distribution type 2". Its distribution function is exp(-x^-c), with a
# heavy tail, and its m-th moment is Gamma(1 - m / c).
# Seen: the distribution function is 1 - exp(-x^c), that of chaospy.Weibull, which has a light tail. So have the density, inv
# and samples. mom is that of the Frechet distribution. With c = 3, the 99.9 % quantile is 1.9 instead of 10, so that extremes
# are far too rare.
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
from scipy.special import gamma
from scipy.stats import invweibull, weibull_min

print(f'chaospy {version("chaospy")}')
x, q = np.linspace(0.3, 4, 9), np.array([0.1, 0.5, 0.9, 0.999])
for c in (3.0, 5.0):
    frechet = chaospy.Frechet(c)
    right = np.exp(-(x**-c))
    assert np.allclose(right, invweibull(c).cdf(x))
    quantiles = (-np.log(q)) ** (-1 / c)
    print(f'Frechet({c}): quantiles {frechet.inv(q).round(3)}, by the definition {quantiles.round(3)}')
    assert np.allclose(frechet.fwd(x), weibull_min(c).cdf(x)), 'this has changed'
    assert np.abs(frechet.fwd(x) - right).max() > 0.2, 'this has changed'
    assert np.allclose(frechet.pdf(x), weibull_min(c).pdf(x)), 'this has changed'
    mean = np.mean(frechet.inv((np.arange(10**6) + 0.5) / 10**6))
    print(f'mean {float(frechet.mom(1)):.4f}, of samples {mean:.4f}, by the definition {gamma(1 - 1 / c):.4f}')
    assert np.isclose(float(frechet.mom(1)), gamma(1 - 1 / c))
    assert np.isclose(mean, gamma(1 + 1 / c), rtol=1e-3), 'this has changed'
PY
