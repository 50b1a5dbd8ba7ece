#!/usr/bin/env bash
# chaospy 4.3.21: the density and the moments of Burr are not those of its distribution function.
#
# Expected: the documented "Burr Type XII or Singh-Maddala distribution", with F(x) = 1 - (1 + x^a)^-k and the density a k x^(a
# - 1) / (1 + x^a)^(k + 1). Its m-th moment is k B(k - m / a, 1 + m / a). fwd, inv and sample are these.
# Seen: the density has x^(-a - 1), as that of the Burr distribution of type III, and is infinite at 0. The moments are those of
# type III, too. They can be negative for an even power. The integral of the density over the samples' range is not 1.
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
from scipy.special import beta

print(f'chaospy {version("chaospy")}')
for a, k in ((5.0, 2.0), (3.0, 4.0)):
    burr = chaospy.Burr(a, k)
    x = np.linspace(0.3, 3, 8)
    density = a * k * x ** (a - 1) / (1 + x**a) ** (k + 1)
    assert np.allclose(burr.fwd(x), 1 - (1 + x**a) ** -k)
    assert np.allclose((burr.fwd(x + 1e-6) - burr.fwd(x - 1e-6)) / 2e-6, density, atol=1e-6)
    seen = burr.pdf(x)
    print(f'Burr({a}, {k}), x = {x[:4].round(2)}: density {seen[:4].round(3)}, derivative of fwd {density[:4].round(3)}')
    assert np.allclose(seen, a * k * x ** (-a - 1) / (1 + x**a) ** (k + 1)), 'this has changed'
    assert not np.allclose(seen, density)
    samples = burr.inv((np.arange(10**6) + 0.5) / 10**6)
    for m in (1, 2):
        right, moment = k * beta(k - m / a, 1 + m / a), float(burr.mom(m))
        print(f'moment {m}: {moment:.4f}, of samples {np.mean(samples**m):.4f}, by the definition {right:.4f}')
        assert np.isclose(np.mean(samples**m), right, rtol=1e-3)
        assert np.isclose(moment, k * beta(1 - m / a, k + m / a)) and abs(moment / right - 1) > 0.3, 'this has changed'
PY
