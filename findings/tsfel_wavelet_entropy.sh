#!/usr/bin/env bash
# tsfel 0.2.0: wavelet_entropy is 0 for any signal whose sum is 0.
#
# Expected: the Shannon entropy of the shares of wavelet scales in the coefficients of the continuous wavelet transform. The
# mean of a signal has no effect, as the Mexican hat wavelet has the mean 0. An entropy of 0 means that one scale has
# everything.
# Seen: a check for an empty signal asks whether the sum of samples is 0. Signals from which the mean was taken off, as
# alternating ones, get 0. The same signal plus 0.001 gets 1.65, near the maximum.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet tsfel==0.2.0 numpy==2.4.6 scipy==1.17.1 pandas==2.3.3 scikit-learn==1.7.2 \
  statsmodels==0.15.0 PyWavelets==1.9.0 ipython==9.18.1 requests==2.34.2 setuptools==80.9.0
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
import pywt
from tsfel import wavelet_entropy

print(f'tsfel {version("tsfel")}')
rng = np.random.default_rng(0)
half = rng.integers(1, 9, 100)
signals = {'alternating': np.array([1, -1, 2, -2, 3, -3, 1, -1] * 20), 'mirrored': np.concatenate((half, -half))}
for name, signal in signals.items():
    for shift in (0, 0.001):
        seen = wavelet_entropy(signal + shift, 100)
        coefficients, _ = pywt.cwt(signal + shift, np.arange(1, 10), 'mexh')
        shares = np.abs(coefficients).sum(1) / np.abs(coefficients).sum()
        right = -(shares * np.log(shares)).sum()
        print(f'{name} plus {shift}: entropy {seen:.4f}, by the definition {right:.4f}, at most {np.log(9):.4f}')
        assert right > 1, 'this has changed'
        assert seen == 0 if shift == 0 else np.isclose(seen, right), 'this has changed'
PY
