#!/usr/bin/env bash
# EntropyHub 2.0: phase entropy leaves out all points on the axes, which are most points of a signal with steps.
#
# Expected: PhasEn estimates the phase entropy of Rohila and Sharma (2019). Differences x of a signal and the next ones y are
# points (x, y) with an angle from 0 to 2 pi. Each of K sectors gets the sum of its angles, and the entropy is that of their
# shares. "Division of partitions begins along the positive x-axis" (docstring): a point on the negative x-axis has the angle
# pi.
# Seen: the arctangent of y / x is corrected only if both are not 0. So y = 0 and x < 0 is 0 and not pi, and x = 0 and y < 0 is
# -pi / 2 and not 3 pi / 2. Sectors count angles strictly between their bounds, so that (0, y) with y > 0 is in none of them if
# K is 4. Points with x = 0 or y = 0 are lost. A signal that changes, but not twice in a row, has only such points, and an
# entropy of 0.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet numpy==2.4.6 scipy==1.17.1 matplotlib==3.11.2 EMD-signal==1.10.0 requests==2.34.2
"$folder/venv/bin/pip" install --quiet --no-deps EntropyHub==2.0
cd "$folder"
MPLBACKEND=Agg OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import EntropyHub
import numpy as np

print(f'EntropyHub {version("EntropyHub")}')
rng = np.random.default_rng(0)


def by_definition(signal, sectors):
    x, y = signal[1:-1] - signal[:-2], signal[2:] - signal[1:-1]
    angles = np.arctan2(y, x) % (2 * np.pi)
    sums = np.bincount((angles / (2 * np.pi) * sectors).astype(int), weights=angles, minlength=sectors)
    shares = sums[sums > 0] / sums.sum()
    return -(shares * np.log(shares)).sum() / np.log(sectors), ((x == 0) | (y == 0)).mean()


signals = {
    'normal numbers': rng.normal(size=500),
    'the same, rounded to 0.5': np.round(2 * rng.normal(size=500)) / 2,
    '0 and 1 at random': rng.integers(0, 2, 500) * 1.0,
    '0 to 9, each for five steps': np.repeat(rng.integers(0, 10, 100), 5) * 1.0,
}
for name, signal in signals.items():
    for sectors in (4, 5):
        seen, (right, axes) = EntropyHub.PhasEn(signal, K=sectors), by_definition(signal, sectors)
        moved = EntropyHub.PhasEn(signal + 1e-6 * rng.normal(size=500), K=sectors)
        print(f'{name}, {axes:.0%} of the points on the axes, K={sectors}: {seen:.4f}, by the definition {right:.4f}. '
              f'With noise of 1e-6 {moved:.4f}')  # fmt: skip
        assert np.isclose(seen, right) == (axes == 0), 'this has changed'
        assert axes < 1 or sectors != 4 or seen == 0, 'this has changed'
PY
