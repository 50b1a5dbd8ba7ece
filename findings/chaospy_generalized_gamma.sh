#!/usr/bin/env bash
# chaospy 4.3.21: the moments of GeneralizedGamma are computed with its two shape parameters exchanged.
#
# Expected: the moments of the density |c| x^(c a - 1) exp(-x^c) / Gamma(a), which pdf, fwd and sample have. The m-th one is
# Gamma(a + m / c) / Gamma(a). chaospy.E, Var and polynomial expansions use it.
# Seen: it is Gamma((c + m) / a) / Gamma(c / a). The documented example GeneralizedGamma(1.5, 15) has the mean 4.591, although
# all its samples are below 1.28. Gamma(2), which is GeneralizedGamma(2, 1), has the mean 2, and this has 0.56.
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

print(f'chaospy {version("chaospy")}')
for a, c in ((2.0, 1.0), (1.5, 15.0), (3.0, 2.0)):
    distribution = chaospy.GeneralizedGamma(a, c)
    x = np.linspace(1e-6, 40, 2000001)
    density = c * np.exp((c * a - 1) * np.log(x) - x**c) / gamma(a)
    samples = distribution.inv((np.arange(10**6) + 0.5) / 10**6)
    assert np.allclose(distribution.pdf(x[::1000]), density[::1000])
    for m in (1, 2):
        right, seen = gamma(a + m / c) / gamma(a), float(distribution.mom(m))
        mean = np.mean(samples**m)
        print(f'shapes {a} and {c}, moment {m}: {seen:.4f}, of samples {mean:.4f}, by the definition {right:.4f}')
        assert np.isclose(np.trapezoid(density * x**m, x), right, rtol=1e-4) and np.isclose(mean, right, rtol=1e-3)
        assert np.isclose(seen, gamma((c + m) / a) / gamma(c / a)) and abs(seen / right - 1) > 0.2, 'this has changed'
print(f'Gamma(2): mean {float(chaospy.Gamma(2).mom(1)):.4f}')
assert np.isclose(float(chaospy.Gamma(2).mom(1)), 2)
PY
