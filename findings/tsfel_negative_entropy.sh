#!/usr/bin/env bash
# tsfel 0.2.0: entropy with prob='gauss' or 'kde' of a signal of negative values alone depends on its offset.
#
# Expected: the "Shannon Entropy" of the signal, with probabilities from a Gaussian or a kernel density on a grid over "the
# range of features amplitude". The same signal plus a number has the same range and the same entropy, and so has minus the
# signal.
# Seen: if the maximum is negative, its sign is taken away, and the grid goes from the minimum up to a positive number that no
# sample comes near. Most of the grid is then outside the signal. The entropy goes down with the offset, as for signals in dB.
# Positive offsets have no effect.
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
from scipy.stats import gaussian_kde, norm
from tsfel import entropy

print(f'tsfel {version("tsfel")}')
rng = np.random.default_rng(0)
signal = rng.normal(0, 1, 500)


def by_definition(x, kind):
    grid = np.linspace(x.min(), x.max(), len(x))
    density = norm.pdf(grid, x.mean(), x.std()) if kind == 'gauss' else gaussian_kde(x, bw_method='silverman')(grid)
    p = density / density.sum()
    return -(p[p > 0] * np.log2(p[p > 0])).sum() / np.log2(len(x))


for kind in ('gauss', 'kde'):
    for offset in (0, 10, 60, -10, -60):
        seen, right = entropy(signal + offset, kind), by_definition(signal + offset, kind)
        print(f'{kind}, offset {offset}: entropy {seen:.4f}, by the definition {right:.4f}')
        assert np.isclose(right, by_definition(signal, kind), atol=1e-6)
        assert abs(seen - right) > 0.1 if offset < 0 else np.isclose(seen, right), 'this has changed'
PY
