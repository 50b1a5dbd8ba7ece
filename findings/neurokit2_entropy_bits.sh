#!/usr/bin/env bash
# NeuroKit2 0.3.0: phase and dispersion entropies are above 1, as an entropy in bits is divided by a natural logarithm.
#
# Expected: entropy_phase is from Rohila and Sharma (2019): -1 / log(k) times the sum of p log p over the k sectors, with the
# same logarithm. entropy_dispersion is divided by the logarithm of the number of possible patterns ("Normalize"). Both are at
# most 1, and do not depend on the base of the logarithm.
# Seen: entropy_shannon has base 2 by default, and the results are divided by np.log(k) and np.log(c**dimension). So all values
# are too large by 1 / ln(2), about 1.44. White noise has a phase entropy of 1.16 with k = 4, and a dispersion entropy of 1.43.
# With base=e, values are right.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet neurokit2==0.3.0 numpy==2.4.6 scipy==1.17.1 pandas==3.1.1 scikit-learn==1.8.0
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import neurokit2
import numpy as np

print(f'NeuroKit2 {version("neurokit2")}')


def phase_by_definition(signal, k):
    y, x = signal[2:] - signal[1:-1], signal[1:-1] - signal[:-2]
    theta = np.arctan2(y, x) % (2 * np.pi)
    sums = np.array([theta[np.floor(theta / (2 * np.pi) * k) == sector].sum() for sector in range(k)])
    p = sums / sums.sum()
    p = p[p > 0]
    return -(p * np.log(p)).sum() / np.log(k)


rng = np.random.default_rng(0)
for name, signal in (('white noise', rng.normal(size=2000)), ('random walk', rng.normal(size=2000).cumsum()),
                     ('sine', np.sin(np.arange(2000) / 9.1))):  # fmt: skip
    for k in (4, 8, 16):
        seen, natural = neurokit2.entropy_phase(signal, k=k)[0], neurokit2.entropy_phase(signal, k=k, base=np.e)[0]
        right = phase_by_definition(signal, k)
        print(f'{name}, phase, k {k}: {seen:.4f}, with base=e {natural:.4f}, by the definition {right:.4f}')
        assert np.isclose(natural, right) and np.isclose(seen, right / np.log(2)), 'this has changed'
        assert right < 1 and (name == 'sine' or seen > 1), 'this has changed'
    seen, natural = neurokit2.entropy_dispersion(signal)[0], neurokit2.entropy_dispersion(signal, base=np.e)[0]
    print(f'{name}, dispersion: {seen:.4f}, with base=e {natural:.4f}')
    assert natural <= 1 and np.isclose(seen, natural / np.log(2)) and (name != 'white noise' or seen > 1.4), 'this has changed'
PY
