#!/usr/bin/env bash
# nolds 0.6.2: lyap_e gives plus infinity for constant and periodic series, where its source says minus infinity.
#
# Expected: lyap_e returns the mean logarithms of the diagonal of R. "it may happen that all R-matrices contained zeros =>
# exponent really has to be -inf", as the logarithm of 0 is. The docs say "positive exponents are indicators for chaos".
# lyap_r gives minus infinity for the same series.
# Seen: the entries without any positive value are set to np.inf. So all exponents of a constant series, or of a series which
# repeats exactly, are plus infinity. That is the strongest sign of chaos for the most regular series. A mean over recordings,
# or a test for a positive exponent, takes it as it is. Version 0.6.3 has the same source of this function.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet nolds==0.6.2 numpy==2.4.6 future==1.0.0 setuptools==80.9.0
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import nolds
import numpy as np

print(f'nolds {version("nolds")}')


def by_definition(data, size=4, step=3, count=8):  # Eckmann et al. (1986): means of the logarithms of the diagonal of R
    n, rows = len(data) - step, 3 * step + 1
    orbit = np.lib.stride_tricks.sliding_window_view(data[:n], rows)
    logs, q = [], np.eye(size)
    for i in range(len(orbit)):
        distances = np.abs(orbit - orbit[i]).max(axis=1)
        distances[i] = np.inf
        near = np.flatnonzero(distances <= np.sort(distances)[count - 1])
        ahead = data[near + size * step] - data[i + size * step]
        t = np.eye(size, k=1)
        t[-1] = np.linalg.lstsq(orbit[near][:, ::step] - orbit[i][::step], ahead, rcond=None)[0]
        q, r = np.linalg.qr(t @ q)
        with np.errstate(divide='ignore'):
            logs.append(np.log(np.abs(np.diag(r))))
    return np.mean(logs, axis=0) / step


for name, data in (('constant', np.ones(100)), ('period 4', np.tile([0.0, 1, 2, 5], 40)),
                   ('period 6', np.tile([0.0, 1, 0, 3, 2, 5], 40))):  # fmt: skip
    seen, other, right = nolds.lyap_e(data), nolds.lyap_r(data, emb_dim=4, lag=1, min_tsep=6, fit='poly'), by_definition(data)
    print(f'{name}: lyap_e {seen}, by the logarithms of R {right}, lyap_r {other}')
    assert (seen == np.inf).all() and other == -np.inf, 'this has changed'
    assert (right == -np.inf).all()
x = [0.3]
while len(x) < 300:
    x.append(4 * x[-1] * (1 - x[-1]))
x = np.array(x)
seen, right = nolds.lyap_e(x), by_definition(x)
print(f'logistic map: lyap_e {seen.round(3)}, by the logarithms of R {right.round(3)}')
assert np.allclose(seen, right)
PY
