#!/usr/bin/env bash
# tsfel 0.2.0: human_range_energy leaves out the last frequency of its range, and is 0 for a walk at 2 Hz in windows of one
# second.
#
# Expected: "the ratio between the energy in frequency 0.6-2.5Hz and the whole energy band". The spectrum of one second has the
# frequencies 0, 1, 2 and so on, of which 1 and 2 Hz are in the range. A sine of 2 Hz has the ratio 1.
# Seen: the range of the array ends before the frequency that is nearest to 2.5 Hz. With one second, this is 2 Hz, so that only
# 1 Hz counts. With two seconds, 2.5 Hz itself does not count. Windows of one to three seconds are usual in human activity
# recognition.
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
from tsfel import human_range_energy

print(f'tsfel {version("tsfel")}')
fs = 100
for seconds, frequency in ((1, 1), (1, 2), (2, 2), (2, 2.5), (10, 2)):
    signal = np.sin(2 * np.pi * frequency * np.arange(seconds * fs) / fs)
    frequencies, energy = np.fft.rfftfreq(len(signal), 1 / fs), np.abs(np.fft.rfft(signal)) ** 2
    right = energy[(frequencies >= 0.6) & (frequencies <= 2.5)].sum() / energy.sum()
    seen = human_range_energy(signal, fs)
    print(f'{frequency} Hz in {seconds} s: ratio {seen:.4f}, by the definition {right:.4f}')
    assert np.isclose(right, 1)
    wrong = (seconds, frequency) in ((1, 2), (2, 2.5))
    assert abs(seen) < 1e-6 if wrong else np.isclose(seen, 1), 'this has changed'
PY
